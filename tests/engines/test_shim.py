"""The shim with real commands: how it starts them, how they end, and what is left: nothing."""

import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest
from engines.shim_bench import (
    PATIENCE,
    decoded,
    environ,
    is_gone,
    python,
    run,
    running,
    shim_argv,
    wait_until,
)

from supervisor import wire

pytestmark = pytest.mark.engine


def pid_in(output: bytes) -> int:
    return int(output.split()[-1])


def test_the_command_sees_its_place_and_not_the_shims_own_variables() -> None:
    names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", wire.HOST, wire.LAUNCHER]
    program = f"import os; print([os.environ.get(name) for name in {names}])"
    variables = {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"}
    code, told = run(*python(program), SUPERVISE_LAUNCHER="mpich", SUPERVISE_HOST="x1", **variables)

    assert 0 == code
    assert b"['5', '8', '1', '4', 'x1', None]\n" == told.output(5)
    assert (5, 1, 8, "x1") == tuple(
        told.reports(wire.Kind.STARTED, 5)[0][name]
        for name in ("rank", "local_rank", "world_size", "host")
    )


def test_the_host_is_this_machine_when_nobody_names_it() -> None:
    code, told = run("true")

    assert (0, wire.canonical_host(socket.gethostname())) == (code, told.exited()["host"])


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SUPERVISE_LAUNCHER": "mpich"}, "$PMI_RANK is missing"),
        ({"SUPERVISE_LAUNCHER": ""}, "$SUPERVISE_LAUNCHER is ''"),
        ({"LOCAL_RANK": "one"}, "$LOCAL_RANK is set to 'one'"),
    ],
)
def test_a_rank_without_a_place_is_refused_in_one_line(
    variables: dict[str, str], words: str
) -> None:
    own = {name: value for name, value in environ().items() if not name.startswith("PMI")}
    ended = subprocess.run(
        shim_argv("true"), env=own | variables, capture_output=True, text=True, timeout=PATIENCE
    )

    assert (3, "", 1) == (ended.returncode, ended.stdout, ended.stderr.count("\n"))
    assert words in ended.stderr


def test_a_shim_without_a_command_is_a_mistake_in_usage() -> None:
    ended = subprocess.run(shim_argv(), env=environ(), capture_output=True, timeout=PATIENCE)

    assert (2, b"") == (ended.returncode, ended.stdout)


@pytest.mark.parametrize("exit_code", [0, 1, 7, 255])
def test_the_exit_code_is_the_commands(exit_code: int) -> None:
    code, told = run("sh", "-c", f"echo out; echo err >&2; exit {exit_code}")

    assert exit_code == code
    assert b"out\nerr\n" == told.output()
    assert (exit_code, None, 8) == tuple(
        told.exited()[name] for name in ("exit_code", "signal", "size")
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT])
def test_the_shim_ends_by_the_signal_that_ended_the_command(number: signal.Signals) -> None:
    code, told = run("sh", "-c", f"kill -{number.value} $$")

    assert -number == code
    assert (None, number) == (told.exited()["exit_code"], told.exited()["signal"])


@pytest.mark.parametrize(
    ("command", "exit_code", "why"),
    [
        ("/no/such/command", 127, b"No such file or directory"),
        ("no-such-command", 127, b"No such file or directory"),
        ("/etc/passwd", 126, b"Permission denied"),
    ],
)
def test_a_command_that_cannot_be_started_is_told_as_a_shell_would(
    command: str, exit_code: int, why: bytes
) -> None:
    code, told = run(command)

    assert (exit_code, exit_code) == (code, told.exited()["exit_code"])
    assert b"supervise: cannot start %s: %s\n" % (command.encode(), why) == told.output()


@pytest.mark.parametrize(("rank", "seen"), [(0, b"words"), (1, b"")])
def test_only_the_first_rank_reads_standard_input(rank: int, seen: bytes) -> None:
    ended = subprocess.run(
        shim_argv("cat"),
        env=environ(rank),
        input=b"words",
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
    )

    assert seen == decoded(ended.stdout).output(rank)


def test_inherited_descriptors_stay_open() -> None:
    """Hydra hands each rank a connected socket and says its number in PMI_FD."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        program = f"import socket; socket.socket(fileno={theirs.fileno()}).sendall(b'hello')"
        subprocess.run(
            shim_argv(*python(program)),
            env=environ(),
            pass_fds=[theirs.fileno()],
            stdout=subprocess.DEVNULL,
            timeout=PATIENCE,
        )
        assert b"hello" == ours.recv(5)


def test_the_command_gets_default_dispositions() -> None:
    """Python ignores SIGPIPE, and exec hands that on: `yes | head` would never end."""
    program = "import signal; print(signal.getsignal(signal.SIGTERM))"
    code, told = run("sh", "-c", f'yes | head -n 1; exec {sys.executable} -c "{program}"')

    assert (0, b"y\n0\n") == (code, told.output().replace(b"Handlers.SIG_DFL", b"0"))


def test_a_grandchild_that_holds_the_pipe_delays_nothing_and_is_ended() -> None:
    code, told = run("sh", "-c", "sleep 600 & echo $!")

    assert 0 == code
    wait_until(lambda: is_gone(pid_in(told.output())))


def test_a_grandchild_in_a_session_of_its_own_is_ended() -> None:
    code, told = run("sh", "-c", "(setsid sleep 600 >/dev/null 2>&1 & echo $!)")

    assert 0 == code
    wait_until(lambda: is_gone(pid_in(told.output())))


def test_words_of_a_grandchild_that_outlives_the_command_a_little_are_kept() -> None:
    code, told = run("sh", "-c", "(sleep 0.1; echo late) & exit 3")

    assert (3, b"late\n") == (code, told.output())


def test_no_slot_is_left_behind() -> None:
    code, told = run(*python("import os; print(os.environ['SUPERVISE_SLOT'])"))
    path = told.output().decode().strip()

    assert (0, True, False) == (code, os.path.isabs(path), os.path.exists(path))


def test_signals_reach_the_command() -> None:
    program = """
import signal
for name in ("SIGHUP", "SIGINT", "SIGUSR1", "SIGUSR2", "SIGTERM"):
    signal.signal(getattr(signal, name), lambda number, _: print("got", number))
print("ready")
for _ in range(5): signal.pause()
"""
    with running(*python(program)) as shim:
        shim.wait_for(b"ready\n")
        for number in (
            signal.SIGHUP,
            signal.SIGINT,
            signal.SIGUSR1,
            signal.SIGUSR2,
            signal.SIGTERM,
        ):
            shim.process.send_signal(number)
            shim.wait_for(b"got %d\n" % number)
        code, _ = shim.end()

    assert 0 == code


def test_a_signal_that_slurm_sends_to_every_process_is_not_passed_on_again() -> None:
    """A handler that runs twice at once saves twice at once."""
    program = """
import signal, time
signal.signal(signal.SIGUSR1, lambda number, _: print("got", number))
signal.signal(signal.SIGUSR2, lambda number, _: print("over"))
print("ready")
signal.pause()
"""
    slurm = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_LOCALID": "1"}
    slurm |= {"SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_NODEID": "0"}
    with running(*python(program), SUPERVISE_LAUNCHER="srun", **slurm) as shim:
        shim.wait_for(b"ready\n")
        (command,) = psutil.Process(shim.process.pid).children()
        shim.process.send_signal(signal.SIGUSR1)
        command.send_signal(signal.SIGUSR2)
        shim.wait_for(b"over\n")
        _, told = shim.end()

    assert b"got" not in told.output()


def test_a_second_sigterm_kills_the_tree() -> None:
    program = "trap 'echo first' TERM; sleep 600 & echo $!; while true; do sleep 0.05; done"
    with running("sh", "-c", program) as shim:
        grandchild = pid_in(shim.wait_for(b"\n").output())
        shim.process.terminate()
        shim.wait_for(b"first\n")
        shim.process.terminate()
        code, told = shim.end()

    assert (-signal.SIGKILL, signal.SIGKILL) == (code, told.exited()["signal"])
    assert is_gone(grandchild)


def test_a_signal_reaches_the_command_while_nobody_reads_the_output() -> None:
    """While a supervisor is away the pipe fills; the launcher's SIGTERM must pass all the same."""
    program = "trap 'exit 5' TERM; exec 2>/dev/null; echo ready; yes & wait"
    with running("sh", "-c", program) as shim:
        shim.wait_for(b"ready\n")
        (command,) = psutil.Process(shim.process.pid).children()
        everybody = psutil.Process(shim.process.pid)
        wait_until(lambda: "yes" in [each.name() for each in everybody.children(recursive=True)])
        (yes,) = command.children()
        wait_until(lambda: yes.status() == everybody.status() == psutil.STATUS_SLEEPING)
        shim.process.terminate()
        wait_until(lambda: is_gone(command.pid))
        code, told = shim.end()

    assert (5, 5) == (code, told.exited()["exit_code"])


def test_all_is_gone_when_the_launcher_is_killed() -> None:
    launcher = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    command = shim_argv("sh", "-c", "trap '' TERM; sleep 600 & echo $$ $!; wait; sleep 600")
    process = subprocess.Popen(
        [sys.executable, "-c", launcher, *command], env=environ(), stdout=subprocess.PIPE
    )
    with process:
        wait_until(lambda: len(psutil.Process(process.pid).children(recursive=True)) == 3)
        everybody = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        wait_until(lambda: all(is_gone(each.pid) for each in everybody))


def test_all_is_gone_when_nobody_reads_any_more() -> None:
    program = "trap '' PIPE; echo $$; while true; do echo words; sleep 0.02; done"
    with running("sh", "-c", program) as shim:
        shim.wait_for(b"words\n")
        everybody = psutil.Process(shim.process.pid).children(recursive=True)
        shim.process.stdout.close()
        shim.process.wait(PATIENCE)
        shim.process.stdout = open(os.devnull, "rb")  # noqa: SIM115

        assert all(is_gone(each.pid) for each in everybody)


def test_the_command_dies_with_a_killed_shim() -> None:
    with running("sleep", "600") as shim:
        wait_until(lambda: psutil.Process(shim.process.pid).children())
        (command,) = psutil.Process(shim.process.pid).children()
        wait_until(lambda: shim.read().reports(wire.Kind.STARTED))
        shim.process.kill()
        wait_until(lambda: is_gone(command.pid))


def test_a_thread_of_the_launcher_may_end_without_ending_the_rank() -> None:
    """The kernel's death signal comes when the thread that made the child ends, not the process."""
    launcher = """
import subprocess, sys, threading
made = []
def start():
    made.append(subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE))
    made[0].stdout.readline()
starter = threading.Thread(target=start)
starter.start(); starter.join()
made[0].stdout.read()
sys.exit(made[0].wait())
"""
    ended = subprocess.run(
        [sys.executable, "-c", launcher, *shim_argv("sh", "-c", "sleep 0.5; exit 9")],
        env=environ(),
        timeout=PATIENCE,
    )

    assert 9 == ended.returncode


def test_beats_tell_a_stopped_command_and_the_step_in_the_slot() -> None:
    program = """
import os, time
from supervisor import wire
print("no step yet")
time.sleep(0.3)
slot = wire.open_slot(os.environ[wire.SLOT], writable=True)
wire.introduce(slot, 0)
wire.store(slot, 41, wire.PHASES.index(wire.RankPhase.STEP))
while True: time.sleep(1)
"""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with running(*python(program), SUPERVISE_BEAT_SECONDS="0.2", **path) as shim:

        def last() -> dict[str, object]:
            return (shim.read().reports(wire.Kind.BEAT) or [{}])[-1]

        wait_until(lambda: last().get("step") == 41)
        assert "step" == last()["phase"]
        (command,) = psutil.Process(shim.process.pid).children()
        command.suspend()
        wait_until(lambda: last()["state"] == "T")
        command.resume()
        wait_until(lambda: last()["state"] == "S")
        first = shim.read().reports(wire.Kind.BEAT)[0]
        command.kill()
        _, told = shim.end()

    assert (None, None) == (first["step"], first["phase"])
    assert (41, False) == (told.exited()["step"], told.exited()["done"])


def test_the_end_says_whether_the_training_was_done() -> None:
    """A crash in the exit of a training that was over is no failure."""
    program = """
import os, signal
from supervisor import wire
slot = wire.open_slot(os.environ[wire.SLOT], writable=True)
wire.introduce(slot, 0)
wire.mark_done(slot)
os.kill(os.getpid(), signal.SIGSEGV)
"""
    _, told = run(*python(program), PYTHONPATH=os.pathsep.join(sys.path))

    assert (signal.SIGSEGV, True) == (told.exited()["signal"], told.exited()["done"])


def test_the_first_step_is_told_before_the_next_beat_is_due() -> None:
    program = """
import os, time
from supervisor import wire
slot = wire.open_slot(os.environ[wire.SLOT], writable=True)
wire.introduce(slot, 0)
wire.store(slot, 0, 4)
time.sleep(600)
"""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with running(*python(program), SUPERVISE_BEAT_SECONDS="3600", **path) as shim:
        wait_until(lambda: shim.read().reports(wire.Kind.BEAT))

        assert [0] == [beat["step"] for beat in shim.read().reports(wire.Kind.BEAT)]
