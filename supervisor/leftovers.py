"""What is left of a run on this host, and its end.

A process is the run's by the run id in its environment; by descent from such a process; or by its
session, when the leader of that is such a process or the rank named in a slot; or by its shim's
note, which names the orphans it adopted. So a child with an emptied environment is found while its
parent, its session's leader or its rank's slot is there, a daemon once its shim has beaten after
it: one that also began a session of its own after all of those were gone cannot be.

Standard library only: the probe imports this, on every host before every launch.
"""

import os
import signal
import time

from supervisor import linux, wire

_REAP_LIMIT = 5.0  # seconds; a process in uninterruptible sleep outlives SIGKILL
_LOOK_AGAIN = 0.01


def reap(run_id: str, attempt: int, own_host: str | None) -> tuple[int, list[int]]:
    """SIGKILL what is left of the attempts up to this one on this host, until nothing is.

    Answers how many were found, and the pids of those that would not die.
    """
    found: set[int] = set()
    deadline = time.monotonic() + _REAP_LIMIT
    while (left := leftovers_of(run_id, attempt, own_host)) and time.monotonic() < deadline:
        found.update(left)
        for pid in left:
            _kill(pid)
        time.sleep(_LOOK_AGAIN)
    if not left:
        _remove_slots(run_id, attempt)
    return len(found), left


def leftovers_of(run_id: str, attempt: int, own_host: str | None) -> list[int]:
    """Living processes of attempts up to this one that are no part of the supervision."""
    processes = linux.all_processes()
    mine = set(linux.processes_with({wire.RUN_ID: run_id}))
    environments = {pid: linux.environment(pid) for pid in mine}
    supervising = {pid for pid in mine if environments[pid].get(wire.ROLE)}
    spared = _with_ancestors(processes) | supervising
    marked = {
        pid
        for pid in mine - spared
        if _number(environments[pid]) <= attempt and is_here(environments[pid], own_host)
    }
    noted = _noted_orphans(run_id, attempt, own_host)
    leaders = marked | noted | _ranks_of_slots(run_id, attempt, processes, own_host)
    by_session = {pid for pid, its in processes.items() if its.session in leaders}
    others = {pid for pid in mine if pid not in marked}
    related = _with_descendants(marked | noted | by_session, processes) - spared - others
    return sorted(pid for pid in related if pid in processes and processes[pid].state != "Z")


def is_here(environment: dict[str, str], own_host: str | None) -> bool:
    """On a host that shares its machine with others only what belongs to that host is here."""
    if own_host is None:
        return True
    return _host(environment) == wire.canonical_host(own_host)


def _host(environment: dict[str, str]) -> str:
    name = environment.get(wire.HOST) or environment.get("SLURMD_NODENAME") or ""
    return wire.canonical_host(name) if name else ""


def _number(environment: dict[str, str]) -> float:
    number = environment.get(wire.ATTEMPT, "")
    return int(number) if number.isdigit() else float("inf")


def _with_ancestors(processes: dict[int, linux.Process]) -> set[int]:
    found, pid = {os.getpid()}, os.getppid()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].parent
    return found


def _with_descendants(roots: set[int], processes: dict[int, linux.Process]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, its in processes.items():
        children.setdefault(its.parent, []).append(pid)
    found, ahead = set(roots), list(roots)
    while ahead:
        fresh = [pid for pid in children.get(ahead.pop(), ()) if pid not in found]
        found.update(fresh)
        ahead += fresh
    return found


def _slots(run_id: str, attempt: int) -> list[str]:
    wanted = [f"supervise-{os.getuid()}-{run_id}-{number}-" for number in range(1, attempt + 1)]
    try:
        names = os.listdir("/dev/shm")
    except OSError:
        return []
    return [f"/dev/shm/{name}" for name in names if name.startswith(tuple(wanted))]


def _ranks_of_slots(
    run_id: str, attempt: int, processes: dict[int, linux.Process], own_host: str | None
) -> set[int]:
    """Ranks that said who they are; where hosts share a machine a slot does not tell whose."""
    if own_host is not None:
        return set()
    pids = {pid for path in _slots(run_id, attempt) if (pid := _pid_in(path))}
    return {pid for pid in pids if pid not in processes}  # a new process may have its number


def _noted_orphans(run_id: str, attempt: int, own_host: str | None) -> set[int]:
    """Processes that a shim had adopted before it was killed."""
    if own_host is not None:
        return set()
    names = [path for path in _slots(run_id, attempt) if path.endswith(wire.ADOPTED)]
    pairs = [line.split() for path in names for line in _lines(path)]
    return {int(pid) for pid, began in pairs if _is(int(pid), int(began))}


def _is(pid: int, began: int) -> bool:
    """A new process may have its number."""
    try:
        return linux.start_time(pid) == began
    except OSError:
        return False


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except OSError:  # its shim has ended well
        return []


def _pid_in(path: str) -> int:
    try:
        state = wire.read(wire.open_slot(path, writable=False))
    except (OSError, ValueError):  # gone, or cut short by a rank that is being killed
        return 0
    return state.pid if state is not None else 0


def _remove_slots(run_id: str, attempt: int) -> None:
    """A shim that was killed leaves the slot of its rank behind."""
    for path in _slots(run_id, attempt):
        try:
            os.unlink(path)
        except OSError:
            continue


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:  # it ended meanwhile, or is somebody else's
        return
