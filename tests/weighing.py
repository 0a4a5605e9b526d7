"""Evidence made of few words, and the verdict on it, for tests of the core."""

from dataclasses import replace
from typing import Any

from supervisor.core.events import AttemptEnded, HitSeen, HostProbed, RankFailed
from supervisor.core.evidence import Evidence, with_failure, with_hit
from supervisor.core.hosts import Ledger, make_ledger
from supervisor.core.judge import judge
from supervisor.core.signature import Blames, Cause, Hit, Role, Source
from supervisor.core.verdict import Verdict

LEDGER = make_ledger(("a", "b", "c", "d"), ("s",))
ENDED = AttemptEnded(
    at=99.0, attempt=2, exit_code=1, signal=None, ranks_total=8, ranks_succeeded=0, reports=True
)
STEPPED = Evidence(attempt=2, first_step=1, top_step=50, ended=ENDED)
UNSTEPPED = Evidence(attempt=2, ended=ENDED)


def failed(rank: int, host: str, code: int | None = 1, signal: int | None = None) -> RankFailed:
    return RankFailed(
        at=10.0, attempt=2, rank=rank, host=host, exit_code=code, signal=signal, step=5
    )


def said(cause: Cause, host: str | None = "a", **more: Any) -> HitSeen:
    hit = Hit(
        signature=f"sig-{cause}",
        title=f"title of {cause}",
        cause=cause,
        role=Role.PROOF,
        blames=Blames.NOBODY,
        source=Source.RANK,
        host=host,
        rank=None,
        named=(),
        line=f"{cause} line",
        line_number=1,
    )
    return HitSeen(at=9.0, attempt=2, hit=replace(hit, **more))


def names(cause: Cause, *hosts: str, by: Source = Source.LAUNCHER, **more: object) -> HitSeen:
    return said(cause, None, source=by, named=hosts, blames=Blames.NAMED, **more)


def own(cause: Cause, host: str, by: Source = Source.KERNEL, **more: object) -> HitSeen:
    return said(cause, host, source=by, blames=Blames.REPORTER, **more)


def vote(host: str, target: str, **more: object) -> HitSeen:
    more = {"role": Role.VOTE, "blames": Blames.NAMED, "named": (target,), **more}
    return said(Cause.NETWORK, host, **more)


def probed(host: str, answer: str, why: str = "", cause: str = "") -> HostProbed:
    return HostProbed(at=100.0, attempt=2, host=host, answer=answer, why=why, cause=cause)


def verdict(
    *events: RankFailed | HitSeen | HostProbed,
    base: Evidence = STEPPED,
    ledger: Ledger = LEDGER,
    passed: int = 3,
) -> Verdict:
    evidence = replace(base, passed=passed)
    for event in events:
        if isinstance(event, RankFailed):
            evidence = with_failure(evidence, event)
        elif isinstance(event, HitSeen):
            evidence = with_hit(evidence, event)
        else:
            evidence = replace(evidence, answers=(*evidence.answers, event))
    return judge(evidence, ledger)


def short(found: Verdict) -> tuple[Cause, tuple[str, ...]]:
    return found.cause, found.blame
