"""From log files and what is known around them to a verdict: joins reader and core."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from supervisor.adapters.hits import Place
from supervisor.adapters.host_names import HostNames
from supervisor.adapters.log_files import LogFile, Seen, refuse, told_apart
from supervisor.adapters.log_reading import LogReader
from supervisor.adapters.machines import RANKS_PER_HOST
from supervisor.adapters.matcher import Matcher
from supervisor.adapters.signature_files import SignatureSet, load_signatures
from supervisor.core.hindsight import PastAttempt, explain
from supervisor.core.verdict import Verdict
from supervisor.wire import canonical_host

# Launchers and the signature files that speak for them. Slurm may stand under any of them.
_FILES = {
    "pals": "pals",
    "hydra": "hydra",
    "mpich": "hydra",
    "intelmpi": "hydra",
    "openmpi": "openmpi",
}

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The logs of one attempt and what their reader knows of it."""

    logs: tuple[LogFile, ...]
    folders: tuple[Path, ...]  # of signatures
    hosts: tuple[str, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    ranks: int | None = None
    ranks_per_host: int | None = None
    launcher: str | None = None
    machine: str | None = None
    elapsed: float | None = None
    walltime: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The verdict, and the hosts it was chosen from."""

    verdict: Verdict
    hosts: tuple[str, ...]
    lines: int
    outside: tuple[str, ...] = ()  # names met that look like hosts and are none of these


def answer(question: Question, seen: Seen, warn: Warn) -> Answer:
    """Read the logs and judge; `seen` is told how many bytes are read in all."""
    signatures = _said_by(load_signatures(question.folders), question.launcher)
    matcher = Matcher(signatures, on_switched_off=warn)
    return answer_with(matcher, question, seen, warn)


def answer_with(matcher: Matcher, question: Question, seen: Seen, warn: Warn = refuse) -> Answer:
    """The same for whoever asks about many jobs and has the signatures ready."""
    names = HostNames(question.hosts, question.addresses)
    reader = LogReader(matcher, names.resolve, _placement(question), warn)
    for log, seen_of_it in told_apart(question.logs, seen):
        reader.read(log, seen_of_it)
    read = reader.result()
    hosts = question.hosts or tuple(names.found)
    past = PastAttempt(
        hosts=hosts,
        hits=read.hits,
        exit_code=question.exit_code,
        ranks=question.ranks,
        first_step=read.first_step,
        top_step=read.top_step,
        elapsed=question.elapsed,
        walltime=question.walltime,
    )
    paths = " ".join(log.name.lower() for log in question.logs)
    outside = tuple(name for name in names.outside if name not in paths)
    return Answer(verdict=explain(past), hosts=hosts, lines=read.lines, outside=outside)


def _said_by(signatures: SignatureSet, launcher: str | None) -> SignatureSet:
    """Without what only other launchers say: then it is somebody's quotation."""
    own = _FILES.get(launcher or "")
    foreign = set(_FILES.values()) - {own} if own else set()
    kept = tuple(e for e in signatures.entries if Path(e.file).stem not in foreign)
    return replace(signatures, entries=kept)


def _placement(question: Question) -> Place:
    """Ranks fill one host after the other, as launchers place them unless told otherwise."""
    hosts = _in_rank_order(tuple(map(canonical_host, question.hosts)))
    per_host = question.ranks_per_host or RANKS_PER_HOST.get(question.machine or "")
    if per_host is None:
        per_host = _even_share(question.ranks or 0, len(hosts))
    end = min(question.ranks or sys.maxsize, (per_host or 0) * len(hosts))

    def place(rank: int) -> str | None:
        return hosts[rank // per_host] if per_host and rank < end else None

    return place


def _in_rank_order(hosts: Sequence[str]) -> tuple[str, ...]:
    """A host that fills several places in a row once; one that comes again later tells no order."""
    once = tuple(host for host, _ in groupby(hosts))
    return once if len(once) == len(set(once)) else ()


def _even_share(ranks: int, hosts: int) -> int | None:
    """Launchers divide a remainder each in its way: a guess would accuse the host next door."""
    return ranks // hosts if hosts and ranks % hosts == 0 else None
