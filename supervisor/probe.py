"""The program run once per host: ends leftovers of the run, checks the host, carries requests to
its ranks.

Runs through the same launcher as the ranks, as `python -I -m supervisor.probe`, and answers with
one line of JSON on its standard output: {"host", "answer": "pass" | "fail" | "unknown", "why",
"leftovers", "running"}. No answer in time means that the host cannot be reached; a check that could not be
made is "unknown", which is not "fail".
"""

import argparse
import glob
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from supervisor import wire

_LEAST_SHARED_MEMORY = 64 * 1024  # bytes: a slot a rank needs 4 KiB
_REAP_LIMIT = 5.0  # seconds; a process in uninterruptible sleep outlives SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at."""

    name: str
    answer: str
    why: str = ""
    cause: str = ""  # of a failure; empty: the host's hardware


def main(argv: Sequence[str] | None = None) -> int:
    """Do what was asked for and print the answer."""
    options = _parse(argv)
    leftovers = reap(options.run_id, options.attempt) if options.reap else []
    running = (
        None if options.reap else sum(1 for _ in leftovers_of(options.run_id, options.attempt))
    )
    if options.stacks:
        ask_for_stacks(options.run_id)
    checks = [check_leftovers(leftovers), check_shared_memory()]
    checks += [check_folder(Path(folder)) for folder in options.folder]
    worst = min(checks, key=lambda check: ("fail", "unknown", "pass").index(check.answer))
    answer = {
        "host": os.environ.get(wire.HOST) or wire.canonical_host(os.uname().nodename),
        "answer": worst.answer,
        "why": worst.why,
        "cause": worst.cause,
        "leftovers": len(leftovers),
        "running": running,
    }
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="supervisor.probe", allow_abbrev=False)
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--attempt", type=int, required=True, help="newest attempt to reap")
    parser.add_argument("--reap", action="store_true")
    parser.add_argument("--stacks", action="store_true")
    parser.add_argument("--folder", action="append", default=[])
    return parser.parse_args(argv)


def reap(run_id: str, attempt: int) -> list[psutil.Process]:
    """SIGKILL what is left of the attempts up to this one on this host, until nothing is.

    Answers with what was found; those that would not die are still running when this returns.
    """
    found: dict[int, psutil.Process] = {}
    deadline = time.monotonic() + _REAP_LIMIT
    while time.monotonic() < deadline:
        left = list(leftovers_of(run_id, attempt))
        if not left:
            break
        for process in left:
            found[process.pid] = process
            _kill(process)
        psutil.wait_procs(left, timeout=0.2)
    _remove_slots(run_id, attempt)
    return list(found.values())


def _remove_slots(run_id: str, attempt: int) -> None:
    """A shim that was killed leaves the slot of its rank behind."""
    for number in range(1, attempt + 1):
        pattern = f"supervise-{os.getuid()}-{glob.escape(run_id)}-{number}-*"
        for path in Path("/dev/shm").glob(pattern):
            path.unlink(missing_ok=True)


def leftovers_of(run_id: str, attempt: int) -> Iterator[psutil.Process]:
    """Processes of attempts up to this one, on this (possibly virtual) host, that are no part of
    the supervision.
    """
    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        if process.pid in spared:
            continue
        environment = _environment(process)
        if environment.get(wire.RUN_ID) != run_id or environment.get(wire.ROLE):
            continue
        if not _is_here(environment):
            continue
        number = environment.get(wire.ATTEMPT, "")
        if number.isdigit() and int(number) <= attempt and _runs(process):
            yield process


def ask_for_stacks(run_id: str) -> None:
    """SIGUSR1 to each rank that said it writes its stacks then; others would die of it."""
    for process in psutil.process_iter():
        environment = _environment(process)
        if environment.get(wire.RUN_ID) == run_id and _is_here(environment):
            _ask_for_stacks(process, environment.get(wire.SLOT, ""))


def _ask_for_stacks(process: psutil.Process, slot: str) -> None:
    try:
        state = wire.read(wire.open_slot(slot, writable=False))
    except (OSError, ValueError):  # gone, or cut short by a rank that is being killed
        return
    if state is not None and state.flags & wire.SLOT_FLAG_STACKS and state.pid == process.pid:
        with suppress(psutil.Error):
            process.send_signal(signal.SIGUSR1)


def _is_here(environment: dict[str, str]) -> bool:
    """On a virtual host only what belongs to that host is here."""
    own_host = os.environ.get(wire.HOST)
    return own_host is None or environment.get(wire.HOST) == own_host


def check_leftovers(leftovers: Sequence[psutil.Process]) -> Check:
    """A process that SIGKILL does not end holds devices and ports; the host cannot be used."""
    immortal = [process for process in leftovers if _runs(process)]
    if not immortal:
        return Check(name="leftovers", answer="pass")
    pids = ", ".join(str(process.pid) for process in immortal[:5])
    why = f"{len(immortal)} processes of the run do not die of SIGKILL (pid {pids})"
    return Check(name="leftovers", answer="fail", why=why)


def check_shared_memory() -> Check:
    """Slots, and most frameworks' data loaders, live in /dev/shm."""
    try:
        free = shutil.disk_usage("/dev/shm").free
    except OSError as error:
        return Check(name="shared memory", answer="unknown", why=f"/dev/shm: {error.strerror}")
    if free < _LEAST_SHARED_MEMORY:
        why = f"/dev/shm has {free} bytes left"
        return Check(name="shared memory", answer="fail", why=why, cause="environment")
    return Check(name="shared memory", answer="pass")


def check_folder(folder: Path) -> Check:
    """A folder that all other hosts can read must be readable here: else the mount is missing."""
    try:
        os.listdir(folder)
    except FileNotFoundError:
        return Check(name="folder", answer="unknown", why=f"{folder} does not exist here")
    except OSError as error:
        why = f"cannot read {folder}: {error.strerror}"
        return Check(name="folder", answer="fail", why=why, cause="environment")
    return Check(name="folder", answer="pass")


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.Error:
        return


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


if __name__ == "__main__":
    sys.exit(main())
