"""The program run once per host: ends leftovers of the run, checks the host, carries requests to
its ranks.

    python -S -I probe.py ORDER        ORDER: JSON, see adapters/probing.py

Answers with one line of JSON on its standard output: {"host", "answer": "pass" | "fail" |
"unknown", "why", "cause", "leftovers", "running", "devices"}. No answer in time means that the host
cannot be reached; a check that could not be made is "unknown", which is not "fail".

An order with "leaves" makes it a branch: it also sends the order on to those hosts, by the argv in
"leaf" with its placeholder replaced, and passes their lines up, each with "asked", as they come. Of
a leaf that stays mute it says nothing: the supervisor then asks that host itself.

Standard library only, and no packages of a site: it starts in a hundredth of a second.
"""

import json
import os
import signal
import sys
import time

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from supervisor import linux, wire
from supervisor.host_checks import PASS, Answer, checks_of, quick_answers, run_checks
from supervisor.host_devices import count_devices
from supervisor.leftovers import is_here, leftovers_of, reap

PLACEHOLDER = "HOST-OF-A-LEAF"


def main(argv: list[str]) -> int:
    """Do what was asked for and print the answer."""
    try:
        order = json.loads(argv[0])
    except (IndexError, ValueError):
        sys.stderr.write("probe.py: the order is one word of JSON\n")
        return 2
    arrived = time.time()  # noqa: TID251  # the host's own clock is looked at
    os.environ |= {wire.ROLE: "probe", wire.RUN_ID: order["run_id"]}
    if not order.get("leaves"):
        _say(answer_to(order, arrived))
        return 0
    from supervisor.probe_branch import Leaves  # what only a branch needs

    leaves = Leaves(order["leaves"], order["leaf"], PLACEHOLDER)
    _say(answer_to(order, arrived))
    leaves.pass_up(order["seconds"])
    return 0


def answer_to(order: dict[str, object], arrived: float) -> dict[str, object]:
    """This host's own answer."""
    run_id, attempt = str(order["run_id"]), int(str(order["attempt"]))
    here = own_host(by_slurm=bool(order.get("slurm")))
    found, immortal = 0, list[int]()
    running: int | None = None
    if order.get("reap"):
        found, immortal = reap(run_id, attempt, here)
    else:
        running = len(leftovers_of(run_id, attempt, here))
    if order.get("stacks"):
        ask_for_stacks(run_id, here)
    offset = arrived - float(str(order.get("sent_at") or arrived))
    answers = [_check_leftovers(immortal), *quick_answers(offset), *run_checks(checks_of(order))]
    answer, why, cause = min(answers, key=lambda each: ("fail", "unknown", "pass").index(each[0]))
    said = {"answer": answer, "why": why, "cause": cause, "leftovers": found, "running": running}
    name = here or wire.canonical_host(os.uname().nodename)
    return {"host": name, **said, "devices": count_devices()}


def own_host(*, by_slurm: bool) -> str | None:
    """Our host's name where several may share a machine; None: whatever runs here is here."""
    return os.environ.get(wire.HOST) or (os.environ.get("SLURMD_NODENAME") if by_slurm else None)


def _check_leftovers(immortal: list[int]) -> Answer:
    """A process that SIGKILL does not end holds devices and ports; the host cannot be used."""
    if not immortal:
        return PASS
    pids = ", ".join(str(pid) for pid in immortal[:5])
    return "fail", f"{len(immortal)} processes of the run do not die of SIGKILL (pid {pids})", ""


def ask_for_stacks(run_id: str, here: str | None) -> None:
    """SIGUSR1 to each rank that said it writes its stacks then; others would die of it."""
    for pid in linux.all_processes():
        environment = linux.environment(pid)
        if environment.get(wire.RUN_ID) == run_id and is_here(environment, here):
            _ask_for_stacks(pid, environment.get(wire.SLOT, ""))


def _ask_for_stacks(pid: int, slot: str) -> None:
    try:
        state = wire.read(wire.open_slot(slot, writable=False))
    except (OSError, ValueError):  # gone, or cut short by a rank that is being killed
        return
    if state is not None and state.flags & wire.SLOT_FLAG_STACKS and state.pid == pid:
        linux.send(pid, signal.SIGUSR1)


def _say(answer: dict[str, object]) -> None:
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
