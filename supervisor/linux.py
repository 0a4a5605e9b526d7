"""What Linux offers and Python's `os` does not: death signals, children by hand, /proc, wake-ups.

Standard library only, and little of it: the programs beside the training import this, and
importing `subprocess` alone would double their start-up. Owns no policy: who is started, ended or
looked for is the caller's affair.
"""

import fcntl
import os
import signal
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from ctypes import CDLL

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_SET_DUMPABLE = 4  # PR_SET_DUMPABLE
_SET_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def keep_freed_memory(limit: int) -> None:
    """Have the C library keep this much freed memory: who takes blocks of output in hand would
    get each one anew from the kernel, page by page, a fifth of all it does. Not every library can.
    """
    mallopt = getattr(CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, limit)
        mallopt(_TRIM_THRESHOLD, limit)


def die_with_parent(death_signal: int) -> None:
    """Ask the kernel for this signal when the parent dies; a parent that died just now counts."""
    parent = os.getppid()
    _prctl(_SET_DEATH_SIGNAL, death_signal)
    if os.getppid() != parent:
        os.kill(os.getpid(), death_signal)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent dies."""
    _prctl(_SET_SUBREAPER, 1)


def _prctl(option: int, argument: int) -> None:
    CDLL(None).prctl(option, argument, 0, 0, 0)


def start(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: str,
    stdio: Sequence[int],
    death_signal: int,
) -> int:
    """Start a child in its own session that gets death_signal when this process dies.

    Returns its pid. Raises OSError, with the path at fault as its filename, when that fails.
    """
    told, tell = os.pipe()
    parent = os.getpid()
    # A signal between fork and exec would reach the parent's wake-up pipe through the child's copy.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        _become(argv, environment, cwd, stdio, death_signal, parent, mask, tell)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.close(tell)
    _raise_what_the_child_told(told, pid)
    return pid


def _become(
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
    stdio: Sequence[int],
    death_signal: int,
    parent: int,
    mask: Iterable[int],
    tell: int,
) -> None:
    at_fault = cwd
    try:
        os.setsid()
        _prctl(_SET_DEATH_SIGNAL, death_signal)
        if os.getppid() != parent:
            os._exit(1)
        for descriptor, source in enumerate(stdio):
            os.dup2(source, descriptor)
        os.chdir(cwd)
        at_fault = argv[0]
        _reset_signals(mask)
        os.execvpe(argv[0], list(argv), environment)
    except OSError as error:
        os.write(tell, b"%d %s" % (error.errno or 0, os.fsencode(at_fault)))
    finally:
        os._exit(127)


def _reset_signals(mask: Iterable[int]) -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(
        signal.SIGPIPE, signal.SIG_DFL
    )  # Python ignores these two, and exec hands that on
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _raise_what_the_child_told(told: int, pid: int) -> None:
    why = os.read(told, 4200)
    os.close(told)
    if why:
        os.waitpid(pid, 0)
        number, _, path = why.partition(b" ")
        raise OSError(int(number), os.strerror(int(number)), os.fsdecode(path))


def start_failure(error: OSError, argv: Sequence[str]) -> str:
    """One line that says why `start` failed."""
    verb = "start" if error.filename == argv[0] else "enter"
    return f"cannot {verb} {error.filename}: {error.strerror}"


def how_it_ended(status: int) -> tuple[int | None, int | None]:
    """Exit code and signal of a wait status, kept apart."""
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def wake_on(signals: Iterable[int]) -> int:
    """A descriptor on which the numbers of these signals arrive, one byte each."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    for number in signals:
        signal.signal(number, _nothing)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def _nothing(number: int, frame: object) -> None:
    """Signals are read from the wake-up descriptor; the handler itself has nothing to do."""


def signals_arrived(wakeup: int) -> bytes:
    """The numbers of the signals that arrived since the last look."""
    try:
        return os.read(wakeup, 512)
    except BlockingIOError:
        return b""


def start_time(pid: int) -> int:
    """When a process started, in ticks since boot: with the pid it names a process for good."""
    return int(_stat(pid)[19])


def state_and_parent(pid: int) -> tuple[str, int]:
    """The kernel's letter for what a process is doing, and its parent's pid."""
    fields = _stat(pid)
    return fields[0], int(fields[1])


def _stat(pid: int) -> list[str]:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().decode("ascii", "replace").rpartition(")")[2].split()


Process = namedtuple("Process", "state parent session")


def all_processes() -> dict[int, Process]:
    """Every process on this machine, by its pid."""
    found = {}
    for pid in _pids():
        try:
            fields = _stat(pid)
        except OSError:  # it ended meanwhile
            continue
        found[pid] = Process(fields[0], int(fields[1]), int(fields[3]))
    return found


def children() -> dict[int, int]:
    """Our own children, orphans that we adopted among them, and when each started; we have a single
    thread.
    """
    found = {}
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            for pid in map(int, file.read().split()):
                found[pid] = start_time(pid)
    except OSError:  # one of them has just ended; or a kernel that does not tell
        pass
    return found


def environment(pid: int) -> dict[str, str]:
    """The variables a process was started with; none when they are not ours to see."""
    pairs = (os.fsdecode(word).partition("=") for word in _environment(pid).split(b"\0"))
    return {name: text for name, _, text in pairs}


def processes_with(variables: Mapping[str, str]) -> list[int]:
    """Pids of the processes that were started with all of these in their environment."""
    wanted = [os.fsencode(f"\0{name}={value}\0") for name, value in variables.items()]
    return [pid for pid in _pids() if _has_all(wanted, b"\0" + _environment(pid) + b"\0")]


def _has_all(wanted: Sequence[bytes], words: bytes) -> bool:
    return all(word in words for word in wanted)


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:  # it ended meanwhile, or belongs to somebody else
        return b""


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(ancestor: int) -> list[int]:
    """Pids of all living processes below this one, parents before their children."""
    children: dict[int, list[int]] = {}
    for pid in _pids():
        try:
            state, parent = state_and_parent(pid)
        except OSError:
            continue
        if state != "Z":
            children.setdefault(parent, []).append(pid)
    found = list(children.get(ancestor, ()))
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def send(pid: int, number: int) -> None:
    """Send a signal; a process that is gone already is no error."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def send_group(group: int, number: int) -> None:
    """Send a signal to a process group; one that is gone already is no error."""
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def is_locked(path: str) -> bool:
    """Whether somebody holds flock on this file; a file that cannot be opened is held by nobody."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)
    return False


def kill_tree(pid: int) -> None:
    """SIGKILL a process, its descendants and its process group."""
    for each in (pid, *descendants(pid)):
        send(each, signal.SIGKILL)
    send_group(pid, signal.SIGKILL)


def die_by(number: int) -> None:
    """End this process by a signal, as something it stands for has ended; leave no core file."""
    _prctl(_SET_DUMPABLE, 0)
    with suppress(OSError):  # SIGKILL and SIGSTOP have no other disposition
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
