"""The command's own failures: exceptions its ranks raise, and the same refusal by all of them."""

from supervisor.core import evidence as facts
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import Ledger
from supervisor.core.quotes import quoted
from supervisor.core.signature import Cause, Hit, Role, Source
from supervisor.core.testimony import is_proof
from supervisor.core.verdict import Confidence, Verdict, because

NOT_FOUND = frozenset({126, 127})  # what a shell and our shim answer when a command cannot be run


def application(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """The command's own failure: the same exception on two hosts, or one before the first step."""
    hits = tuple(h for h in own_words(evidence) if h.cause is not Cause.ENVIRONMENT)
    if not hits:
        return _diverged(evidence) or _refused(evidence)
    first = next((h for h in hits if _is_everyones(h, hits)), hits[0])
    if _is_everyones(first, hits) or _before_first_step(evidence, hits):
        return because(first, Confidence.LIKELY)
    return None


def _diverged(evidence: Evidence) -> Verdict | None:
    """Ranks that wait in different collectives with the same number: their programs differ."""
    seen: dict[tuple[str, str], Hit] = {}
    for hit in (event.hit for event in evidence.hits):
        said = dict(hit.facts)
        if "seq" not in said or "op" not in said:
            continue
        other = seen.setdefault((said.get("group", ""), said["seq"]), hit)
        if dict(other.facts)["op"] != said["op"]:
            why = f"ranks wait in different collectives with the same number, {said['seq']}"
            lines = (quoted(other), quoted(hit))
            return Verdict(
                cause=Cause.USER_ERROR, why=why, confidence=Confidence.LIKELY, lines=lines
            )
    return None


def own_words(evidence: Evidence) -> tuple[Hit, ...]:
    """Application hits, unless no rank failed by its own word or something else was proven
    before.
    """
    ended = evidence.ended
    if ended is not None and ended.reports and not evidence.failures:
        return ()
    found = facts.application_hits(evidence)
    decisive = (event.hit for event in evidence.hits if _decides(event.hit))
    first = next((hit for hit in decisive if not _minor_claim(hit)), None)
    return found if first is None or first.cause in facts.APPLICATION else ()


def _decides(hit: Hit) -> bool:
    return hit.role is Role.PROOF or hit.cause in facts.APPLICATION


def _minor_claim(hit: Hit) -> bool:
    return hit.source is Source.RANK and hit.cause not in facts.APPLICATION and not is_proof(hit)


def _is_everyones(hit: Hit, hits: tuple[Hit, ...]) -> bool:
    """A defect of the program whichever rank meets it, or what the ranks of two hosts met."""
    return hit.role is Role.PROOF or _spread(hit, hits) > 1


def _spread(hit: Hit, hits: tuple[Hit, ...]) -> int:
    """On how many hosts the same exception was raised. Where these are not known ranks count, or
    how often it was printed: a process dies of it once.
    """
    same = tuple(other for other in hits if other.signature == hit.signature)
    hosts = {other.host for other in same if other.host}
    ranks = {other.rank for other in same if not other.host and other.rank is not None}
    nobodys = tuple(other for other in same if not other.host and other.rank is None)
    alike = sum(other.line == hit.line for other in nobodys)
    return max(len(hosts), len(ranks)) + alike


def _before_first_step(evidence: Evidence, hits: tuple[Hit, ...]) -> bool:
    """No step was made and every host that failed by itself raised an exception."""
    own = set(facts.failed_hosts(facts.own_failures(evidence)))
    return evidence.first_step is None and own <= {hit.host for hit in hits}


def _refused(evidence: Evidence) -> Verdict | None:
    """All ranks left with the same exit code before any step: the command itself says no."""
    own, ended = facts.own_failures(evidence), evidence.ended
    codes = {failure.exit_code for failure in own}
    total = ended.ranks_total if ended is not None else 0
    everyone = 0 < min(total, facts.MAX_FAILURES) <= len(own)
    if evidence.first_step is not None or not everyone or len(codes) != 1 or codes & NOT_FOUND:
        return None
    code = own[0].exit_code
    if code is None:
        return None
    why = f"every rank left with exit code {code} before the first step"
    return Verdict(cause=Cause.USER_ERROR, why=why, confidence=Confidence.LIKELY)
