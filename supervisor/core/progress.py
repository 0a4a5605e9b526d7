"""From digests of progress to: ready, hung, silent. Step limits are learned from step times and
outlive attempts.

Owns when a lack of progress becomes a hang and when a host has been silent too long. It does
not act.

Theory. A heartbeat says a process lives, output says a process prints; only a rising lowest
step is progress, and the chattiest rank cannot raise it. Every phase has its limit, counted
from the later of the last step and the last change of phase, so that a nineteen-minute quiet
checkpoint is legal and the step after it is not late. Before the first step, output counts too:
a command that never states steps is hung only when it falls silent.

Judged by the digest's own time, never by a later clock: a supervisor that was itself stopped
for an hour knows nothing of that hour. So a hang needs no wake-up; the next digest brings it.
"""

from dataclasses import replace

from supervisor.core.events import ProgressSeen
from supervisor.core.settings import Settings
from supervisor.core.value import value
from supervisor.wire import RankPhase

MAX_TIMES = 64
MAX_STARTS = 8
ENOUGH_TIMES = 5  # fewer say nothing of how long a step may take
QUANTILE = 0.9
DYING = 300.0  # seconds of silence after an exception, when no step time is known
PATIENCE = (
    4.0  # times the longest limit, after which no change of phase excuses a step that does not rise
)
PREPARATION = frozenset({RankPhase.INIT, RankPhase.LOAD, RankPhase.COMPILE})
STEPPING = frozenset({RankPhase.COMPILE, RankPhase.STEP})


@value
class Pace:
    """What is known of step times, kept across attempts."""

    times: tuple[float, ...] = ()  # newest last
    states_steps: bool = False  # an attempt of this run has stated steps
    starts: tuple[float, ...] = ()  # from launch to first step, newest last


@value
class Watch:
    """The newest digest of one attempt, and since when its phase is what it is."""

    launched_at: float
    phase_at: float
    came_at: float | None = None  # when a rank last started
    digest: ProgressSeen | None = None


def with_digest(watch: Watch, digest: ProgressSeen) -> Watch:
    """Take a newer digest; one that is not newer changes nothing."""
    old = watch.digest
    if old is not None and digest.at <= old.at:
        return watch
    changed = old is None or phases(old) != phases(digest)
    more = digest.ranks_started > (old.ranks_started if old is not None else 0)
    return replace(
        watch,
        digest=digest,
        phase_at=digest.at if changed else watch.phase_at,
        came_at=digest.at if more else watch.came_at,
    )


def learned(pace: Pace, old: ProgressSeen | None, new: ProgressSeen) -> Pace:
    """Take a step time from two digests between which the lowest step rose."""
    known = replace(pace, states_steps=pace.states_steps or new.step is not None)
    if old is None or old.step is None or new.step is None or new.step <= old.step:
        return known
    if old.step_at is None or new.step_at is None or new.step_at <= old.step_at:
        return known
    each = (new.step_at - old.step_at) / (new.step - old.step)
    return replace(known, times=(*known.times, each)[-MAX_TIMES:])


def started(pace: Pace, watch: Watch, step_at: float) -> Pace:
    """Take how long an attempt took from its launch to its first step."""
    took = max(0.0, step_at - watch.launched_at)
    return replace(pace, starts=(*pace.starts, took)[-MAX_STARTS:])


def step_limit(pace: Pace, settings: Settings, *, died: bool = False) -> float:
    """How long one step may take; less when a rank has said since that it is dying."""
    ceiling = settings.idle_timeout
    if len(pace.times) < (1 if died else ENOUGH_TIMES):
        return min(ceiling, DYING) if died else ceiling
    high = sorted(pace.times)[int(QUANTILE * (len(pace.times) - 1))]
    floor = min(settings.step_floor, settings.silence_timeout) if died else settings.step_floor
    return min(ceiling, max(floor, settings.step_factor * high))


def phases(digest: ProgressSeen) -> frozenset[str]:
    """Every phase some rank is in; others may be waiting for the slowest of them."""
    return frozenset(digest.phases or (digest.phase,))


def hang(watch: Watch, pace: Pace, settings: Settings, *, died: bool = False) -> str | None:
    """Why the newest digest means a hang, or None. `died`: since the last step a rank told of an
    exception that few live through.
    """
    digest = watch.digest
    if digest is None:
        return None
    if digest.step is None:
        return _hung_before_first_step(watch, digest, pace, settings, died=died)
    risen_at = digest.step_at or watch.launched_at
    limit = _limit(digest, pace, settings, died=died)
    quiet = digest.at - max(risen_at, watch.phase_at)
    ceiling = PATIENCE * max(settings.idle_timeout, settings.startup_timeout)
    if digest.at - risen_at > ceiling:
        limit, quiet = ceiling, digest.at - risen_at
    if quiet <= limit:
        return None
    return f"step {digest.step} has not risen for {quiet:.0f} s (limit {limit:.0f} s){_who(digest)}"


def silent_hosts(digest: ProgressSeen, settings: Settings, hosts: int) -> tuple[str, ...]:
    """Hosts none of whose shims have beaten for too long, while those of others of so many hosts
    do, or their ranks have ended.
    """
    if not digest.beating and len(digest.silent) >= hosts:
        return ()
    limit = settings.silence_timeout
    return tuple(host for host, beat_at in digest.silent if digest.at - beat_at > limit)


def missing_hosts(watch: Watch, settings: Settings) -> tuple[str, ...]:
    """Hosts of which no rank has started, though no rank has come anywhere for too long."""
    digest = watch.digest
    if digest is None or not digest.missing:
        return ()
    quiet = digest.at - max(watch.launched_at, watch.came_at or watch.launched_at)
    return digest.missing if quiet > settings.silence_timeout else ()


def _hung_before_first_step(
    watch: Watch, digest: ProgressSeen, pace: Pace, settings: Settings, *, died: bool
) -> str | None:
    preparing = bool(phases(digest) & PREPARATION)
    limit = settings.startup_timeout if preparing else settings.idle_timeout
    limit = min(limit, DYING) if died else limit
    quiet = digest.at - max(watch.launched_at, digest.output_at, watch.phase_at)
    if quiet > limit:
        return f"no step and no output for {quiet:.0f} s (limit {limit:.0f} s){_who(digest)}"
    age = digest.at - watch.launched_at
    steps_due = pace.states_steps or bool(phases(digest) & STEPPING)
    if steps_due and age > settings.startup_timeout:
        limit = settings.startup_timeout
        return f"no step {age:.0f} s after the launch (limit {limit:.0f} s){_who(digest)}"
    return None


def _limit(digest: ProgressSeen, pace: Pace, settings: Settings, *, died: bool) -> float:
    now_in = phases(digest)
    if now_in & PREPARATION:
        return max(settings.startup_timeout, settings.idle_timeout)
    if now_in != {RankPhase.STEP}:
        return settings.idle_timeout
    return step_limit(pace, settings, died=died)


def _who(digest: ProgressSeen) -> str:
    if digest.stopped_ranks:
        one = len(digest.stopped_ranks) == 1
        return f"; {_some(digest.stopped_ranks)} {'does' if one else 'do'} not run"
    if digest.lagging_ranks:
        one = len(digest.lagging_ranks) == 1
        return f"; {_some(digest.lagging_ranks)} {'is' if one else 'are'} behind"
    return ""


def _some(ranks: tuple[int, ...]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = ", ".join(str(rank) for rank in ranks[:8])
    return f"ranks {shown} and {len(ranks) - 8} more" if len(ranks) > 8 else f"ranks {shown}"
