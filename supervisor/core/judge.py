"""From evidence to a verdict. The only place that blames.

Owns the order in which evidence is weighed: each function in ORDER is one rank of it and answers
with a verdict or passes. The first that answers decides. What a verdict leads to belongs to policy.

    success       the ranks' own word
    scheduler     walltime and preemption beat all that follows them
    owner         what a host's kernel, driver, NIC or daemon says of it, and failed probes
    application   the same exception on two hosts, or before the first step
    one host      broken surroundings on one host while the others are fine
    lost devices  ranks of one host alone lost theirs
    votes         two or more hosts complain of the same silent one, or the launcher of just one
    absence       all hosts but one waited for the others
    vanished      the ranks of one host are gone without a word, and the host is well
    said          causes that name nobody: launcher, storage, host memory, network
    probes        nobody answers, or every host fails the same way
    asked to end  somebody cancelled the job
    hang          the attempt was ended for want of progress
    strikes       an unexplained failure that follows the host
    otherwise     only cascade, or unknown: nobody is blamed
"""

from collections.abc import Callable
from dataclasses import replace

from supervisor.core import evidence as facts
from supervisor.core.application import application
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import Ledger
from supervisor.core.owners import lost_devices, owner
from supervisor.core.peers import absence, strikes, suspicion, vanished, votes
from supervisor.core.surroundings import one_host
from supervisor.core.unblamed import (
    asked_to_end,
    hang,
    otherwise,
    probes,
    said,
    scheduler,
    set_aside,
    success,
)
from supervisor.core.verdict import MAX_LINES, Verdict

Weigh = Callable[[Evidence, Ledger], Verdict | None]


def judge(evidence: Evidence, ledger: Ledger) -> Verdict:
    """Weigh the evidence of one attempt."""
    evidence = facts.recent(evidence)
    answers = (weigh(evidence, ledger) for weigh in ORDER)
    verdict = next(answer for answer in answers if answer is not None)
    aside = set_aside(evidence)[:MAX_LINES]
    return replace(verdict, attempt=evidence.attempt, set_aside=aside)


ORDER: tuple[Weigh, ...] = (
    success,
    scheduler,
    owner,
    application,
    one_host,
    lost_devices,
    votes,
    absence,
    vanished,
    asked_to_end,
    said,
    suspicion,
    probes,
    hang,
    strikes,
    otherwise,
)
