"""One entry of a signature file: its schema, its checks, and its error messages with file and line.

Works on YAML nodes rather than on loaded values, because nodes know their lines. Knows no folders.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NoReturn, TypeVar

from supervisor.adapters.pattern_check import MIN_LITERAL, all_literals, complaint, expand
from supervisor.core.signature import Blames, Cause, Role, Signature, Source
from supervisor.errors import UsageError

if TYPE_CHECKING:
    from yaml.nodes import Node

_Word = TypeVar("_Word", bound=StrEnum)

REQUIRED = ("id", "title", "cause", "role", "sources", "blames", "pattern", "samples")
OPTIONAL = ("near_misses", "literal", "references", "status", "description", "fallback")
_STATUSES = ("stable", "experimental")
_NAMING_GROUPS = frozenset({"host", "hosts", "addr", "peer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A line this signature must hit, and what its groups must capture."""

    line: str
    source: Source | None
    expect: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A signature with what proves and explains it."""

    signature: Signature
    literal: bytes  # every line it hits contains this
    samples: tuple[Sample, ...]
    near_misses: tuple[str, ...]
    references: tuple[str, ...]
    status: str
    description: str
    file: str
    line: int
    lines: Mapping[str, int] = field(default_factory=dict)  # of its fields, as pattern, samples[0]

    def place(self, name: str) -> str:
        """File and line of one of its fields."""
        return f"{self.file}:{self.lines.get(name, self.line)}"

    def complaint(self, name: str, why: str) -> str:
        """What is wrong with one of its fields, and where."""
        return f"{self.place(name)}: entry '{self.signature.id}': {name.split('[')[0]}: {why}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file, and in which entry, for messages."""

    file: str
    entry: str = "?"

    def refuse(self, node: "Node", field: str, why: str) -> NoReturn:
        line = node.start_mark.line + 1
        raise UsageError(f"{self.file}:{line}: entry '{self.entry}': {field}: {why}")


def read_entry(node: "Node", file: str) -> Entry:
    """Check one node of a file's list and turn it into an entry."""
    place = Place(file)
    fields = mapping(node, place, "entry")
    if "id" in fields:
        place = Place(file, scalar(fields["id"], place, "id"))
    _check_names(node, fields, place)
    signature = _signature(fields, place)
    return Entry(
        signature=signature,
        literal=_literal(fields, signature.pattern, place),
        samples=_samples(fields["samples"], place),
        near_misses=_texts(fields, "near_misses", place),
        references=_texts(fields, "references", place),
        status=_status(fields, place),
        description=_text(fields, "description", place),
        file=file,
        line=node.start_mark.line + 1,
        lines=dict(_line_numbers(fields)),
    )


def _line_numbers(fields: dict[str, "Node"]) -> Iterator[tuple[str, int]]:
    from yaml.nodes import SequenceNode

    for name, node in fields.items():
        yield name, node.start_mark.line + 1
        items = node.value if isinstance(node, SequenceNode) else ()
        for index, item in enumerate(items):
            yield f"{name}[{index}]", item.start_mark.line + 1


def mapping(
    node: "Node", place: Place, field: str, write: str = "`name: value` lines"
) -> dict[str, "Node"]:
    """The node's fields by name; refuses a name given twice."""
    from yaml.nodes import MappingNode

    if not isinstance(node, MappingNode):
        place.refuse(node, field, f"is not a mapping; write {write}")
    fields: dict[str, Node] = {}
    for key, value in node.value:
        if str(key.value) in fields:
            place.refuse(key, str(key.value), "is given twice; keep one")
        fields[str(key.value)] = value
    return fields


def sequence(node: "Node", place: Place, field: str) -> list["Node"]:
    """The node's items."""
    from yaml.nodes import SequenceNode

    if not isinstance(node, SequenceNode):
        place.refuse(node, field, "is not a list; write `- item` lines")
    return list(node.value)


def scalar(node: "Node", place: Place, field: str) -> str:
    """The node's text, as written: 09 stays 09, no stays no."""
    from yaml.nodes import ScalarNode

    if not isinstance(node, ScalarNode) or not str(node.value).strip():
        place.refuse(node, field, "is not a text; write one on this line")
    return str(node.value)


def _check_names(node: "Node", fields: dict[str, "Node"], place: Place) -> None:
    for name, value in fields.items():
        if name not in REQUIRED + OPTIONAL:
            place.refuse(value, name, f"unknown field; known are {', '.join(REQUIRED + OPTIONAL)}")
    missing = [name for name in REQUIRED if name not in fields]
    if missing:
        place.refuse(node, missing[0], "is missing; every entry needs it")


def _signature(fields: dict[str, "Node"], place: Place) -> Signature:
    blames = _word(fields["blames"], Blames, place, "blames")
    return Signature(
        id=_identifier(fields["id"], place),
        title=scalar(fields["title"], place, "title"),
        cause=_word(fields["cause"], Cause, place, "cause"),
        role=_word(fields["role"], Role, place, "role"),
        sources=_sources(fields["sources"], place),
        blames=blames,
        pattern=_pattern(fields["pattern"], blames, place),
        fallback=_flag(fields, "fallback", place),
    )


def _flag(fields: dict[str, "Node"], name: str, place: Place) -> bool:
    text = _text(fields, name, place) or "false"
    if text not in ("true", "false"):
        place.refuse(fields[name], name, f"{text!r} is neither true nor false")
    return text == "true"


def _identifier(node: "Node", place: Place) -> str:
    text = scalar(node, place, "id")
    if not text.replace("-", "").isalnum() or not text.isascii() or text != text.lower():
        place.refuse(node, "id", f"{text!r} is not kebab-case; write it like srun-node-failure")
    return text


def _word(node: "Node", words: type[_Word], place: Place, field: str) -> _Word:
    text = scalar(node, place, field)
    if text not in list(words):
        place.refuse(node, field, f"{text!r} is none of {', '.join(words)}")
    return words(text)


def _sources(node: "Node", place: Place) -> frozenset[Source]:
    items = sequence(node, place, "sources")
    if not items:
        place.refuse(node, "sources", f"is empty; name some of {', '.join(Source)}")
    return frozenset(_word(item, Source, place, "sources") for item in items)


def _pattern(node: "Node", blames: Blames, place: Place) -> str:
    pattern = expand(scalar(node, place, "pattern"))
    why = complaint(pattern)
    if why:
        place.refuse(node, "pattern", why)
    if blames is Blames.NAMED and not any(f"(?P<{name}>" in pattern for name in _NAMING_GROUPS):
        place.refuse(node, "pattern", "names nobody; blames: named needs a group host or addr")
    return pattern


def _literal(fields: dict[str, "Node"], pattern: str, place: Place) -> bytes:
    known = all_literals(pattern)
    best = max(known, key=len, default=b"")
    if "literal" in fields:
        return _given_literal(fields["literal"], known, place)
    if len(best) < MIN_LITERAL:
        why = f"has no fixed text of {MIN_LITERAL} bytes or more in all it matches (best: {best!r})"
        place.refuse(fields["pattern"], "pattern", why + "; spell more of the message out")
    return best


def _given_literal(node: "Node", known: list[bytes], place: Place) -> bytes:
    literal = scalar(node, place, "literal").encode()
    if len(literal) < MIN_LITERAL or not any(literal in text for text in known):
        why = f"must be {MIN_LITERAL} bytes or more that the pattern always contains"
        place.refuse(node, "literal", why + f"; the pattern's longest is {max(known, key=len)!r}")
    return literal


def _samples(node: "Node", place: Place) -> tuple[Sample, ...]:
    items = sequence(node, place, "samples")
    if not items:
        place.refuse(node, "samples", "is empty; give at least one real line that it must hit")
    return tuple(_sample(item, place) for item in items)


def _sample(node: "Node", place: Place) -> Sample:
    fields = mapping(node, place, "samples", "`- line: TEXT` for each")
    if "line" not in fields or fields.keys() - {"line", "source", "expect"}:
        place.refuse(
            node, "samples", "a sample has the fields line, source and expect; line is a must"
        )
    expect = mapping(fields["expect"], place, "expect") if "expect" in fields else {}
    source = _word(fields["source"], Source, place, "source") if "source" in fields else None
    return Sample(
        line=scalar(fields["line"], place, "line"),
        source=source,
        expect={name: scalar(value, place, name) for name, value in expect.items()},
    )


def _status(fields: dict[str, "Node"], place: Place) -> str:
    text = _text(fields, "status", place) or _STATUSES[0]
    if text not in _STATUSES:
        place.refuse(fields["status"], "status", f"{text!r} is none of {', '.join(_STATUSES)}")
    return text


def _text(fields: dict[str, "Node"], name: str, place: Place) -> str:
    return scalar(fields[name], place, name) if name in fields else ""


def _texts(fields: dict[str, "Node"], name: str, place: Place) -> tuple[str, ...]:
    items = sequence(fields[name], place, name) if name in fields else []
    return tuple(scalar(item, place, name) for item in items)
