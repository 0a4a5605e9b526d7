"""How a story is written down and told to the core.

A file begins with prose: why the story is subtle. Then come blocks, parted by blank lines:

    +2.5 RankFailed rank=3 host=x2 signal=9       events, each so many seconds after the one before
    ----
    Launch attempt=2 hosts=x1,x3 ...              what the core orders in answer
    = running attempt 2; active x1 x3; ...        and where it stands then

An event leaves out what the story does not turn on: the attempt is the current one, and other
fields have the values of DEFAULTS. Fields of Settings are given with RunStarted, those of Hit with
HitSeen.
"""

import json
import shlex
from dataclasses import fields
from typing import Any

from supervisor.core.actions import Action
from supervisor.core.events import Event, Ticked
from supervisor.core.machine import State, initial, next_wake, step
from supervisor.core.record import action_to_json, event_from_json, event_to_json
from supervisor.core.settings import Settings

RULE = "----"
SETTINGS = {field.name for field in fields(Settings)}
DEFAULTS: dict[str, dict[str, Any]] = {
    "RunStarted": {"run_id": "story", "active": "x1,x2", "spares": "", "deadline": None},
    "CheckpointChosen": {"step": None, "path": ""},
    "ProgressSeen": {
        "ranks_started": 4,
        "step": None,
        "top_step": None,
        "phase": "step",
        "step_at": None,
        "beating": 2,
    },
    "RankFailed": {"exit_code": None, "signal": None, "step": None},
    "HostProbed": {"answer": "pass"},
    "AttemptEnded": {
        "exit_code": 0,
        "signal": None,
        "ranks_total": 4,
        "ranks_succeeded": 0,
        "reports": True,
    },
    "StacksDumped": {"ranks": 4},
    "SweepFinished": {"leftovers": 0},
}
SETTINGS_DEFAULTS = {"ranks_per_host": 2, "checkpoints": True}
HIT_DEFAULTS = {
    "title": "",
    "role": "proof",
    "blames": "nobody",
    "source": "rank",
    "host": None,
    "rank": None,
    "named": "",
    "line_number": 1,
}
LISTS = {"active", "spares", "named", "last_words", "phases", "set_aside", "missing", "vanished"}
ALSO_NUMBERS = {"stopped_ranks", "lagging_ranks", "jitter"}


def tell(text: str) -> str:
    """The whole transcript again, with what the core answers now."""
    prose, blocks = split(text)
    state, at, told = initial(), 0.0, [prose]
    for lines in blocks:
        answers: list[str] = []
        for line in lines:
            at, event = read_event(line, at, state)
            state, actions = take(state, event)
            answers += [write_action(action) for action in actions]
        told.append("\n".join([*lines, RULE, *answers, write_state(state, at)]))
    return "\n\n".join(told) + "\n"


def take(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """One step. The journal gives the event back whole; taken twice it changes nothing."""
    assert event == event_from_json(json.loads(json.dumps(event_to_json(event))))
    after, actions = step(state, event)
    assert (after, ()) == step(after, event)
    return after, actions


def split(text: str) -> tuple[str, list[list[str]]]:
    """Prose, and the event lines of each block."""
    parts = text.strip().split("\n\n")
    first = next(index for index, part in enumerate(parts) if part.startswith("+"))
    return "\n\n".join(parts[:first]), [events_of(part) for part in parts[first:]]


def events_of(part: str) -> list[str]:
    """The lines of a block above its rule."""
    return part.split(f"\n{RULE}")[0].splitlines()


def read_event(line: str, before: float, state: State) -> tuple[float, Event]:
    """An event from its line."""
    when, name, *pairs = shlex.split(line)
    at = before + float(when)
    given = dict(pair.split("=", 1) for pair in pairs)
    values = {key: value_of(key, text) for key, text in given.items()}
    if name == "Ticked":
        return at, Ticked(at=at)
    record = {"event": name, "at": at, "attempt": attempt_of(name, state)}
    record |= {key: value_of(key, v) for key, v in DEFAULTS.get(name, {}).items()}
    return at, event_from_json(record | nested(name, at, values))


def attempt_of(name: str, state: State) -> int:
    """The attempt an event speaks of when it does not say."""
    return state.attempt + (name == "CheckpointChosen")


def nested(name: str, at: float, values: dict[str, Any]) -> dict[str, Any]:
    """Values, those of settings and hits moved where they belong."""
    if name == "RunStarted":
        own = {key: value for key, value in values.items() if key not in SETTINGS}
        settings = {key: value for key, value in values.items() if key in SETTINGS}
        return own | {"settings": SETTINGS_DEFAULTS | settings}
    if name == "HitSeen":
        hit = {key: value_of(key, value) for key, value in (HIT_DEFAULTS | values).items()}
        return {"hit": hit | {"title": hit["title"] or hit["signature"]}}
    if name == "ProgressSeen":
        stepped = {"step_at": at} if values.get("step") is not None else {}
        return {"output_at": at, "top_step": values.get("step")} | stepped | values
    return values


def value_of(key: str, text: Any) -> Any:
    """A word, a number, a list, or none."""
    if not isinstance(text, str):
        return text
    if key in LISTS:
        return [item for item in text.split("," if key != "last_words" else "|") if item]
    if key in ALSO_NUMBERS:
        return [json.loads(item) for item in text.split(",") if item]
    if key == "silent":
        pairs = (item.split(":") for item in text.split(",") if item)
        return [[host, float(at)] for host, at in pairs]
    try:
        return json.loads(text)
    except ValueError:
        return text


def write_action(action: Action) -> str:
    """An action on one line, texts for people quoted; its grounds on lines of their own."""
    record = action_to_json(action)
    name = record.pop("action")
    del record["v"]
    grounds = [f"    {line}" for line in record.pop("grounds", ())]
    line = " ".join([name, *(f"{key}={write_value(value)}" for key, value in record.items())])
    return "\n".join([line, *grounds])


def write_value(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(str(item) for item in value) or "-"
    return f'"{value}"' if isinstance(value, str) and " " in value else str(value)


def write_state(state: State, at: float) -> str:
    """Where the run stands."""
    ledger, wake = state.ledger, next_wake(state)
    hosts = {
        "active": ledger.active,
        "spare": ledger.spares,
        "suspect": ledger.suspects,
        "retired": tuple(entry.host for entry in ledger.retired),
    }
    said = [f"{state.phase} attempt {state.attempt}"]
    said += [f"{name} {' '.join(names)}" for name, names in hosts.items() if names]
    said += [f"strikes {' '.join(mark.host for mark in ledger.strikes)}"] if ledger.strikes else []
    said += [f"budget used {state.budget.used}"] if state.budget.used else []
    said += [] if wake is None else [f"wake in {wake - at:.1f} s"]
    return "= " + "; ".join(said)
