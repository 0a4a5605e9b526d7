"""Which files a pattern such as `logs/**/rank_*.log` covers, one folder at a time.

What `glob` answers for a whole tree at once, this answers step by step, so that a folder that
appears later is looked at alone. A folder stands at one or more positions of the pattern. As with
`glob`, `*` and `**` leave names that begin with a dot out; unlike it, `**` follows no links.
"""

import fnmatch
import glob
import os
import re
from collections.abc import Callable, Iterable

Positions = frozenset[int]
_ANY_DEPTH = "**"


class LogPattern:
    """A pattern, cut at its slashes."""

    def __init__(self, pattern: str) -> None:
        parts = os.path.abspath(pattern).split(os.sep)[1:]
        fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
        self.base = os.sep + os.sep.join(parts[: max(0, fixed)])
        while not os.path.isdir(self.base):  # may be made later: watch where that would be seen
            self.base, fixed = os.path.dirname(self.base), fixed - 1
        self._parts = parts[fixed:]
        self._matches = [_matcher(part) for part in self._parts]
        self.begin = self._closed([0])

    def inside(self, positions: Positions, name: str, *, is_link: bool = False) -> Positions:
        """Where the folder of this name stands within a folder at these positions."""
        kept = (
            i
            for i in positions
            if self._parts[i] == _ANY_DEPTH and not name.startswith(".") and not is_link
        )
        return self._closed([*kept, *(i + 1 for i in positions if self._fits(i, name))])

    def covers(self, positions: Positions, name: str) -> bool:
        """Whether a file of this name is meant."""
        last = len(self._parts) - 1
        return last in positions and self._matches[last](name)

    def may_hold_files(self, positions: Positions) -> bool:
        """Whether any file in such a folder can be meant."""
        return len(self._parts) - 1 in positions

    def _fits(self, position: int, name: str) -> bool:
        is_last = position == len(self._parts) - 1
        return not is_last and self._parts[position] != _ANY_DEPTH and self._matches[position](name)

    def _closed(self, positions: Iterable[int]) -> Positions:
        """With what `**` for no folder at all adds."""
        closed = set(positions)
        for i in sorted(closed):
            while i < len(self._parts) - 1 and self._parts[i] == _ANY_DEPTH:
                i += 1
                closed.add(i)
        return frozenset(closed)


def _matcher(part: str) -> Callable[[str], bool]:
    if part == _ANY_DEPTH:
        return lambda name: not name.startswith(".")
    match, hidden = re.compile(fnmatch.translate(part)).match, part.startswith(".")
    if not glob.has_magic(part):
        return lambda name: name == part
    return lambda name: (hidden or not name.startswith(".")) and match(name) is not None
