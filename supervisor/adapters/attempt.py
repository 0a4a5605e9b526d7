"""One running attempt: its keeper, the thread that follows its output, and how it is ended."""

import asyncio
import os
import signal
from typing import Protocol

from supervisor.adapters import keeping

_AFTER_KILL = 20.0  # a launcher in uninterruptible sleep is left to the sweep


class Follower(Protocol):
    """What follows its output."""

    def abandon(self) -> None: ...


class RunningAttempt:
    """Holds what must be let go of when the attempt is over."""

    def __init__(self, kept: keeping.Kept | None, keeper: int | None, follower: Follower) -> None:
        self._kept, self._keeper, self._follower = kept, keeper, follower

    async def end(self, grace: float) -> None:
        """SIGTERM, SIGKILL after the grace; the follower tells of the end. May be asked for again,
        with less grace.
        """
        if self._kept is None or self._keeper is None:
            return
        keeping.signal_launcher(self._kept, signal.SIGTERM)
        if await self._ended(grace):
            return
        keeping.kill_launcher(self._kept)
        if not await self._ended(_AFTER_KILL):
            os.kill(self._kept.keeper, signal.SIGKILL)

    def let_go(self) -> None:
        """Stop following. The keeper, if it lives, keeps the attempt."""
        self._follower.abandon()
        if self._keeper is not None:
            os.close(self._keeper)
            self._keeper = None

    async def _ended(self, seconds: float) -> bool:
        assert self._keeper is not None
        return await asyncio.to_thread(keeping.has_ended, self._keeper, seconds)
