"""Bytes of a log line made fit for matching and for printing: escapes out, unprintables shown."""

import re

SHOWN = 300  # characters of a line kept in a hit
_LEAD = 60  # of them before the match, when the match lies far out

_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b\r\n]{0,1000}(?:\x07|\x1b\\)|[@-Z\\^_])"
)
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\u00a1-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\ud7ff]+")


def without_escapes(text: bytes) -> bytes:
    """Remove terminal escape sequences (colours, titles, links)."""
    return _ESCAPES.sub(b"", text) if b"\x1b" in text else text


def printable(text: bytes, at: int = 0) -> str:
    """At most 300 printable characters of a line, from its start or from just before a match."""
    start = max(0, at - _LEAD) if at > SHOWN // 2 and len(text) > SHOWN else 0
    piece = text[start : start + 4 * SHOWN].decode("utf-8", "replace").replace("\t", " ")
    return _UNPRINTABLE.sub("?", piece)[:SHOWN].strip()
