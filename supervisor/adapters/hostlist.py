"""Slurm's compressed host lists written out: `nid[001-003],gpu[05-06]-ib`, `rack[1-2]n[1-3]`.

Used where `scontrol show hostnames` cannot be asked. It owns the notation and its limits; whether
the hosts exist is not its business. As in Slurm a range is padded to the width of its first
number, and of several brackets the last varies fastest.
"""

import re
from collections.abc import Iterator
from itertools import product
from math import prod

from supervisor.errors import UsageError

MAX_HOSTS = 100_000  # ten times the largest job we know of; a typing error must not eat the memory

_PART = re.compile(r"\[(?P<ranges>[0-9,-]+)\]|(?P<text>[A-Za-z0-9._-]+)")
_RANGE = re.compile(r"(?P<first>[0-9]{1,18})(?:-(?P<last>[0-9]{1,18}))?")


def expand(text: str) -> tuple[str, ...]:
    """The hosts of a Slurm host list, in its order; UsageError names the column."""
    text = text.strip()
    hosts: list[str] = []
    for column, item in _items(text):
        parts = [_choices(text, part) for part in item]
        if len(hosts) + prod(len(part) for part in parts) > MAX_HOSTS:
            raise _wrong(text, column, f"more than {MAX_HOSTS} hosts")
        hosts.extend("".join(choice) for choice in product(*parts))
    return tuple(hosts)


def _items(text: str) -> Iterator[tuple[int, list[re.Match[str]]]]:
    """The comma-separated items, each with its column and its parts."""
    at = 0
    while True:
        begin, parts = at, []
        while part := _PART.match(text, at):
            parts.append(part)
            at = part.end()
        if not parts or text[at : at + 1] not in (",", ""):
            raise _wrong(text, at, "a host name or a range such as [01-08] belongs here")
        yield begin, parts
        if at == len(text):
            return
        at += 1


def _choices(text: str, part: re.Match[str]) -> list[str]:
    if part["text"] is not None:
        return [part["text"]]
    numbers: list[str] = []
    at = part.start("ranges")
    for item in part["ranges"].split(","):
        found = _RANGE.fullmatch(item)
        if not found:
            raise _wrong(text, at, f"{item!r} is no number and no range")
        numbers.extend(_numbers(text, at, found, room=MAX_HOSTS - len(numbers)))
        at += len(item) + 1
    return numbers


def _numbers(text: str, at: int, found: re.Match[str], room: int) -> list[str]:
    first = int(found["first"])
    last = int(found["last"] or found["first"])
    if last < first:
        raise _wrong(text, at, f"the range {found[0]} runs backwards")
    if last - first >= room:
        raise _wrong(text, at, f"more than {MAX_HOSTS} hosts")
    width = len(found["first"])
    return [str(number).zfill(width) for number in range(first, last + 1)]


def _wrong(text: str, at: int, what: str) -> UsageError:
    shown = text if len(text) <= 80 else f"...{text[max(0, at - 40) : at + 40]}..."
    return UsageError(f"host list {shown!r}, column {at + 1}: {what}")
