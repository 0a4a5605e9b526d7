"""Is a signature's pattern cheap, bounded and fit for both engines? Knows parse trees, not files.

Why so strict. A pattern meets hostile text: `(?:[a-z]+-?)+:` needs hours on forty letters, and an
unanchored `HOST .*X` reads a long line once per byte of it. The fast engine knows a subset of `re`
only. So every pattern must hold a literal that all its matches contain (the plain engine searches
for that, at memchr speed), must not look around or back, and may leave at most one `.*` open.
"""

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as sre_parse  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from typing import Any

MIN_LITERAL = 6
WINDOW = 8192  # bytes of a line that `re` may see
_WIDE = 512  # most repetitions that two bounded repeats, one inside the other, may multiply to
_WIDE_START = 16  # most repetitions with which an unanchored pattern may begin
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT)
_REFUSED = {
    op.ASSERT: "looks ahead or behind",
    op.ASSERT_NOT: "looks ahead or behind",
    op.GROUPREF: "refers back to a group",
    op.GROUPREF_EXISTS: "refers back to a group",
    op.ATOMIC_GROUP: "has an atomic group",
    op.POSSESSIVE_REPEAT: "has a possessive repeat",
}

# Written once, used by many patterns. <TAG> is what loggers and launchers put before a line:
# "[rank3]: ", "[17:30:01][E] ", "2026-03-21T02:07:01.4 gpu-q-001 [rank3]: ", "gn11: ", " 3: ".
MACROS = {
    "<TAG>": (
        r"^(?:[^|]{0,60}\|[^|]{0,300}\|[^\]]{0,200}\] ?)? {0,4}"  # a bar that ends no line
        r"(?:\[[^\]]{1,80}\](?:<std(?:out|err)>)?[:>]? ?"
        r"|\d[\dT:.,Z+-]{4,40} (?:[\w.-]{1,99} \[[^\]]{1,80}\]:? ?)?"
        r"|[\w.-]{1,99}: |\([^)]{1,80}\) ){0,4}"
    ),
    "<HOST>": r"(?P<host>[\w.-]{1,99})",
    "<NAME>": r"[\w.-]{1,99}",
    "<ADDR>": r"\[?(?P<addr>[0-9a-fA-F.:]{3,45})\]?",
}


def expand(pattern: str) -> str:
    """Write the macros out."""
    for name, text in MACROS.items():
        pattern = pattern.replace(name, text)
    return pattern


def complaint(pattern: str) -> str | None:
    """What is wrong with this pattern and what to do about it; None when nothing is."""
    try:
        re.compile(pattern.encode("ascii"))
        tree = sre_parse.parse(pattern.encode("ascii"))
    except (re.error, UnicodeEncodeError, RecursionError, OverflowError) as error:
        return f"is not a regular expression over ASCII bytes ({error})"
    nodes = list(tree)
    if tree.state.flags & re.IGNORECASE:
        return "ignores case, which has no literal to search for; write both spellings"
    return next((found for check in _CHECKS if (found := check(nodes))), None)


def required_literal(pattern: str) -> bytes:
    """The longest text that every match contains; empty when there is none."""
    nodes = list(sre_parse.parse(pattern.encode("ascii")))
    return max(_literals(nodes), key=len, default=b"")


def all_literals(pattern: str) -> list[bytes]:
    """Every text that every match contains."""
    return list(_literals(list(sre_parse.parse(pattern.encode("ascii")))))


def _literals(nodes: list[Any]) -> Iterator[bytes]:
    run = bytearray()
    for code, arg in nodes:
        if code is op.LITERAL:
            run.append(arg)
        elif code is not op.AT:
            yield bytes(run)
            run.clear()
            yield from _inner_literals(code, arg)
    yield bytes(run)


def _inner_literals(code: Any, arg: Any) -> Iterator[bytes]:
    if code is op.SUBPATTERN and not arg[1] & re.IGNORECASE:
        yield from _literals(list(arg[-1]))
    elif code in REPEATS and arg[0] >= 1:
        yield from _literals(list(arg[2]))


def branches(code: Any, arg: Any) -> list[list[Any]]:
    """The nodes inside a group, a repeat, or each of some alternatives."""
    if code is op.SUBPATTERN:
        return [list(arg[-1])]
    if code in REPEATS:
        return [list(arg[2])]
    return [list(branch) for branch in arg[1]] if code is op.BRANCH else []


def _walk(nodes: list[Any]) -> Iterator[tuple[Any, Any]]:
    for code, arg in nodes:
        yield code, arg
        for child in branches(code, arg):
            yield from _walk(child)


def _foreign(nodes: list[Any]) -> str | None:
    for code, _ in _walk(nodes):
        if code in _REFUSED:
            return f"{_REFUSED[code]}, which the fast engine cannot; write it without"
    return None


def _nested(nodes: list[Any]) -> str | None:
    for code, arg in _walk(nodes):
        if code not in REPEATS or arg[1] <= 1:
            continue
        if _inner_repeats(list(arg[2])) * _size(arg[1]) > _WIDE:
            return "repeats a repeat, which can take for ever; bound both, or use one [class]"
    return None


def _inner_repeats(nodes: list[Any]) -> int:
    sizes = [_size(arg[1]) for code, arg in _walk(nodes) if code in REPEATS and arg[0] != arg[1]]
    return max(sizes, default=0)


def _size(most: Any) -> int:
    return 1 << 20 if most is op.MAXREPEAT else int(most)


def _open_dots(nodes: list[Any]) -> str | None:
    dots = [1 for code, arg in _walk(nodes) if _unbounded(code, arg) and _is_any(list(arg[2]))]
    return "has more than one '.*'; bound all but one, as .{0,80}" if len(dots) > 1 else None


def _unbounded(code: Any, arg: Any) -> bool:
    return code in REPEATS and arg[1] is op.MAXREPEAT


def _is_any(nodes: list[Any]) -> bool:
    return len(nodes) == 1 and nodes[0][0] is op.ANY


def _open_start(nodes: list[Any]) -> str | None:
    first = _edge(nodes, 0)
    if first and first[0] in REPEATS and _size(first[1][1]) > _WIDE_START:
        return (
            "begins with a wide repeat, which is tried at each byte of a line; anchor it with ^ or"
            " <TAG>, or begin with fixed text"
        )
    return None


def _open_end(nodes: list[Any]) -> str | None:
    last = _edge(nodes, -1)
    if last and last[0] in REPEATS and last[1][0] != last[1][1]:
        return "ends in an open repeat; end it with what follows: \\b, $ or a character"
    return None


def _edge(nodes: list[Any], index: int) -> tuple[Any, Any] | None:
    """The first or last node, looked for inside groups."""
    if not nodes:
        return None
    code, arg = nodes[index]
    return _edge(list(arg[-1]), index) if code is op.SUBPATTERN else (code, arg)


_CHECKS: tuple[Callable[[list[Any]], str | None], ...] = (
    _foreign,
    _nested,
    _open_dots,
    _open_start,
    _open_end,
)
