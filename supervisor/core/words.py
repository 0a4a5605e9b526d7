"""What a person reads: the lines that announce decisions and the one that ends a run.

Owns wording only. Each line names the attempt, the cause, the host, the evidence, and what
happens next, since at three in the morning nobody looks anything up.
"""

from supervisor.core.evidence import Evidence
from supervisor.core.policy import Relaunch, Stop
from supervisor.core.quotes import Quote
from supervisor.core.signature import Cause
from supervisor.core.verdict import Verdict

MAX_LAST_WORDS = 3


def failed(evidence: Evidence, verdict: Verdict) -> str:
    """Which attempt failed, of what, by whose fault, on what ground."""
    whom = f" on {', '.join(verdict.blame[:4])}" if verdict.blame else ""
    more = f" and {len(verdict.blame) - 4} more" if len(verdict.blame) > 4 else ""
    why = verdict.why.removeprefix(f"{verdict.blame[0]}: ") if verdict.blame else verdict.why
    unsaid = next((quote for quote in verdict.lines if quote.text not in verdict.why), None)
    said = f" [{unsaid.told}]" if unsaid else ""
    return f"attempt {evidence.attempt} failed: {verdict.cause}{whom}{more}: {why}{said}"


def relaunching(evidence: Evidence, verdict: Verdict, decision: Relaunch, resume: str) -> str:
    """The verdict and the relaunch it leads to."""
    when = f"in {decision.wait:.1f} s" if decision.wait else "now"
    said = f"{failed(evidence, verdict)}{last_words(evidence, verdict)}"
    return f"{said}; {decision.placed}; relaunching {when} {resume}"


def resume_point(step: int | None, set_aside: tuple[str, ...]) -> str:
    """Where the next attempt begins."""
    point = "from the beginning" if step is None else f"from step {step}"
    aside = f" (set aside: {', '.join(set_aside)})" if set_aside else ""
    return point + aside


def gave_up(evidence: Evidence, verdict: Verdict, decision: Stop) -> str:
    """Why the run ends, with the last words of the rank that failed first where the command is
    at fault.
    """
    if verdict.cause in (Cause.WALLTIME, Cause.PREEMPTED):
        return ended(evidence.attempt, verdict.cause, verdict.why)
    reason = f"; giving up: {decision.why}" if decision.why else "; a relaunch cannot help"
    return f"{failed(evidence, verdict)}{last_words(evidence, verdict)}{reason}"


def last_words(evidence: Evidence, verdict: Verdict) -> str:
    """The last lines of the rank that failed first, unless they are quoted already."""
    ended = evidence.ended
    if ended is None or verdict.charges:
        return ""
    quoted = " ".join((verdict.why, *(quote.text for quote in verdict.lines)))
    lines = tuple(line.strip() for line in ended.last_words if line.strip())
    if not lines or lines[-1] in quoted:
        return ""
    return "; last words: " + " | ".join(lines[-MAX_LAST_WORDS:])


def succeeded(evidence: Evidence) -> str:
    """The end everyone wants."""
    step = "" if evidence.top_step is None else f" at step {evidence.top_step}"
    return f"succeeded in attempt {evidence.attempt}{step}"


def ended(attempt: int, cause: Cause, why: str) -> str:
    """The end that the scheduler or the deadline brings."""
    return f"attempt {attempt} ended: {cause}: {why}"


def drained(attempt: int) -> str:
    """The end of a run that was to launch nothing new."""
    return f"drained: attempt {attempt} was ended and no other was launched"


def stopped(attempt: int, why: str) -> str:
    """The end somebody asked for."""
    where = f"in attempt {attempt}" if attempt else "before any attempt"
    if why.startswith(("by ", "on ")):
        return f"stopped {why} {where}"
    return f"stopped {where}: {why}"


def requeued(message: str, refused: str) -> str:
    """What was due to be said, and whether the job is queued again."""
    if refused:
        return f"{message}; the scheduler does not queue the job again: {refused}"
    return f"{message}; the job is queued again and goes on from the newest checkpoint"


ADVICE = {
    "retire_and_relaunch": "retire {blame} and relaunch from the newest checkpoint",
    "relaunch": "relaunch on the same hosts",
    "stop": "stop: a relaunch cannot help",
}


def explanation(verdict: Verdict, advice: str) -> tuple[str, ...]:
    """A verdict with its grounds, in lines a tired person understands."""
    blame = ", ".join(verdict.blame) or "nobody"
    todo = "nothing" if verdict.cause is Cause.SUCCESS else ADVICE[advice].format(blame=blame)
    return (
        f"cause: {verdict.cause} ({verdict.confidence})",
        f"blame: {blame}",
        f"do:    {todo}",
        f"why:   {verdict.why}",
        *grounds(verdict),
    )


def grounds(verdict: Verdict) -> tuple[str, ...]:
    """The lines that decided and those set aside, each with its place and meaning."""
    said = tuple(quote for quote in verdict.lines if quote.text != verdict.why)
    return (*_listed("decided by:", said), *_listed("set aside:", verdict.set_aside))


def _listed(heading: str, quotes: tuple[Quote, ...]) -> tuple[str, ...]:
    lines = (line for quote in quotes for line in _shown(quote))
    return (heading, *lines) if quotes else ()


def _shown(quote: Quote) -> tuple[str, ...]:
    """The line and its place, then what it means."""
    where = f"{quote.place}: " if quote.place else ""
    named = f"{quote.meaning} [{quote.signature}]" if quote.signature else ""
    meant = "; ".join(filter(None, (quote.note, named)))
    return (f"  {where}{quote.text}", *((f"      {meant}",) if meant else ()))
