"""Which exceptions in a log were lived through: steps went on after them where they stand.

A rank that meets a missing command or a bad sample and makes steps afterwards did not die of it.
Only steps of the same part of the log count: where the logs of many ranks are put one after the
other, what stands later need not have happened later.
"""

from supervisor.adapters.sightings import Sight
from supervisor.adapters.step_lines import latest_step
from supervisor.core.evidence import APPLICATION
from supervisor.core.signature import Hit, Source

LIVED_ON = 3  # steps: peers may end the one they are in, and print late


class Survival:
    """Follows the steps of each part of a log."""

    def __init__(self) -> None:
        self._tops: dict[str, int] = {}
        self._marks: list[tuple[Hit, str, int]] = []

    def saw(self, part: str, sight: Sight) -> None:
        """A hit, before the steps of its lines are told."""
        if sight.hit.source is Source.RANK and sight.hit.cause in APPLICATION:
            before = latest_step(sight.piece.lines[: sight.start])
            reached = self._tops.get(part, 0) if before is None else before
            self._marks.append((sight.hit, part, reached))

    def stepped(self, part: str, step: int) -> None:
        """The step that a part of the log has come to."""
        self._tops[part] = max(step, self._tops.get(part, 0))

    def survived(self) -> frozenset[Hit]:
        """The hits after which three steps or more were made."""
        return frozenset(
            hit for hit, part, step in self._marks if self._tops.get(part, 0) - step >= LIVED_ON
        )
