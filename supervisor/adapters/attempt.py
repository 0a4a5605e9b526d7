"""One running attempt: its keeper, the thread that follows its output, and how it is ended."""

import asyncio
import os
import signal
from typing import Protocol

from supervisor.adapters import keeping, stopping
from supervisor.adapters.launchers import EndPlan

_AFTER_FORCE = 5.0  # what a scheduler needs to end a step
_AFTER_KILL = 20.0  # a launcher in uninterruptible sleep is left to the sweep


class Follower(Protocol):
    """What follows its output."""

    def abandon(self) -> None: ...


class RunningAttempt:
    """Holds what must be let go of when the attempt is over."""

    def __init__(
        self,
        kept: keeping.Kept | None,
        keeper: int | None,
        follower: Follower,
        end_plan: EndPlan | None = None,
    ) -> None:
        self._kept, self._keeper, self._follower = kept, keeper, follower
        self._end_plan = end_plan

    async def end(self, grace: float) -> None:
        """SIGTERM, SIGKILL after the grace; the follower tells of the end. May be asked for again,
        with less grace.
        """
        if self._kept is None or self._keeper is None:
            return
        if await (
            self._end_by_plan(self._end_plan, grace) if self._end_plan else self._term(grace)
        ):
            return
        keeping.kill_launcher(self._kept)
        if not await self._ended(_AFTER_KILL):
            os.kill(self._kept.keeper, signal.SIGKILL)

    async def _term(self, grace: float) -> bool:
        assert self._kept is not None
        keeping.signal_launcher(self._kept, signal.SIGTERM)
        return await self._ended(grace)

    async def _end_by_plan(self, plan: EndPlan, grace: float) -> bool:
        """Whether the launcher's own way ended it; a step that is not there has nobody to ask."""
        step = await asyncio.to_thread(stopping.find_step, plan)
        if step is None:
            return await self._term(grace)
        await asyncio.to_thread(stopping.ask, plan, step)
        if await self._ended(grace):
            return True
        await asyncio.to_thread(stopping.force, plan, step)
        return await self._ended(_AFTER_FORCE)

    def let_go(self) -> None:
        """Stop following. The keeper, if it lives, keeps the attempt."""
        self._follower.abandon()
        if self._keeper is not None:
            os.close(self._keeper)
            self._keeper = None

    async def _ended(self, seconds: float) -> bool:
        assert self._keeper is not None
        return await asyncio.to_thread(keeping.has_ended, self._keeper, seconds)
