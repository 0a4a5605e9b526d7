"""Faults on demand, to see what a supervisor does about them.

A fault strikes one rank (or all, with -1) at the beginning of one step of one attempt, so that the
relaunch survives it.
"""

import os
import signal
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from supervisor import wire
from supervisor.errors import UsageError

ALL_RANKS = -1
_CHATTER_SECONDS = 0.2


class FaultKind(StrEnum):
    """How a rank fails."""

    RAISE = "raise"
    KEYERROR = "keyerror"
    EXIT3 = "exit3"
    SIGKILL = "sigkill"
    SIGSEGV = "sigsegv"
    SIGSTOP = "sigstop"
    HANG = "hang"
    HOST = "host"  # every process of this rank's virtual host dies at once
    SUSPEND_HOST = "suspend-host"  # every process of this rank's virtual host stops, silently


_SIGNALS = {
    FaultKind.SIGKILL: signal.SIGKILL,
    FaultKind.SIGSEGV: signal.SIGSEGV,
    FaultKind.SIGSTOP: signal.SIGSTOP,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What strikes whom, and when."""

    kind: FaultKind
    rank: int
    step: int
    attempt: int

    def strikes(self, rank: int, step: int) -> bool:
        """Whether this rank fails now. Without a supervisor every launch is attempt 1."""
        attempt = int(os.environ.get(wire.ATTEMPT) or 1)
        return self.rank in {rank, ALL_RANKS} and (self.step, self.attempt) == (step, attempt)


def strike(fault: Fault, rank: int) -> None:
    """Fail in the way asked for. Returns only from a stop that was continued."""
    where = f"injected fault: rank {rank}, step {fault.step}"
    match fault.kind:
        case FaultKind.RAISE:
            raise RuntimeError(where)
        case FaultKind.KEYERROR:
            raise KeyError(where)
        case FaultKind.EXIT3:
            raise SystemExit(3)
        case FaultKind.HANG:
            _hang()
        case FaultKind.HOST | FaultKind.SUSPEND_HOST:
            _strike_host(fault.kind)
        case FaultKind.SIGKILL | FaultKind.SIGSEGV | FaultKind.SIGSTOP:
            os.kill(os.getpid(), _SIGNALS[fault.kind])


def chatter(rank: int) -> None:
    """Print a line every fifth of a second, as a progress bar's thread does, whatever happens."""

    def talk() -> None:
        while True:
            print(f"rank {rank} is still here", flush=True)
            time.sleep(_CHATTER_SECONDS)

    threading.Thread(target=talk, name="chatter", daemon=True).start()


def _hang() -> NoReturn:
    while True:
        time.sleep(3600)


def _strike_host(kind: FaultKind) -> None:
    run_id, host = os.environ.get(wire.RUN_ID), os.environ.get(wire.HOST)
    if not run_id or not host:
        raise UsageError(f"--fault {kind} needs virtual hosts: run it under supervise")
    from supervisor import virtual_host

    if kind is FaultKind.HOST:
        virtual_host.kill_virtual_host(run_id, host)
    else:
        virtual_host.suspend_virtual_host(run_id, host)
    _hang()
