"""Lets all ranks agree on something without a collective: through the store of the process group.

A round. Every rank does its own part and reports to rank 0, rank 0 draws the conclusion and answers
each. A part that fails is a report too, and then all ranks fail together, with the words of the
rank that did. Every wait has a limit, so a rank that died fails the round instead of holding it.
A collective on the training group would offer neither, and one in the background can deadlock
with the training's own.

The reports are pickles, as in torch's own gather_object: the ranks of one job trust one another.
"""

import itertools
import os
import pickle
import socket
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch.distributed as dist

from supervisor import wire
from supervisor.agent.place import attempt_number
from supervisor.errors import PlatformError

Part = TypeVar("Part")
Answer = TypeVar("Answer")

_MARGIN = 30.0  # seconds others outwait rank 0's part and its wait, to hear why instead of silence
_NAMED_RANKS = 8  # of ranks at fault in a message


_numbers = itertools.count()  # of exchanges: all ranks begin them in the same order


class CheckpointError(PlatformError):
    """A checkpoint could not be saved or resumed from. All ranks raise it for the same save."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """A rank's part, or rank 0's conclusion, went wrong."""

    rank: int
    host: str
    why: str


class Exchange:
    """The ranks' way to talk, for one save or one resume."""

    def __init__(self, timeout: float) -> None:
        joined = dist.is_initialized()
        self.rank: int = dist.get_rank() if joined else 0
        self.world_size: int = dist.get_world_size() if joined else 1
        self._timeout = timeout
        self._patience = timeout * 2 + min(timeout, _MARGIN)
        self._store = dist.PrefixStore(  # type: ignore[attr-defined]
            f"supervise/{attempt_number()}/{next(_numbers)}", _store(joined)
        )

    def round(
        self,
        name: str,
        part: Callable[[], Part],
        conclude: Callable[[list[Part]], Sequence[Answer]],
    ) -> Answer:
        """Do this rank's part; rank 0 turns all parts into one answer a rank; return ours."""
        if self.rank == 0:
            return self._lead(name, part, conclude)
        try:
            mine: Any = part()
        except BaseException as error:
            failed = _Failed(rank=self.rank, host=_host(), why=describe(error))
            self._put(f"{name}/part/{self.rank}", failed)
            raise
        self._put(f"{name}/part/{self.rank}", mine)
        answer = self._take([f"{name}/answer/{self.rank}"], self._patience)[0]
        if isinstance(answer, _Failed):
            raise CheckpointError(answer.why)
        return answer  # type: ignore[no-any-return]

    def _lead(
        self,
        name: str,
        part: Callable[[], Part],
        conclude: Callable[[list[Part]], Sequence[Answer]],
    ) -> Answer:
        try:
            parts = [part(), *self._collect(name)]
            _raise_failures(parts)
            answers = conclude(parts)
        except BaseException as error:
            failed = _Failed(rank=0, host=_host(), why=self._conclusion(error))
            self._answer(name, [failed] * self.world_size)
            raise
        self._answer(name, answers)
        return answers[0]

    def _collect(self, name: str) -> list[Any]:
        keys = [f"{name}/part/{rank}" for rank in range(1, self.world_size)]
        try:
            return self._take(keys, self._timeout)
        except dist.DistStoreError:
            silent = [rank for rank, key in enumerate(keys, 1) if not self._store.check([key])]
            raise CheckpointError(
                f"{_ranks(silent)} said nothing for {self._timeout:g} s ({name})"
            ) from None

    def _answer(self, name: str, answers: Sequence[Any]) -> None:
        for rank, answer in enumerate(answers):
            if rank > 0:
                self._put(f"{name}/answer/{rank}", answer)

    def _put(self, key: str, value: Any) -> None:
        content = zlib.compress(pickle.dumps(value), 1)
        self._store.set(key, content)  # type: ignore[arg-type]

    def _take(self, keys: list[str], timeout: float) -> list[Any]:
        """Wait for keys, read them, remove them: the store lives as long as the job."""
        if not keys:
            return []
        self._store.wait(keys, timedelta(seconds=timeout))
        values = [pickle.loads(zlib.decompress(self._store.get(key))) for key in keys]
        for key in keys:
            self._store.delete_key(key)
        return values

    def _conclusion(self, error: BaseException) -> str:
        if isinstance(error, CheckpointError):
            return str(error)
        return f"rank {self.rank} on {_host()}: {describe(error)}"


def describe(error: BaseException) -> str:
    """One line for any exception; ours speak for themselves."""
    if isinstance(error, CheckpointError):
        return str(error)
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _raise_failures(parts: list[Any]) -> None:
    failed = [part for part in parts if isinstance(part, _Failed)]
    if failed:
        words = f"rank {failed[0].rank} on {failed[0].host}: {failed[0].why}"
        others = [part.rank for part in failed[1:]]
        raise CheckpointError(words + (f" (and {_ranks(others)})" if others else ""))


def _host() -> str:
    return os.environ.get(wire.HOST) or socket.gethostname()


def _ranks(ranks: list[int]) -> str:
    named = ", ".join(str(rank) for rank in ranks[:_NAMED_RANKS])
    more = f" and {len(ranks) - _NAMED_RANKS} more" if len(ranks) > _NAMED_RANKS else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {named}{more}"


def _store(joined: bool) -> Any:
    """The group's own store: the only channel that every way of starting ranks has made."""
    if not joined:
        return dist.HashStore()  # type: ignore[attr-defined]
    return dist.distributed_c10d._get_default_store()
