"""What a verdict is, and how one is put together. Who answers with which belongs to judge and the
ranks of evidence it asks.
"""

from dataclasses import dataclass
from enum import StrEnum

from supervisor.core.events import RankFailed
from supervisor.core.quotes import Quote, quoted
from supervisor.core.signature import Cause, Hit
from supervisor.core.testimony import Charge

MAX_LINES = 5


class Confidence(StrEnum):
    """How sure: proven by an owner or a probe, likely by agreement, weak by elimination."""

    PROVEN = "proven"
    LIKELY = "likely"
    WEAK = "weak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement on an ended attempt."""

    cause: Cause
    why: str
    attempt: int = 0
    confidence: Confidence = Confidence.WEAK
    charges: tuple[Charge, ...] = ()
    suspects: tuple[str, ...] = ()  # hosts that get a strike
    final: bool = False  # trying again cannot help, though the cause alone would allow it
    lines: tuple[Quote, ...] = ()
    set_aside: tuple[Quote, ...] = ()

    @property
    def blame(self) -> tuple[str, ...]:
        """Hosts held responsible."""
        return tuple(charge.host for charge in self.charges)


def because(hit: Hit, confidence: Confidence) -> Verdict:
    """A verdict that one hit decides, and that blames nobody."""
    return Verdict(cause=hit.cause, why=hit.title, confidence=confidence, lines=(quoted(hit),))


def charged(found: tuple[Charge, ...], confidence: Confidence) -> Verdict:
    """A verdict that blames these hosts, for the cause of the first of them."""
    first = found[0]
    return Verdict(
        cause=first.cause,
        why=first.why,
        confidence=confidence,
        charges=found,
        lines=lines_of(found),
    )


def lines_of(found: tuple[Charge, ...]) -> tuple[Quote, ...]:
    """What the charges rest on; a probe's word stands in no log."""
    quotes = (quote for charge in found for quote in charge.quotes or (Quote(text=charge.why),))
    return tuple(dict.fromkeys(quotes))[:MAX_LINES]


def once(found: tuple[Charge, ...]) -> tuple[Charge, ...]:
    """The first charge of each host."""
    return tuple({charge.host: charge for charge in reversed(found)}.values())[::-1]


def is_quota(text: str) -> bool:
    """A quota does not lift by itself; EDQUOT has this word in every language binding."""
    return "quota" in text.lower()


def died(failure: RankFailed) -> str:
    """How a rank ended, as a person says it."""
    return f"rank {failure.rank} on {failure.host} {_ended_by(failure.exit_code, failure.signal)}"


def _ended_by(exit_code: int | None, signal: int | None) -> str:
    return f"died of signal {signal}" if signal is not None else f"left with exit code {exit_code}"
