"""Virtual hosts: real daemons, and what is started, killed and suspended on them."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import linux, virtual_host
from supervisor.errors import PlatformError

if TYPE_CHECKING:
    from tests.engines.conftest import VirtualRun

Wait = Callable[[Callable[[], object]], None]


def start_on(run: "VirtualRun", host: str, *argv: str, **options: Any) -> "subprocess.Popen[bytes]":
    words = virtual_host.program("exec", str(run.run_dir), host, *argv)
    environment = {**os.environ, "SUPERVISE_RUN_ID": run.run_id, **options.pop("environment", {})}
    return subprocess.Popen(words, env=environment, stdout=-1, stderr=-1, **options)


def run_on(run: "VirtualRun", host: str, *argv: str, **options: Any) -> tuple[int, str, str]:
    """Exit code, output and errors of a command on a virtual host."""
    client = start_on(run, host, *argv, **options)
    out, err = client.communicate(timeout=15)
    return client.returncode, out.decode(), err.decode()


def stops_at(path: Path) -> tuple[str, ...]:
    """A command that says that it runs, and that something of it in another session does."""
    return ("sh", "-c", f"setsid sleep 300 & touch {path}; wait")


def test_command_has_its_host_and_the_callers_stdio_folder_and_environment(
    virtual: "VirtualRun", tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("typed")
    script = 'echo "$SUPERVISE_HOST $MARK ${SUPERVISE_ROLE-none} $PWD"; cat; echo oops >&2; exit 3'
    with open(tmp_path / "in") as typed:
        ended = run_on(
            virtual,
            "vhost2",
            *("sh", "-c", script),
            stdin=typed,
            cwd=tmp_path,
            environment={"MARK": "m", "SUPERVISE_ROLE": "keeper"},
        )

    assert ended == (3, f"vhost2 m none {tmp_path}\ntyped", "oops\n")


def test_role_of_a_probe_stays_for_the_sweep_to_see(virtual: "VirtualRun") -> None:
    script = "echo $SUPERVISE_ROLE"
    ended = run_on(virtual, "vhost1", "sh", "-c", script, environment={"SUPERVISE_ROLE": "probe"})

    assert ended == (0, "probe\n", "")


def test_caller_ends_by_the_signal_the_command_ended_by(virtual: "VirtualRun") -> None:
    assert run_on(virtual, "vhost1", "sh", "-c", "kill -KILL $$")[0] == -signal.SIGKILL
    assert run_on(virtual, "vhost1", "sh", "-c", "kill -SEGV $$")[0] == -signal.SIGSEGV


def test_answers_of_quick_commands_are_not_lost(virtual: "VirtualRun") -> None:
    """A command may end before its caller has returned from sending the request."""
    quick = [start_on(virtual, "vhost1", "sh", "-c", "exit 7") for _ in range(100)]

    ended = [(client.communicate(timeout=15)[1], client.returncode) for client in quick]

    assert ended == [(b"", 7)] * 100


def test_missing_program_is_said_in_one_line(virtual: "VirtualRun") -> None:
    said = "cannot start no-such: No such file or directory\n"

    assert run_on(virtual, "vhost1", "no-such") == (127, "", said)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_signals_reach_the_command(virtual: "VirtualRun", number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 6' {name}; echo up; while :; do sleep 0.05; done"
    client = start_on(virtual, "vhost1", "sh", "-c", script)
    assert client.stdout is not None
    assert client.stdout.readline() == b"up\n"

    client.send_signal(number)

    assert client.communicate(timeout=15) == (f"got {name}\n".encode(), b"")
    assert client.returncode == 6


def test_command_and_descendants_end_when_their_caller_is_killed(
    virtual: "VirtualRun", tmp_path: Path, wait_until: Wait
) -> None:
    client = start_on(virtual, "vhost1", *stops_at(tmp_path / "up"))
    wait_until((tmp_path / "up").exists)
    assert len(virtual.on("vhost1")) > 1

    client.kill()
    client.communicate()

    wait_until(lambda: len(virtual.on("vhost1")) == 1)


def test_command_that_ignores_sigterm_ends_too(
    virtual: "VirtualRun", tmp_path: Path, wait_until: Wait
) -> None:
    script = f"trap '' TERM; touch {tmp_path}/up; while :; do sleep 0.1; done"
    client = start_on(virtual, "vhost1", "sh", "-c", script)
    wait_until((tmp_path / "up").exists)

    client.kill()
    client.communicate()

    wait_until(lambda: len(virtual.on("vhost1")) == 1)


def test_killed_host_takes_all_of_itself_along_and_stays_down(
    virtual: "VirtualRun", tmp_path: Path, wait_until: Wait
) -> None:
    client = start_on(virtual, "vhost2", *stops_at(tmp_path / "up"))
    wait_until((tmp_path / "up").exists)

    virtual_host.kill_virtual_host(virtual.run_id, "vhost2")
    _, err = client.communicate(timeout=15)

    assert (client.returncode, err) == (255, b"Connection to vhost2 closed by remote host.\n")
    assert virtual.on("vhost2") == []
    identity = {"SUPERVISE_RUN_ID": virtual.run_id}
    virtual_host.start_virtual_hosts(virtual.run_dir, virtual.hosts, identity)
    assert run_on(virtual, "vhost2", "true") == (255, "", "virtual host vhost2 is down\n")
    assert run_on(virtual, "vhost1", "true")[0] == 0


def test_daemon_that_is_killed_takes_its_children_along(
    virtual: "VirtualRun", tmp_path: Path, wait_until: Wait
) -> None:
    client = start_on(virtual, "vhost3", "sh", "-c", f"touch {tmp_path}/up; exec sleep 300")
    wait_until((tmp_path / "up").exists)
    roles = {"SUPERVISE_RUN_ID": virtual.run_id, "SUPERVISE_ROLE": "virtual-host"}
    (daemon,) = linux.processes_with({**roles, "SUPERVISE_HOST": "vhost3"})

    os.kill(daemon, signal.SIGKILL)
    client.communicate(timeout=15)

    assert client.returncode == 255
    wait_until(lambda: virtual.on("vhost3") == [])


def test_starting_hosts_twice_leaves_those_that_run_alone(virtual: "VirtualRun") -> None:
    before = [virtual.on(host) for host in virtual.hosts]

    identity = {"SUPERVISE_RUN_ID": virtual.run_id}
    virtual_host.start_virtual_hosts(virtual.run_dir, virtual.hosts, identity)

    assert [virtual.on(host) for host in virtual.hosts] == before


def test_host_that_kills_itself_from_within_is_gone(
    virtual: "VirtualRun", wait_until: Wait
) -> None:
    """A fault in an example's rank: the caller lives on the host it kills, and goes last."""
    words = virtual_host.program("kill", str(virtual.run_dir), "vhost1")

    exit_code, _, err = run_on(virtual, "vhost1", *words)

    assert (exit_code, err) == (255, "Connection to vhost1 closed by remote host.\n")
    wait_until(lambda: virtual.on("vhost1") == [])


def test_suspended_host_says_nothing_and_is_clean_after_it_returns(
    virtual: "VirtualRun", tmp_path: Path, wait_until: Wait
) -> None:
    """As a kernel that hangs: connections stand, nothing comes, processes are still there."""
    running = start_on(virtual, "vhost1", *stops_at(tmp_path / "up"))
    wait_until((tmp_path / "up").exists)

    virtual_host.suspend_virtual_host(virtual.run_id, "vhost1")

    states = {linux.state_and_parent(pid)[0] for pid in virtual.on("vhost1")}
    assert states == {"T"}
    late = start_on(virtual, "vhost1", "touch", str(tmp_path / "late"))
    with pytest.raises(subprocess.TimeoutExpired):
        late.wait(0.5)
    assert running.poll() is None
    for client in (running, late):
        client.kill()
        client.wait()
    for pid in virtual.on("vhost1"):
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: len(virtual.on("vhost1")) == 1)
    for client in (running, late):
        client.communicate(timeout=15)


def test_suspended_host_can_be_killed(virtual: "VirtualRun") -> None:
    virtual_host.suspend_virtual_host(virtual.run_id, "vhost1")
    client = start_on(virtual, "vhost1", "true")

    virtual_host.kill_virtual_host(virtual.run_id, "vhost1")

    _, err = client.communicate(timeout=15)
    assert client.returncode == 255
    assert err in (
        b"Connection to vhost1 closed by remote host.\n",
        b"virtual host vhost1 is down\n",
    )
    assert virtual.on("vhost1") == []


def test_stopping_ends_everything_and_hosts_may_run_again(
    virtual: "VirtualRun", tmp_path: Path, wait_until: Wait
) -> None:
    client = start_on(virtual, "vhost1", *stops_at(tmp_path / "up"))
    wait_until((tmp_path / "up").exists)
    virtual_host.kill_virtual_host(virtual.run_id, "vhost3")

    virtual_host.stop_virtual_hosts(virtual.run_dir)

    client.communicate(timeout=15)
    assert [virtual.on(host) for host in virtual.hosts] == [[], [], []]
    identity = {"SUPERVISE_RUN_ID": virtual.run_id}
    virtual_host.start_virtual_hosts(virtual.run_dir, virtual.hosts, identity)
    assert listed(virtual) == "vhost1 up\nvhost2 up\nvhost3 down\n"


def listed(run: "VirtualRun") -> str:
    words = virtual_host.program("list", str(run.run_dir))
    return subprocess.run(words, capture_output=True, check=True, text=True).stdout


def test_ssh_joins_its_words_for_a_shell_and_passes_exit_codes(virtual: "VirtualRun") -> None:
    ssh = str(virtual.run_dir / "virtual" / "ssh")
    words = [ssh, "-x", "-o", "BatchMode=yes", "me@vhost2", "echo", "$SUPERVISE_HOST", "'a  b';"]

    ended = subprocess.run([*words, "exit 4"], capture_output=True, check=False, text=True)

    assert (ended.returncode, ended.stdout, ended.stderr) == (4, "vhost2 a  b\n", "")


def test_ssh_answers_255_for_a_signal(virtual: "VirtualRun") -> None:
    ssh = str(virtual.run_dir / "virtual" / "ssh")

    ended = subprocess.run([ssh, "vhost2", "kill -9 $$"], check=False)

    assert ended.returncode == 255


def test_unknown_host_is_a_usage_mistake_said_in_one_line(virtual: "VirtualRun") -> None:
    words = virtual_host.program("kill", str(virtual.run_dir), "vhost9")

    ended = subprocess.run(words, capture_output=True, check=False, text=True)

    known = "vhost1, vhost2, vhost3"
    said = f"virtual_host: {virtual.run_dir} has no virtual host vhost9; it has: {known}\n"
    assert (ended.returncode, ended.stderr) == (3, said)


def test_hosts_leave_by_themselves_when_nobody_needs_them(tmp_path: Path, wait_until: Wait) -> None:
    """A supervisor killed for good must not leave daemons on a laptop for ever."""
    run_id = f"alone-{os.getpid()}"
    virtual_host.start_virtual_hosts(tmp_path, ["vhost1"], {"SUPERVISE_RUN_ID": run_id})
    host = {"SUPERVISE_RUN_ID": run_id, "SUPERVISE_HOST": "vhost1"}
    assert len(linux.processes_with(host)) == 1

    wait_until(lambda: not linux.processes_with(host))

    assert not (tmp_path / "virtual" / "vhost1.socket").exists()


def test_folder_that_cannot_be_written_is_a_platform_error(tmp_path: Path) -> None:
    (tmp_path / "virtual").symlink_to(tmp_path / "nowhere")

    with pytest.raises(PlatformError, match="virtual hosts"):
        virtual_host.start_virtual_hosts(tmp_path, ["vhost1"], {"SUPERVISE_RUN_ID": "x"})
