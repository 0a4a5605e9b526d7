"""What can be wrong with a host before a rank runs there: one function a check.

A check that may take long runs in a child of its own, all at once, with a deadline: a file system
that hangs costs its check and nothing else, for a child in an uninterruptible call holds nothing of
ours. A check answers pass, fail or unknown, one sentence, and for a fail the cause it speaks for.

Standard library only, and little of it: the probe imports this on every host.
"""

import errno
import json
import os
import select
import signal
import time
from collections.abc import Callable
from functools import partial

from supervisor import linux
from supervisor.host_devices import check_devices, check_kernel_log

Answer = tuple[str, str, str]  # pass, fail or unknown; why; the cause of a fail
Check = tuple[Callable[[], Answer], str, Answer]  # what to do, what it looks at, if it is mute

PASS: Answer = ("pass", "", "")
_CHECK_SECONDS = 4.0
_LEAST_SHARED = 64 * 1024  # bytes: a slot a rank needs 4 KiB
_LEAST_MEMORY = 256 << 20  # bytes: less than a Python that imports torch takes
_CLOCK_LIMIT = 30.0  # seconds; a probe's own way takes less
_FULL = (errno.EDQUOT, errno.ENOSPC)
_LOOK_SECONDS = 0.01
_LAST_WORDS = 4096  # bytes of what a site's script says
_BLOCK = b"\0" * 65536


def run_checks(checks: list[Check], seconds: float = _CHECK_SECONDS) -> list[Answer]:
    """The answers, in order; a check that says nothing in time gets the answer given for it."""
    children = [_start(check) for check, _, _ in checks]
    deadline = time.monotonic() + seconds
    return [
        _read(pid, descriptor, deadline) or mute
        for (pid, descriptor), (_, _, mute) in zip(children, checks, strict=True)
    ]


def checks_of(order: dict[str, object]) -> list[Check]:
    """The checks that an order asks for, those that may take long."""
    checks = [_check(check_temporary, "temporary files"), _check(check_devices, "devices")]
    for folder in _texts(order.get("folders")):
        why = f"{folder} does not answer"
        checks.append((partial(check_folder, folder), folder, ("fail", why, "storage")))
    command, cwd = _texts(order.get("command")), str(order.get("cwd") or "/")
    checks.append(_check(partial(check_command, command, cwd), "the command's files"))
    for script in _texts(order.get("scripts")):
        checks.append(_check(partial(check_script, script), script))
    return checks


def _check(check: Callable[[], Answer], name: str) -> Check:
    return check, name, ("unknown", f"the look at {name} did not end in time", "")


def _texts(words: object) -> list[str]:
    return [str(word) for word in words] if isinstance(words, list) else []


def _start(check: Callable[[], Answer]) -> tuple[int, int]:
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            empty = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(empty, descriptor)
            os.write(writable, json.dumps(_safely(check)).encode())
        finally:
            os._exit(0)
    os.close(writable)
    return pid, readable


def _safely(check: Callable[[], Answer]) -> Answer:
    try:
        return check()
    except Exception as error:  # noqa: BLE001  # a check that breaks says nothing of the host
        return "unknown", f"a check could not be made: {error}", ""


def _read(pid: int, descriptor: int, deadline: float) -> Answer | None:
    left = max(0.0, deadline - time.monotonic())
    ready = select.select([descriptor], [], [], left)[0]
    said = os.read(descriptor, 65536) if ready else b""
    os.close(descriptor)
    if not said:
        linux.send_group(pid, signal.SIGKILL)
        return None
    os.waitpid(pid, 0)
    answer, why, cause = json.loads(said)
    return answer, why, cause


def check_shared_memory() -> Answer:
    """Slots, and most frameworks' data loaders, live in /dev/shm."""
    try:
        its = os.statvfs("/dev/shm")
    except OSError as error:
        return "unknown", f"/dev/shm: {error.strerror}", ""
    free = its.f_bavail * its.f_frsize
    if free < _LEAST_SHARED:
        return "fail", f"/dev/shm has {free} bytes left", "environment"
    return PASS


def check_memory() -> Answer:
    """After the leftovers are gone, what else holds the memory is not ours."""
    with open("/proc/meminfo") as file:
        sizes = dict(line.split(":", 1) for line in file)
    free = int(sizes["MemAvailable"].split()[0]) << 10
    if free < _LEAST_MEMORY:
        return "fail", f"{free >> 20} MiB of memory are available", "environment"
    return PASS


def check_temporary() -> Answer:
    """Frameworks and compilers write there without asking."""
    return _check_writing(os.environ.get("TMPDIR") or "/tmp", "environment")


def check_folder(folder: str) -> Answer:
    """A folder that other hosts read and write must be so here: else its mount is missing."""
    try:
        os.listdir(folder)
    except FileNotFoundError:
        return "unknown", f"{folder} does not exist here", ""
    except OSError as error:
        return "fail", f"cannot read {folder}: {error.strerror}", "environment"
    return _check_writing(folder, "storage")


def _check_writing(folder: str, cause: str) -> Answer:
    """Only a real write meets a quota, a full disk and a mount that has become read-only."""
    try:
        _write_and_remove(folder)
    except FileNotFoundError:
        return "unknown", f"{folder} does not exist here", ""
    except OSError as error:
        why = f"cannot write in {folder}: {error.strerror}"
        return "fail", why, "storage" if error.errno in _FULL else cause
    return PASS


def _write_and_remove(folder: str) -> None:
    path = os.path.join(folder, f".supervise-probe-{os.uname().nodename}-{os.getpid()}")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.unlink(path)  # nothing is left, whatever happens next
        os.write(descriptor, _BLOCK)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_command(command: list[str], cwd: str) -> Answer:
    """A command or a Python script named by its path is there; a bare name is the launcher's."""
    for path in _files_of(command):
        full = os.path.join(cwd, path)
        if not os.path.exists(full):
            return "fail", f"{full} does not exist here", "environment"
    if command and "/" in command[0] and not os.access(os.path.join(cwd, command[0]), os.X_OK):
        return "fail", f"{os.path.join(cwd, command[0])} cannot be executed", "environment"
    return PASS


def _files_of(command: list[str]) -> list[str]:
    files = [word for word in command[:1] if "/" in word]
    if command and os.path.basename(command[0]).startswith("python"):
        first = next((word for word in command[1:] if not word.startswith("-")), "")
        files += [first] if command[1:2] == [first] and first.endswith(".py") else []
    return files


def check_clock(offset: float) -> Answer:
    """How far this clock is from the supervisor's; what the way takes cannot be told apart."""
    if abs(offset) < _CLOCK_LIMIT:
        return PASS
    side = "ahead of" if offset > 0 else "behind"
    return "unknown", f"its clock is {abs(offset):.0f} s {side} the supervisor's", ""


def check_script(path: str) -> Answer:
    """A site's own check: exit 0 is a pass, 75 unknown, all else a fail; its last line says why."""
    exit_code, said = _run_script(path)
    if exit_code == 0:
        return PASS
    lines = said.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    why = f"{path}: {last[:200] or f'exit code {exit_code}'}"
    return ("unknown", why, "") if exit_code == os.EX_TEMPFAIL else ("fail", why, "")


def _run_script(path: str) -> tuple[int, bytes]:
    """Its exit code and its last words: without end they fill no memory, and a process that it
    leaves behind, with its output in hand, is not waited for.
    """
    import subprocess  # only where a site has one

    said = b""
    with subprocess.Popen(
        [path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as script:
        assert script.stdout is not None
        ended, is_open = False, True
        while not ended:
            ended = script.poll() is not None
            if is_open and select.select([script.stdout], [], [], 0 if ended else _LOOK_SECONDS)[0]:
                piece = os.read(script.stdout.fileno(), len(_BLOCK))
                said, is_open = (said + piece)[-_LAST_WORDS:], bool(piece)
            elif not is_open:
                time.sleep(_LOOK_SECONDS)
    return script.returncode, said


def quick_answers(offset: float) -> list[Answer]:
    """The answers of checks that ask only this kernel, which is there or nothing is."""
    checks = (check_shared_memory, check_memory, check_kernel_log)
    return [check_clock(offset), *(_safely(check) for check in checks)]
