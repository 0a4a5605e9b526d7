"""Plans carried out: three hosts of two ranks under each launcher, with a real mpiexec."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor import virtual_host
from supervisor.adapters.launchers import (
    Launcher,
    LaunchRequest,
    find_launcher,
    plan,
    plan_on_host,
)

if TYPE_CHECKING:
    from tests.engines.conftest import VirtualRun

pytestmark = pytest.mark.engine
ALLREDUCE = (
    "from mpi4py import MPI; import os;"
    "total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank);"
    "os.write(1, f'{os.environ[\"SUPERVISE_HOST\"]} {total}\\n'.encode())"
)


@pytest.fixture(params=["local", "mpich"])
def launcher(request: pytest.FixtureRequest) -> Iterator[Launcher]:
    return find_launcher(request.param, True, False, os.environ)


def request_for(
    run: "VirtualRun", *command: str, hosts: Sequence[str] | None = None, shim: bool = False
) -> LaunchRequest:
    return LaunchRequest(
        hosts=tuple(hosts or run.hosts),
        ranks_per_host=2,
        command=command,
        run_id=run.run_id,
        run_dir=run.run_dir,
        attempt_dir=run.run_dir,
        attempt=1,
        resume_from="",
        virtual=True,
        shim=shim,
        beat_seconds=60.0,
        master_port=29500,
    )


def start(launcher: Launcher, request: LaunchRequest) -> "subprocess.Popen[str]":
    planned = plan(launcher, request)
    planned.hostfile_path.write_text(planned.hostfile)
    environment = {**os.environ, **planned.environment}
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.Popen(
        planned.argv,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def outcome(launcher: Launcher, request: LaunchRequest) -> tuple[int, list[str]]:
    process = start(launcher, request)
    out, err = process.communicate(timeout=18)
    assert process.returncode == 0, err
    return process.returncode, sorted(out.splitlines())


def test_every_rank_sees_its_host_and_the_runs_variables(
    launcher: Launcher, virtual: "VirtualRun"
) -> None:
    script = "echo $SUPERVISE_HOST $SUPERVISE_ATTEMPT $SUPERVISE_LAUNCHER $MASTER_ADDR:$MASTER_PORT"

    exit_code, lines = outcome(launcher, request_for(virtual, "sh", "-c", script))

    said = [f"{host} 1 {launcher.flavour} 127.0.0.1:29500" for host in virtual.hosts]
    assert (exit_code, lines) == (0, sorted(said * 2))


def test_command_reaches_the_ranks_untouched(
    launcher: Launcher, virtual: "VirtualRun", tmp_path: Path
) -> None:
    """Hydra takes a lone colon for the beginning of another program."""
    words = ["-n", ":", "a b", "$HOME", "", "*", "'", '"', "\\", "--", "-f", "last"]
    show = tmp_path / "show.py"
    show.write_text("import sys, os; os.write(1, (ascii(sys.argv[1:]) + '\\n').encode())")

    _, lines = outcome(launcher, request_for(virtual, sys.executable, str(show), *words))

    assert lines == [ascii(words)] * 6


def test_ranks_behind_the_shim_know_their_place(launcher: Launcher, virtual: "VirtualRun") -> None:
    script = "echo place $SUPERVISE_HOST $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE"
    process = start(launcher, request_for(virtual, "sh", "-c", script, shim=True))

    out, err = process.communicate(timeout=18)

    assert process.returncode == 0, err
    places = [f"place {virtual.hosts[rank // 2]} {rank} {rank % 2} 6 2" for rank in range(6)]
    assert [place for place in places if place not in out] == []


def test_killed_host_ends_the_launcher_and_is_not_used_again(
    launcher: Launcher, virtual: "VirtualRun"
) -> None:
    """Hydra names the host only when ssh's word reaches it before it gives up: a race."""
    process = start(launcher, request_for(virtual, "sh", "-c", "echo up; exec sleep 300"))
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(6)] == ["up\n"] * 6

    virtual_host.kill_virtual_host(virtual.run_id, "vhost2")
    _, err = process.communicate(timeout=15)

    assert process.returncode == 255
    assert launcher.flavour != "local" or "lost host vhost2" in err
    assert virtual.on("vhost2") == []
    again = start(launcher, request_for(virtual, "true"))
    _, err = again.communicate(timeout=15)
    assert again.returncode == 255
    assert "vhost2" in err
    others = request_for(virtual, "true", hosts=["vhost1", "vhost3"])
    assert outcome(launcher, others) == (0, [])


def test_nothing_is_left_on_the_hosts_after_the_launcher_is_killed(
    launcher: Launcher, virtual: "VirtualRun", wait_until: "object"
) -> None:
    process = start(launcher, request_for(virtual, "sh", "-c", "echo up; exec sleep 300"))
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(6)] == ["up\n"] * 6

    process.kill()
    process.communicate(timeout=15)

    assert callable(wait_until)
    wait_until(lambda: [len(virtual.on(host)) for host in virtual.hosts] == [1, 1, 1])


def test_program_runs_once_on_one_host(launcher: Launcher, virtual: "VirtualRun") -> None:
    words = plan_on_host(
        launcher, "vhost3", ["sh", "-c", "echo $SUPERVISE_HOST"], request_for(virtual)
    )

    ended = subprocess.run(words, capture_output=True, check=False, text=True, timeout=15)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "vhost3\n", "")


@pytest.mark.parametrize("shim", [False, True])
def test_mpi_program_runs_across_virtual_hosts(virtual: "VirtualRun", shim: bool) -> None:
    """Hydra hands PMI to its children by descriptor: the shim must leave it open."""
    mpich = find_launcher("mpich", True, False, os.environ)
    process = start(mpich, request_for(virtual, sys.executable, "-c", ALLREDUCE, shim=shim))

    out, err = process.communicate(timeout=18)

    assert process.returncode == 0, err
    assert [out.count(f"{host} 15") for host in virtual.hosts] == [2, 2, 2]


def test_mpich_runs_on_this_machine_alone(virtual: "VirtualRun") -> None:
    mpich = find_launcher("mpich", False, True, os.environ)
    request = request_for(virtual, "sh", "-c", "echo $PMI_RANK", hosts=["localhost"])
    here = LaunchRequest(
        **{name: getattr(request, name) for name in LaunchRequest.__slots__ if name != "virtual"},
        virtual=False,
    )

    assert outcome(mpich, here) == (0, ["0", "1"])
