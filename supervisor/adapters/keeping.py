"""The supervisor's side of the keeper: start one, find one that lives, see it end, end its
launcher.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from supervisor import wire
from supervisor.adapters.launchers import Plan
from supervisor.adapters.launchers.values import program_path
from supervisor.adapters.run_folder import AttemptFolder
from supervisor.core.settings import Settings
from supervisor.core.value import value
from supervisor.errors import PlatformError

_BEAT_SECONDS = 3.0  # mean time between a shim's heartbeats; several fit into the silence limit
_START_LIMIT = 30.0  # a keeper takes 10 ms; a stalled shared file system may take longer


@value
class Kept:
    """A keeper and its launcher, told from later owners of the same pid by their start times."""

    keeper: int
    keeper_started: int
    launcher: int
    launcher_started: int


@value
class Ending:
    """How the launcher ended, in the keeper's words."""

    exit_code: int | None
    signal: int | None
    error: str


def beat_seconds(settings: Settings) -> float:
    """How often shims beat."""
    return min(_BEAT_SECONDS, settings.silence_timeout / 4)


def write_launch(folder: AttemptFolder, plan: Plan) -> None:
    """Put what the keeper starts into the attempt's folder; only our own variables, never the
    user's.
    """
    folder.create()
    folder.hostfile.write_text(plan.hostfile)
    document = {"argv": list(plan.argv), "environment": dict(plan.environment), "cwd": os.getcwd()}
    folder.launch.write_text(json.dumps(document, indent=1) + "\n")


def start_keeper(folder: AttemptFolder, run_id: str) -> "subprocess.Popen[bytes]":
    """Start a keeper for an attempt; it does nothing before it is told to."""
    environment = dict(os.environ, **{wire.ROLE: "keeper", wire.RUN_ID: run_id})
    environment.pop(wire.RESUME_FROM, None)  # one that was inherited is another run's
    program = program_path("keeper.py")
    folder.path.mkdir(parents=True, exist_ok=True)
    with open(folder.path / "keeper.log", "ab") as log:
        try:
            return subprocess.Popen(
                [sys.executable, "-S", "-I", program, "--when-told", str(folder.path)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            raise PlatformError(f"cannot start the keeper: {error}") from error


def tell_to_launch(keeper: "subprocess.Popen[bytes]") -> None:
    """Have a keeper start what stands in its attempt's folder."""
    assert keeper.stdin is not None
    with suppress(BrokenPipeError):  # it died: wait_until_kept says why
        keeper.stdin.write(b"\n")
        keeper.stdin.flush()
    dismiss(keeper)


def dismiss(keeper: "subprocess.Popen[bytes]") -> None:
    """Nothing more will be said to this keeper; one that was not told to launch leaves."""
    assert keeper.stdin is not None
    with suppress(BrokenPipeError):
        keeper.stdin.close()


def wait_until_kept(folder: AttemptFolder, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the keeper has said that the launcher runs, or how it ended."""
    deadline = time.monotonic() + _START_LIMIT
    pause = 0.001
    while not (folder.keeper.exists() or folder.exit.exists()):
        if process.poll() is not None or time.monotonic() > deadline:
            words = (folder.path / "keeper.log").read_text(errors="replace").strip()
            raise PlatformError(f"the keeper did not start: {words or 'no word from it'}")
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def has_kept(folder: AttemptFolder, wait_seconds: float) -> bool:
    """Whether a keeper has taken this attempt up, ended or not; waits a moment for one just
    started.
    """
    deadline = time.monotonic() + wait_seconds
    while not (folder.keeper.exists() or folder.exit.exists()):
        if not (folder.path / "keeper.log").exists() or time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def find_kept(folder: AttemptFolder) -> Kept | None:
    """The keeper of this attempt, when it still lives."""
    document = _read_json(folder.keeper)
    if document is None:
        return None
    kept = Kept(
        keeper=document["pid"],
        keeper_started=document["start_time"],
        launcher=document["launcher_pid"],
        launcher_started=document["launcher_start_time"],
    )
    return kept if process_started(kept.keeper) == kept.keeper_started else None


def read_ending(folder: AttemptFolder) -> Ending | None:
    """How the launcher ended, once the keeper has written it."""
    document = _read_json(folder.exit)
    if document is None:
        return None
    return Ending(
        exit_code=document["exit_code"],
        signal=document["signal"],
        error=document.get("error") or "",
    )


def signal_launcher(kept: Kept, number: signal.Signals) -> bool:
    """Send a signal to the launcher if it is still the process we started."""
    if process_started(kept.launcher) != kept.launcher_started:
        return False
    try:
        os.kill(kept.launcher, number)
    except ProcessLookupError:
        return False
    return True


def kill_launcher(kept: Kept) -> None:
    """SIGKILL the launcher and all of its session on this machine: it had its grace."""
    signal_launcher(kept, signal.SIGKILL)
    for pid in session_members(kept.launcher):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def watch_keeper(kept: Kept) -> int | None:
    """A descriptor that becomes readable when the keeper ends; None when it has already."""
    try:
        descriptor = os.pidfd_open(kept.keeper)
    except ProcessLookupError:
        return None
    if process_started(kept.keeper) != kept.keeper_started:
        os.close(descriptor)
        return None
    return descriptor


def has_ended(descriptor: int, wait_seconds: float) -> bool:
    """Wait for the end of the process behind a descriptor of watch_keeper."""
    return bool(select.select([descriptor], [], [], wait_seconds)[0])


def process_started(pid: int) -> int | None:
    """Start time of a living process in clock ticks since boot; None when there is none (or a
    zombie).
    """
    fields = _stat_fields(pid)
    return int(fields[19]) if fields and fields[0] != "Z" else None


def session_members(session: int) -> list[int]:
    """Pids on this machine whose session is this one."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if (fields := _stat_fields(pid)) and fields[3] == str(session)]


def _stat_fields(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
