"""Open MPI puts who speaks on a line of its own: a box between dashes with `Local host: x` in it."""

import re

_BOX = 1500  # bytes of a box before the line in question
_EDGE = b"\n------"
_LOCAL = re.compile(rb"^ {1,4}(?:Local host|Host|Node|Hostname): +([\w.-]{1,99})", re.MULTILINE)


def speaker(block: bytes, start: int) -> str | None:
    """The host that wrote the box in which the line at `start` stands."""
    if block[start : start + 1] != b" ":
        return None
    top = max(0, start - _BOX, block.rfind(_EDGE, 0, start))
    found = _LOCAL.search(block, top, start)
    return found[1].decode("latin-1") if found else None
