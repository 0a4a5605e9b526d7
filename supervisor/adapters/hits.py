"""From a line that a signature hits to the core's Hit: who says it, whom it names, how it is shown.

What a line says counts only from a source its signature trusts: a training script that prints
"x1: shepherd died from signal 9" convicts nobody. Names count only when they resolve to hosts of
the allocation.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from supervisor.adapters.hostlist import expand
from supervisor.adapters.line_origin import Origin, origin
from supervisor.adapters.line_text import printable, without_escapes
from supervisor.core.signature import Blames, Hit, Role, Signature, Source
from supervisor.errors import UsageError

Resolve = Callable[[str], str | None]
Place = Callable[[int], str | None]
NAMING = frozenset({"host", "hosts", "addr", "peer", "reporter"})  # groups that name hosts


class Found(NamedTuple):  # made for each line of a storm: a dataclass costs four times as much
    """A signature that hits the line block[start:end]."""

    signature: Signature
    start: int
    end: int
    at: int  # where in that line, once its escapes are gone, the match begins
    captures: dict[str, bytes]


def nowhere(rank: int) -> str | None:
    """The host of a rank that nobody knows."""
    return None


class Speech(NamedTuple):
    """Who says a line and whom it names: what tells news from more of the same."""

    source: Source
    rank: int | None
    host: str | None
    named: tuple[str, ...]


def speech(
    found: Found,
    line: bytes,
    *,
    source: Source | None,
    host: str | None,
    rank: int | None,
    resolve: Resolve,
    place: Place = nowhere,
) -> Speech | None:
    """Who says it, or None when this source may not.

    `resolve` turns a spelled host or address into a canonical host of the allocation, or None.
    `place` tells the host of a rank. `source` None is a merged log, where only the line's own
    tags tell who wrote it.
    """
    signature = found.signature
    tags = origin(without_escapes(line))
    if source is None and (tags.quoted or _is_foreign(found, tags, resolve)):
        return None
    if tags.kernel and tags.rank is not None and place(tags.rank) != resolve(tags.hosts[0]):
        return None  # a rank prints what it says another host's kernel said
    source = source or _likely_source(signature, tags)
    if source not in signature.sources:
        return None
    if rank is None and host is None:
        rank = tags.rank
    speaker = _said_by(found, resolve) or _reporter(source, host, tags, resolve)
    if speaker is None and rank is not None:
        speaker = place(rank)
    named = _named(found, resolve, place) if signature.blames is Blames.NAMED else ()
    return Speech(source, rank, speaker, named)


def make_hit(found: Found, line: bytes, said: Speech, *, line_number: int, file: str = "") -> Hit:
    """The hit, with its line as a person may see it."""
    signature = found.signature
    return Hit(
        signature=signature.id,
        title=signature.title,
        cause=signature.cause,
        role=signature.role,
        blames=signature.blames,
        source=said.source,
        host=said.host,
        rank=said.rank,
        named=said.named,
        line=printable(without_escapes(line), found.at),
        line_number=line_number,
        file=file,
        facts=_facts(found),
    )


def _is_foreign(found: Found, tags: Origin, resolve: Resolve) -> bool:
    """Proof about hosts of somebody else's, as health reports and collected kernel logs have it."""
    if found.signature.role is not Role.PROOF:
        return False
    if tags.kernel:
        return not any(map(resolve, tags.hosts))
    named = found.signature.blames is Blames.NAMED and "addr" not in found.captures
    names = tuple(_spelled(found.captures)) if named else ()
    return bool(names) and not any(map(resolve, names))


def _facts(found: Found) -> tuple[tuple[str, str], ...]:
    others = ((name, _text(text)) for name, text in found.captures.items())
    return tuple((name, text) for name, text in others if name not in NAMING)


def _likely_source(signature: Signature, tags: Origin) -> Source | None:
    """A line tagged as a rank's or a kernel's is nobody else's; else the first that may say it."""
    if tags.kernel:
        return Source.KERNEL
    if tags.rank is not None:
        return Source.RANK
    order = (Source.SCHEDULER, Source.LAUNCHER, Source.KERNEL, Source.RANK)
    return next((source for source in order if source in signature.sources), None)


def _reporter(source: Source, host: str | None, tags: Origin, resolve: Resolve) -> str | None:
    """A kernel log may collect many machines, so there the name in the line counts."""
    if host is not None and not (source is Source.KERNEL and tags.kernel):
        return host
    return next(filter(None, map(resolve, tags.hosts)), None)


def _said_by(found: Found, resolve: Resolve) -> str | None:
    name = found.captures.get("reporter")
    return resolve(_text(name)) if name else None


def _named(found: Found, resolve: Resolve, place: Place) -> tuple[str, ...]:
    hosts = [resolve(name) for name in _spelled(found.captures)]
    if "peer" in found.captures:
        hosts.append(place(int(found.captures["peer"])))
    return tuple(dict.fromkeys(host for host in hosts if host is not None))


def _spelled(captures: dict[str, bytes]) -> Iterator[str]:
    if "host" in captures:
        yield _text(captures["host"])
    if "hosts" in captures:
        yield from _listed(_text(captures["hosts"]))
    if "addr" in captures:
        yield _text(captures["addr"]).removeprefix("::ffff:")


def _listed(text: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except UsageError:
        return ()  # cut off or garbled: names nobody


def _text(name: bytes) -> str:
    return name.decode("latin-1").rstrip(".:,")
