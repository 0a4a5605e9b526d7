"""What hosts' own kernels, drivers, devices and launcher daemons say of them, and what probes find.

Owners are believed, unless they would take away most of the allocation at once.
"""

from supervisor.core.events import HostProbed
from supervisor.core.evidence import Evidence, passed_probe, some_answer
from supervisor.core.hosts import Ledger
from supervisor.core.signature import Blames, Cause, Hit, Role, Source
from supervisor.core.testimony import AGREEMENT, Charge, charges, known, on_word_of
from supervisor.core.verdict import Confidence, Verdict, charged, once

OWNED = frozenset(
    {Cause.NODE_HARDWARE, Cause.GPU_MEMORY_HW, Cause.NODE_LOST, Cause.NETWORK, Cause.HOST_OOM}
)


def owner(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """Hosts that their own kernels, daemons or failed probes prove broken."""
    hits = tuple(event.hit for event in evidence.hits if event.hit.cause in OWNED)
    outside = charges((hit for hit in hits if hit.source is not Source.RANK), ledger)
    inside = charges((hit for hit in hits if hit.source is Source.RANK), ledger)
    said = _unless_all(outside, ledger) + _unless_most(inside, ledger)
    found = once(said + _failed_probes(evidence, ledger))
    if not found:
        return None
    return charged(found, Confidence.PROVEN)


def lost_devices(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """After steps were made, ranks of one host alone lost their devices; were it the program's
    doing, others would have, too.
    """
    lost = tuple(event.hit for event in evidence.hits if _is_device_lost(event.hit))
    hosts = known({hit.host or "": None for hit in lost}, ledger)
    alone = len(hosts) == 1 and len({hit.rank for hit in lost}) >= AGREEMENT
    if not alone or evidence.first_step is None or len(ledger.active) == 1:
        return None
    if passed_probe(evidence, hosts[0]):
        return None
    return charged((on_word_of(lost[0], hosts[0]),), Confidence.LIKELY)


def _is_device_lost(hit: Hit) -> bool:
    hardware = hit.cause in (Cause.NODE_HARDWARE, Cause.GPU_MEMORY_HW)
    return hardware and hit.role is Role.VOTE and hit.blames is Blames.REPORTER


def _failed_probes(evidence: Evidence, ledger: Ledger) -> tuple[Charge, ...]:
    """A host that fails where others do not; one that is alone can still fail, but not be out of
    reach.
    """
    alone = len(ledger.active) == 1
    reached = some_answer(evidence)
    convicted = evidence.convicted if evidence.well or reached else ()
    trusted = {"unreachable": reached, "fail": reached or alone}
    bad = tuple(answer for answer in evidence.answers if trusted.get(answer.answer))
    return tuple(
        Charge(host=host, cause=probe_cause(answer), why=probe_words(answer))
        for answer in (*convicted, *bad)
        if answer.answer in ("fail", "unreachable")
        for host in known((answer.host,), ledger)
        if host in ledger.active
    )


def probe_cause(answer: HostProbed) -> Cause:
    """What a bad answer of a probe stands for."""
    if answer.answer == "unreachable":
        return Cause.NODE_LOST
    return Cause(answer.cause) if answer.cause in list(Cause) else Cause.NODE_HARDWARE


def probe_words(answer: HostProbed) -> str:
    """The answer of a probe as a person says it."""
    said = "does not answer its probe" if answer.answer == "unreachable" else "fails its probe"
    return f"{answer.host} {said}: {answer.why}" if answer.why else f"{answer.host} {said}"


def _unless_all(found: tuple[Charge, ...], ledger: Ledger) -> tuple[Charge, ...]:
    """Two hosts and more never all break at once: then the accuser is wrong."""
    hosts = {charge.host for charge in found}
    return () if len(hosts) > 1 and hosts >= set(ledger.active) else found


def _unless_most(found: tuple[Charge, ...], ledger: Ledger) -> tuple[Charge, ...]:
    """Ranks that lose their devices on most hosts at once have met a defect of software."""
    most = len(found) > 1 and 2 * len(found) > len(ledger.active)
    return () if most else found
