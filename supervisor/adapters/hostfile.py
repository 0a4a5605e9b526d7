"""The user's list of hosts: one a line, as any launcher's host file spells them.

Comments, blank lines, tabs, CRLF, a byte-order mark, repeated lines, `slots=4` and `host:4` are
all taken. Two spellings of one host (full name, `-hsn0`) are one host, by its first spelling.
"""

import re
from pathlib import Path

from supervisor.adapters.schedulers import same_for_all
from supervisor.core.value import value
from supervisor.errors import UsageError
from supervisor.wire import canonical_host

# A name may not begin with a dash: it is handed to launchers as an argument.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_SLOTS = re.compile(r"slots\s*=\s*([1-9][0-9]{0,5})|max[-_]slots\s*=\s*[0-9]+")


MAX_CHARACTERS = 16 * 1024 * 1024  # 100,000 hosts with 160 characters each


@value
class Line:
    """One line that names a host."""

    name: str
    slots: int | None


def read(path: Path) -> tuple[tuple[str, ...], int | None]:
    """The hosts of a file, in order, and the ranks per host where it gives all the same."""
    hosts: dict[str, list[Line]] = {}
    for number, text in enumerate(_text(path).splitlines(), 1):
        if line := _parse(text, f"{path}, line {number}"):
            hosts.setdefault(canonical_host(line.name), []).append(line)
    if not hosts:
        raise UsageError(f"hostfile {path} names no host")
    names = tuple(lines[0].name for lines in hosts.values())
    return names, same_for_all(tuple(_slots(lines) for lines in hosts.values()))


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            text = file.read(MAX_CHARACTERS)
            longer = file.read(1)
    except OSError as error:
        raise UsageError(f"hostfile {path} cannot be read: {error.strerror}") from error
    if longer:
        raise UsageError(f"hostfile {path} has more than {MAX_CHARACTERS} characters")
    return text


def _parse(text: str, place: str) -> Line | None:
    text = text.split("#", 1)[0].strip()
    if not text:
        return None
    name, *rest = text.split(None, 1)
    short, colon, count = name.partition(":")
    slots = None
    if colon and re.fullmatch(r"[1-9][0-9]{0,5}", count):
        name, slots = short, int(count)
    if not _NAME.fullmatch(name):
        raise UsageError(f"hostfile {place}: {name!r} is no host name")
    return Line(name=name, slots=slots or _written_slots(rest[0] if rest else "", place))


def _written_slots(text: str, place: str) -> int | None:
    found = [match[1] for match in _SLOTS.finditer(text)]
    if left := _SLOTS.sub(" ", text).strip():
        raise UsageError(
            f"hostfile {place}: cannot read {left!r}; write one host a line, with `slots=N` or `:N`"
        )
    return int(next((count for count in found if count), 0)) or None


def _slots(lines: list[Line]) -> int:
    """A host's slots: the most any line gives; without any, its lines, one a rank as PBS does."""
    return max(line.slots or 0 for line in lines) or len(lines)
