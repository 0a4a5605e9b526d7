"""The local launcher: ranks here and on virtual hosts, and how it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

import supervisor.local_launcher
from supervisor import linux, virtual_host

if TYPE_CHECKING:
    from tests.engines.conftest import VirtualRun

Wait = Callable[[Callable[[], object]], None]
PROGRAM = [sys.executable, "-S", "-I", supervisor.local_launcher.__file__]
ON_VIRTUAL_AND_HERE = pytest.mark.parametrize("where", ["here", "virtual"])


class Place:
    """Three hosts with two ranks each, of either sort."""

    def __init__(self, folder: Path, virtual: "VirtualRun | None") -> None:
        self.run_id = virtual.run_id if virtual else f"test-{uuid4().hex}"
        self.words = [*PROGRAM, "--hostfile", str(folder / "hosts"), "--ranks-per-host", "2"]
        self.words += ["--kill-after", "0.5"]
        self.words += ["--virtual", str(virtual.run_dir)] if virtual else []
        self.daemons = 3 if virtual else 0
        (folder / "hosts").write_text("vhost1\nvhost2\nvhost3\n")

    def start(self, *command: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "SUPERVISE_RUN_ID": self.run_id}
        words = [*self.words, *command]
        return subprocess.Popen(words, env=environment, stdout=-1, stderr=-1, text=True)

    def run(self, *command: str) -> tuple[int, str, str]:
        launcher = self.start(*command)
        out, err = launcher.communicate(timeout=15)
        return launcher.returncode, out, err

    def nothing_is_left(self) -> bool:
        return len(linux.processes_with({"SUPERVISE_RUN_ID": self.run_id})) == self.daemons


@pytest.fixture
def place(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    return Place(tmp_path, request.getfixturevalue("virtual") if where == "virtual" else None)


@ON_VIRTUAL_AND_HERE
def test_every_rank_knows_its_place(place: Place) -> None:
    variables = "$SUPERVISE_HOST $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE"

    exit_code, out, err = place.run("sh", "-c", f"echo {variables}")

    assert (exit_code, err) == (0, "")
    assert sorted(out.splitlines()) == [
        "vhost1 0 0 6 2",
        "vhost1 1 1 6 2",
        "vhost2 2 0 6 2",
        "vhost2 3 1 6 2",
        "vhost3 4 0 6 2",
        "vhost3 5 1 6 2",
    ]


@ON_VIRTUAL_AND_HERE
def test_command_is_not_read_by_the_launcher(place: Place) -> None:
    exit_code, out, _ = place.run("--", "echo", "--hostfile", "x", ":", "-n", "", "a b")

    assert (exit_code, out) == (0, "--hostfile x : -n  a b\n" * 6)


@ON_VIRTUAL_AND_HERE
def test_first_failure_ends_the_others_and_gives_the_exit_code(place: Place) -> None:
    exit_code, _, err = place.run("sh", "-c", "[ $RANK = 3 ] && exit 5; exec sleep 300")

    assert (exit_code, err) == (5, "local: rank 3 on vhost2 exited with code 5\n")
    assert place.nothing_is_left()


@ON_VIRTUAL_AND_HERE
def test_signal_is_named_and_ranks_that_ignore_sigterm_are_killed(place: Place) -> None:
    ignore = "trap '' TERM; while :; do sleep 0.1; done"

    exit_code, _, err = place.run("sh", "-c", f"[ $RANK = 4 ] && kill -KILL $$; {ignore}")

    assert (exit_code, err) == (137, "local: rank 4 on vhost3 was killed by signal 9\n")
    assert place.nothing_is_left()


@ON_VIRTUAL_AND_HERE
def test_others_have_a_moment_for_their_own_last_words(place: Place) -> None:
    """A peer's complaint about a dead rank is evidence: it must not be cut off."""
    others = "sleep 0.3; echo rank $RANK misses its peer; exec sleep 300"

    exit_code, out, _ = place.run("sh", "-c", f"[ $RANK = 0 ] && exit 1; {others}")

    assert exit_code == 1
    assert sorted(out.splitlines()) == [f"rank {rank} misses its peer" for rank in range(1, 6)]


@ON_VIRTUAL_AND_HERE
def test_missing_program_is_said_once(place: Place) -> None:
    said = "local: cannot start no-such: No such file or directory\n"

    assert place.run("no-such") == (127, "", said)


@ON_VIRTUAL_AND_HERE
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signal_goes_on_to_all_ranks_and_decides_the_exit_code(
    place: Place, number: signal.Signals, exit_code: int
) -> None:
    script = "trap 'echo asked; exit 0' TERM INT; echo up; while :; do sleep 0.05; done"
    launcher = place.start("sh", "-c", script)
    assert launcher.stdout is not None
    assert [launcher.stdout.readline() for _ in range(6)] == ["up\n"] * 6

    launcher.send_signal(number)

    assert launcher.communicate(timeout=15) == ("asked\n" * 6, "")
    assert launcher.returncode == exit_code


@ON_VIRTUAL_AND_HERE
def test_second_signal_kills(place: Place) -> None:
    script = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    launcher = place.start("sh", "-c", script)
    assert launcher.stdout is not None
    assert [launcher.stdout.readline() for _ in range(6)] == ["up\n"] * 6

    while launcher.poll() is None:
        launcher.send_signal(signal.SIGTERM)

    launcher.communicate()
    assert launcher.returncode == 143
    assert place.nothing_is_left()


@ON_VIRTUAL_AND_HERE
def test_nothing_outlives_a_launcher_that_is_killed(place: Place, wait_until: Wait) -> None:
    launcher = place.start("sh", "-c", "echo up; exec sleep 300")
    assert launcher.stdout is not None
    assert [launcher.stdout.readline() for _ in range(6)] == ["up\n"] * 6

    launcher.kill()
    launcher.communicate(timeout=15)

    wait_until(place.nothing_is_left)


def test_lost_host_is_named_once_and_the_others_are_ended(
    virtual: "VirtualRun", tmp_path: Path
) -> None:
    place = Place(tmp_path, virtual)
    launcher = place.start("sh", "-c", "echo up; exec sleep 300")
    assert launcher.stdout is not None
    assert [launcher.stdout.readline() for _ in range(6)] == ["up\n"] * 6

    virtual_host.kill_virtual_host(virtual.run_id, "vhost2")

    _, err = launcher.communicate(timeout=15)
    assert (launcher.returncode, err) == (255, "local: lost host vhost2\n")
    assert [len(virtual.on(host)) for host in virtual.hosts] == [1, 0, 1]
    assert place.run("true") == (255, "", "local: lost host vhost2\n")


def test_suspended_host_does_not_keep_a_launcher_that_ends_the_others(
    virtual: "VirtualRun", tmp_path: Path, wait_until: Wait
) -> None:
    """It cannot be told to end its ranks; when it comes back it finds that nobody wants them."""
    place = Place(tmp_path, virtual)
    script = f"echo up; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exit 2"
    launcher = place.start("sh", "-c", script)
    assert launcher.stdout is not None
    assert [launcher.stdout.readline() for _ in range(6)] == ["up\n"] * 6
    virtual_host.suspend_virtual_host(virtual.run_id, "vhost2")

    (tmp_path / "go").touch()

    assert launcher.wait(timeout=15) == 2
    assert len(virtual.on("vhost2")) > 1
    for pid in virtual.on("vhost2"):
        os.kill(pid, signal.SIGCONT)
    wait_until(place.nothing_is_left)
    launcher.communicate(timeout=15)
