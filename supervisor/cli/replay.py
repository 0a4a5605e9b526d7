"""`supervise replay RUN`: the journal through the core again, and why each decision fell.

It only reads: the run may be alive, and its last line half written. Where today's core decides
otherwise than the journal says, that is shown, and the exit code is 1.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from supervisor.cli.parser import parse_with
from supervisor.cli.status import choose_run
from supervisor.core import machine, record
from supervisor.core.actions import Action
from supervisor.core.events import Event
from supervisor.core.state import State
from supervisor.errors import UsageError

MOST_CHARACTERS = 100  # of a value; hosts of a large run would fill the screen
_Step = tuple[Event, tuple[Action, ...]]


def main(words: list[str]) -> int:
    """Print the story of a run; 1 when the core would decide otherwise now."""
    options = parse_with(_parser(), words)
    steps = _read(choose_run(options.run) / "journal.jsonl")
    state, differs = machine.initial(), False
    began = steps[0][0].at
    for event, recorded in steps:
        before = state
        state, actions = machine.step(before, event)
        wrong = actions != recorded
        differs |= wrong
        if actions or recorded or options.all or state.verdict != before.verdict:
            print("\n".join(_told(event, event.at - began, before, state, actions)))
        if wrong:
            print(f"{'':12}the journal has otherwise: {_names(recorded) or 'nothing'}")
    print(f"now {state.phase}, attempt {state.attempt}")
    return int(differs)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="supervise replay",
        description="Why each decision of a run fell, from its journal.",
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="run folder (default: the newest under ./runs)"
    )
    parser.add_argument("--all", action="store_true", help="events that decided nothing, too")
    return parser


def _read(path: Path) -> list[_Step]:
    try:
        whole, _, _ = path.read_bytes().rpartition(b"\n")
    except OSError as error:
        why = f"{error.strerror}; is {path.parent} a run folder?"
        raise UsageError(f"{path} cannot be read: {why}") from error
    steps = [_parsed(path, number, line) for number, line in enumerate(whole.splitlines(), 1)]
    if not steps:
        raise UsageError(f"{path} holds no event yet")
    return steps


def _parsed(path: Path, number: int, line: bytes) -> _Step:
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            raise UsageError("it is no object")
        actions = tuple(record.action_from_json(action) for action in entry.get("actions", ()))
        return record.event_from_json(entry), actions
    except (ValueError, TypeError, AttributeError, UsageError) as error:
        raise UsageError(f"{path}, line {number}: damaged: {error}") from error


def _told(
    event: Event, after: float, before: State, state: State, actions: tuple[Action, ...]
) -> Iterator[str]:
    yield f"{after:10.3f}  {type(event).__name__} {_fields(event)}"
    if state.verdict is not None and state.verdict != before.verdict:
        verdict = state.verdict
        blame = ", ".join(verdict.blame) or "nobody"
        yield f"{'':12}verdict: {verdict.cause}, {verdict.confidence}, blames {blame}"
        yield f"{'':12}why: {verdict.why}"
        yield from (f"{'':12}| {quote.text}" for quote in verdict.lines)
        yield from (f"{'':12}set aside, {q.note}: {q.text}" for q in verdict.set_aside)
    if before.phase is not state.phase:
        yield f"{'':12}{before.phase} -> {state.phase}"
    yield from (f"{'':12}=> {type(action).__name__} {_fields(action)}" for action in actions)


def _fields(value: Any) -> str:
    """The fields that say something, each short."""
    given = ((field.name, getattr(value, field.name)) for field in fields(value))
    return " ".join(
        f"{name}={_short(item)}"
        for name, item in given
        if name != "at" and item not in (None, (), "")
    )


def _short(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 3] + "..."


def _names(actions: tuple[Action, ...]) -> str:
    return ", ".join(type(action).__name__ for action in actions)
