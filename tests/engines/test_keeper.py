"""The keeper: real launchers, real pipes, real signals."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import supervisor.keeper

Wait = Callable[[Callable[[], object]], None]
PROGRAM = [sys.executable, "-S", "-I", supervisor.keeper.__file__]


@dataclass(slots=True)
class Attempt:
    """An attempt's folder, and the keepers started on it."""

    folder: Path
    keepers: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def start(self, *argv: str, sizes: tuple[int, int] | None = None, **overlay: str) -> int:
        """Start a keeper as the supervisor does, and return its pid."""
        launch = {"argv": argv, "environment": overlay, "cwd": str(self.folder)}
        (self.folder / "launch.json").write_text(json.dumps(launch))
        words = [*PROGRAM, str(self.folder), *map(str, sizes or ())]
        environment = {**os.environ, "SUPERVISE_ROLE": "keeper", "FROM_SUPERVISOR": "s3cret"}
        keeper = subprocess.Popen(words, env=environment, start_new_session=True)
        self.keepers.append(keeper)
        return keeper.pid

    def ending(self) -> dict[str, Any]:
        """Wait for the keeper's end; what it says of the launcher's."""
        self.keepers[-1].wait(15)
        return dict(json.loads((self.folder / "exit.json").read_text()))

    def launcher(self) -> int:
        return int(json.loads((self.folder / "keeper.json").read_text())["launcher_pid"])

    def segments(self, stream: str) -> list[Path]:
        return sorted((self.folder / "spool").glob(f"{stream}.*"))

    def spooled(self, stream: str) -> bytes:
        return b"".join(path.read_bytes() for path in self.segments(stream))


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[Attempt]:
    one = Attempt(tmp_path / "attempts" / "001")
    one.folder.mkdir(parents=True)
    yield one
    for keeper in one.keepers:
        if keeper.poll() is None:
            os.kill(one.launcher(), signal.SIGKILL)
            keeper.kill()
            keeper.wait()


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[None]:
    """Somebody supervises the run."""
    with open(tmp_path / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def ended(exit_code: int | None, number: int | None, error: str | None) -> dict[str, object]:
    return {"exit_code": exit_code, "signal": number, "error": error}


def how(ending: dict[str, Any]) -> dict[str, object]:
    return {key: ending[key] for key in ("exit_code", "signal", "error")}


def test_exit_code_and_both_streams_are_kept_apart(attempt: Attempt) -> None:
    attempt.start("sh", "-c", "echo out; echo err >&2; exit 3")

    ending = attempt.ending()

    assert how(ending) == ended(3, None, None)
    assert ending["started_at"] <= ending["ended_at"]
    assert (attempt.spooled("out"), attempt.spooled("err")) == (b"out\n", b"err\n")


def test_a_keeper_that_waits_starts_nothing_before_it_is_told_to(attempt: Attempt) -> None:
    waiting = [*PROGRAM, "--when-told", str(attempt.folder)]
    keeper = subprocess.Popen(waiting, stdin=subprocess.PIPE, start_new_session=True)
    attempt.keepers.append(keeper)
    launch = {"argv": ["echo", "told"], "environment": {}, "cwd": str(attempt.folder)}
    (attempt.folder / "launch.json").write_text(json.dumps(launch))

    assert keeper.stdin is not None
    keeper.stdin.write(b"\n")
    keeper.stdin.close()

    assert how(attempt.ending()) == ended(0, None, None)
    assert attempt.spooled("out") == b"told\n"


def test_a_keeper_whose_supervisor_dies_undecided_leaves_without_a_trace(attempt: Attempt) -> None:
    """A launch that was never journaled must not happen."""
    waiting = [*PROGRAM, "--when-told", str(attempt.folder)]
    launch = {"argv": ["touch", "started"], "environment": {}, "cwd": str(attempt.folder)}
    (attempt.folder / "launch.json").write_text(json.dumps(launch))
    keeper = subprocess.Popen(waiting, stdin=subprocess.PIPE, start_new_session=True)

    assert keeper.stdin is not None
    keeper.stdin.close()

    assert keeper.wait(15) == 0
    assert [path.name for path in attempt.folder.iterdir()] == ["launch.json"]


def test_signal_is_not_an_exit_code(attempt: Attempt) -> None:
    attempt.start("sh", "-c", "kill -SEGV $$")

    assert how(attempt.ending()) == ended(None, signal.SIGSEGV, None)


def test_missing_program_is_said_in_one_line(attempt: Attempt) -> None:
    attempt.start("no-such-launcher")

    error = "cannot start no-such-launcher: No such file or directory"
    assert how(attempt.ending()) == ended(127, None, error)
    assert not (attempt.folder / "keeper.json").exists()


def test_launcher_has_the_supervisors_environment_under_the_overlay(attempt: Attempt) -> None:
    """Only the overlay is written down: the rest may hold secrets."""
    attempt.start("sh", "-c", 'echo "$FROM_SUPERVISOR $OVER ${SUPERVISE_ROLE-none}"', OVER="laid")

    attempt.ending()

    assert attempt.spooled("out") == b"s3cret laid none\n"
    assert "kept" not in (attempt.folder / "launch.json").read_text()


def test_launcher_runs_in_its_own_session_without_ignored_signals(attempt: Attempt) -> None:
    """Python ignores SIGPIPE; a launcher that inherited that would never end with its reader."""
    attempt.start("sh", "-c", "cut -d' ' -f1,6 /proc/$$/stat; grep SigIgn /proc/$$/status")

    attempt.ending()

    ids, ignored = attempt.spooled("out").decode().splitlines()
    assert ids.split()[0] == ids.split()[1]
    assert int(ignored.split()[1], 16) == 0


def test_every_byte_arrives_while_a_reader_unlinks_what_it_has_read(
    attempt: Attempt, lock: None, tmp_path: Path
) -> None:
    """100 MB through segments of 1 MiB and a spool of 4 MiB: back-pressure all the way."""
    block = os.urandom(1_000_003)
    (tmp_path / "block").write_bytes(block)
    loop = f"i=0; while [ $i -lt 100 ]; do cat {tmp_path}/block; i=$((i+1)); done"
    attempt.start("sh", "-c", loop, sizes=(1 << 20, 4 << 20))
    with open(tmp_path / "copy", "wb") as copy:
        most = drain(attempt, copy)

    assert how(attempt.ending()) == ended(0, None, None)
    assert most <= 6 << 20
    assert (tmp_path / "copy").stat().st_size == 100 * len(block)
    with open(tmp_path / "copy", "rb") as copy:
        assert all(copy.read(len(block)) == block for _ in range(100))
    assert not (attempt.folder / "spool" / "lost").exists()


def drain(attempt: Attempt, copy: Any) -> int:
    """Read segments in order, unlinking each that is finished; the most the spool held."""
    most, over = 0, False
    while not over:
        over = attempt.keepers[-1].poll() is not None
        segments = attempt.segments("out")
        most = max(most, sum(path.stat().st_size for path in segments))
        for path in segments if over else segments[:-1]:
            with open(path, "rb") as segment:
                shutil.copyfileobj(segment, copy)
            path.unlink()
    return most


def test_launcher_waits_for_a_living_supervisor_to_make_room(
    attempt: Attempt, lock: None, wait_until: Wait
) -> None:
    attempt.start("sh", "-c", "yes | head -c 8000000; echo done", sizes=(1 << 18, 1 << 20))
    wait_until(lambda: len(attempt.segments("out")) >= 4)
    os.kill(attempt.launcher(), 0)

    read = 0
    while attempt.keepers[-1].poll() is None:
        for path in attempt.segments("out")[:-1]:
            read += path.stat().st_size
            path.unlink()

    assert how(attempt.ending()) == ended(0, None, None)
    assert read + len(attempt.spooled("out")) == 8_000_005


def test_oldest_output_is_dropped_when_no_supervisor_lives(attempt: Attempt) -> None:
    """Training never blocks on a dead supervisor, and the disk stays bounded."""
    attempt.start("sh", "-c", "yes | head -c 8000000; echo done", sizes=(1 << 18, 1 << 20))

    assert how(attempt.ending()) == ended(0, None, None)
    left = attempt.spooled("out")
    lost = (attempt.folder / "spool" / "lost").read_text().splitlines()
    assert left.endswith(b"done\n")
    assert len(left) <= 2 << 20
    assert lost[0] == "out 000001 262144"
    assert sum(int(line.split()[2]) for line in lost) + len(left) == 8_000_005


def test_grandchild_that_holds_the_pipe_does_not_delay_the_end(attempt: Attempt) -> None:
    attempt.start("sh", "-c", "sleep 60 & echo $!; exit 4")

    assert how(attempt.ending()) == ended(4, None, None)
    os.kill(int(attempt.spooled("out")), signal.SIGKILL)


def test_keeper_outlives_the_kill_of_the_process_that_started_it(
    attempt: Attempt, wait_until: Wait
) -> None:
    go = attempt.folder / "go"
    argv = ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; echo late; exit 7"]
    launch = {"argv": argv, "environment": {}, "cwd": "/"}
    (attempt.folder / "launch.json").write_text(json.dumps(launch))
    start = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:], start_new_session=True)"
    words = [sys.executable, "-c", f"{start}; time.sleep(60)", *PROGRAM, str(attempt.folder)]
    parent = subprocess.Popen(words, start_new_session=True)
    wait_until((attempt.folder / "keeper.json").exists)

    os.killpg(parent.pid, signal.SIGKILL)
    parent.wait()
    go.touch()
    wait_until((attempt.folder / "exit.json").exists)

    ending = json.loads((attempt.folder / "exit.json").read_text())
    assert how(ending) == ended(7, None, None)
    assert attempt.spooled("out") == b"late\n"


def test_sigterm_goes_on_to_the_launcher_and_the_keeper_stays(
    attempt: Attempt, wait_until: Wait
) -> None:
    script = "trap 'echo asked; sleep 0.2; exit 9' TERM; echo up; while :; do sleep 0.05; done"
    keeper = attempt.start("sh", "-c", script)
    wait_until(lambda: attempt.spooled("out") == b"up\n")

    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.kill(keeper, number)

    assert how(attempt.ending()) == ended(9, None, None)
    assert attempt.spooled("out") == b"up\nasked\n"


def test_launcher_is_told_when_its_keeper_is_killed(attempt: Attempt, wait_until: Wait) -> None:
    """Without a keeper nobody would see it any more."""
    keeper = attempt.start("sleep", "60")
    wait_until((attempt.folder / "keeper.json").exists)
    launcher = attempt.launcher()

    os.kill(keeper, signal.SIGKILL)

    wait_until(lambda: not runs(launcher))


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_full_disk_is_waited_for_and_noted(
    attempt: Attempt, lock: None, wait_until: Wait, tmp_path: Path
) -> None:
    """A limit on file size refuses a write as a full disk does, and lets go when it is raised."""
    import resource

    go = tmp_path / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.05; done; head -c 200000 /dev/zero; echo end"
    keeper = attempt.start("sh", "-c", script)
    wait_until((attempt.folder / "keeper.json").exists)
    resource.prlimit(keeper, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    go.touch()
    wait_until((attempt.folder / "spool" / "lost").exists)

    resource.prlimit(keeper, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)

    assert how(attempt.ending()) == ended(0, None, None)
    assert attempt.spooled("out") == bytes(200_000) + b"end\n"
    assert (attempt.folder / "spool" / "lost").read_text() == "out 000001 0\n"
