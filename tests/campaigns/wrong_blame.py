"""Ranks of an MPI program die on hosts that are well, and the launcher names whom it likes; nobody
may be retired for it.

usage: python tests/campaigns/wrong_blame.py [--launchers mpich5,openmpi5] [--runs 50] [--seed N]

When a rank dies, its peers die of the broken connections, and which of them the launcher reports
first is a race. Each run kills one rank of a healthy host, another one and in another way each
time, must finish from its checkpoint, and must retire nobody. How often the launcher named another
host than the dead rank's is counted: without such races the campaign would show nothing. Prints a
row a run, and exits with 1 when any of them failed.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from place import HOSTS, Place, end, living, places

FAULTS = ("sigkill", "sigsegv", "sigabrt", "exit1")
STEPS = 40
LONGEST = 120.0  # seconds; a run takes about eight
_NAMED = re.compile(r"(?:RUNNING AT|on node|Node:|host:?) +(node\d+)")


def main(argv: list[str] | None = None) -> int:
    """Run the campaign and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launchers", default="mpich5,openmpi5")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args(argv)
    print(f"seed {chosen.seed}", flush=True)
    dice, failed, raced = random.Random(chosen.seed), 0, Counter[str]()
    with places(chosen.launchers.split(",")) as found:
        for place in found:
            for number in range(chosen.runs):
                rank = dice.randrange(2 * (HOSTS - 1))
                wrong, named = one_run(place, number, FAULTS[number % len(FAULTS)], rank)
                failed += wrong
                raced[place.name] += named
    for name, times in raced.items():
        print(f"{name}: the launcher named an innocent host first in {times} runs")
    print(f"{failed} failed")
    return int(failed > 0)


def one_run(place: Place, number: int, fault: str, rank: int) -> tuple[bool, bool]:
    """Whether the run went wrong, and whether the launcher blamed a host of a surviving rank."""
    with tempfile.TemporaryDirectory(prefix="supervise-") as name:
        folder = Path(name)
        toy = ["--mpi", "--steps", str(STEPS), "--step-time", "0.05", "--fault", fault]
        toy += ["--fault-rank", str(rank), "--fault-step", str(15 + number % 7)]
        options = ["--grace", "2", "--idle-timeout", "20"]
        code = place.supervise(folder, options, toy).wait(LONGEST)
        wrong = faults_of(folder, code)
        named = first_named(folder)
        if wrong:
            print((folder / "out").read_text(errors="replace")[-3000:])
    victim = f"node{rank // 2 + 1}"
    words = "; ".join(wrong) or "nobody retired"
    said = f"launcher names {named or 'nobody'}"
    print(f"{place.name:9} {number + 1:3} {fault:8} on {victim}  {said:20}  {words}", flush=True)
    return bool(wrong), named not in (None, victim)


def faults_of(folder: Path, code: int) -> list[str]:
    """All that is not as it should be."""
    wrong = [f"exit code {code}"] if code else []
    retired = folder / "run" / "retired.txt"
    if retired.exists() and retired.read_text().strip():
        wrong.append(f"retired: {retired.read_text().strip()}")
    steps = {json.loads(line)["step"] for line in (folder / "loss.jsonl").open()}
    if steps != set(range(1, STEPS + 1)):
        wrong.append(f"steps missing: {sorted(set(range(1, STEPS + 1)) - steps)}")
    if left := list(living(folder)):
        wrong.append(f"left behind: {left}")
        end(left)
    return wrong


def first_named(folder: Path) -> str | None:
    """The host that the launcher's own words of the first attempt name first."""
    log = folder / "run" / "attempts" / "001" / "launcher.log"
    found = _NAMED.search(log.read_text(errors="replace")) if log.exists() else None
    return found[1] if found else None


if __name__ == "__main__":
    sys.exit(main())
