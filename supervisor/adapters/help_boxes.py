"""Open MPI puts who speaks on a line of its own: a box between dashes, `Local host: x` in it."""

import re

_BOX = 1500  # bytes of a box before the line in question
_EDGE = b"\n------"
_LOCAL = re.compile(rb"^ {1,4}(?:Local host|Host|Node|Hostname): +([\w.-]{1,99})", re.MULTILINE)


def speaker(block: bytes, start: int) -> str | None:
    """The host that wrote the box in which the line at `start` stands."""
    if block[start : start + 1] != b" ":
        return None
    above = block[max(0, start - _BOX) : start].replace(b"\r", b"\n")  # a bar's line is over
    found = _LOCAL.search(above, max(0, above.rfind(_EDGE)))
    return found[1].decode("latin-1") if found else None
