"""What the journal keeps comes back whole, across versions, and damage is said in one line."""

import json
from typing import Any

import pytest

from supervisor.core.actions import Finish, Launch, Outcome
from supervisor.core.events import HitSeen, ProgressSeen, RunStarted
from supervisor.core.record import (
    ACTIONS,
    EVENTS,
    action_from_json,
    action_to_json,
    event_from_json,
    event_to_json,
)
from supervisor.core.settings import Settings
from supervisor.core.signature import Blames, Cause, Hit, Role, Source
from supervisor.errors import UsageError

STARTED = RunStarted(
    at=1.0,
    run_id="r",
    active=("a", "b"),
    spares=(),
    deadline=None,
    settings=Settings(ranks_per_host=2, min_hosts=1, jitter=(0.5, 1.25)),
)
SEEN = HitSeen(
    at=2.5,
    attempt=1,
    hit=Hit(
        signature="s",
        title="t",
        cause=Cause.NETWORK,
        role=Role.VOTE,
        blames=Blames.NAMED,
        source=Source.RANK,
        host=None,
        rank=3,
        named=("a",),
        line="a line \u2603",
        line_number=7,
    ),
)
PROGRESS = ProgressSeen(
    at=3.0,
    attempt=1,
    ranks_started=2,
    step=None,
    top_step=None,
    phase="init",
    step_at=None,
    output_at=2.0,
    silent=(("b", 1.5),),
    lagging_ranks=(1, 2),
)


def through_json(value: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(value)))


@pytest.mark.parametrize("event", [STARTED, SEEN, PROGRESS], ids=lambda e: type(e).__name__)
def test_events_come_back_whole(event: Any) -> None:
    back = event_from_json(through_json(event_to_json(event)))

    assert event == back
    assert hash(event) == hash(back)


@pytest.mark.parametrize(
    "action",
    [
        Launch(attempt=2, hosts=("a", "c"), retired=("b",), resume_from="/c/30"),
        Finish(attempt=2, outcome=Outcome.GAVE_UP, exit_code=93, message="no progress"),
    ],
    ids=lambda action: type(action).__name__,
)
def test_actions_come_back_whole(action: Any) -> None:
    back = action_from_json(through_json(action_to_json(action)))

    assert action == back
    assert type(getattr(action, "outcome", None)) is type(getattr(back, "outcome", None))


def test_every_event_and_action_has_a_record() -> None:
    assert {"RunStarted", "HitSeen", "Ticked"} <= set(EVENTS)
    assert {"Launch", "Finish", "Sweep"} <= set(ACTIONS)


def test_a_field_of_a_newer_version_is_ignored() -> None:
    record = through_json(event_to_json(SEEN))
    record["weather"] = "fine"
    record["hit"]["mood"] = {"x": 1}

    assert SEEN == event_from_json(record)


def test_a_field_an_older_version_lacked_takes_its_default() -> None:
    record = through_json(event_to_json(STARTED))
    del record["settings"]["grace"]

    assert STARTED == event_from_json(record)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"event": "Weather"}, "unknown event 'Weather'"),
        ({"event": None}, "unknown event None"),
        ({"at": "noon"}, "ProgressSeen.at is not float but 'noon'"),
        ({"attempt": True}, "ProgressSeen.attempt is not int but True"),
        ({"silent": 3}, "ProgressSeen.silent is not a list but 3"),
        ({"silent": [["b"]]}, "ProgressSeen.silent has 1 items instead of 2"),
    ],
)
def test_damage_is_said_in_one_line(change: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match="journal record") as caught:
        event_from_json(through_json(event_to_json(PROGRESS)) | change)

    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("hit", "told"),
    [
        ([], "HitSeen.hit is not an object but []"),
        ({"cause": "gremlins"}, "HitSeen.hit.cause has the unknown word 'gremlins'"),
        ({"signature": "s"}, "HitSeen.hit lacks title, cause, role"),
    ],
)
def test_damage_within_is_said_with_its_place(hit: Any, told: str) -> None:
    with pytest.raises(UsageError, match="journal record") as caught:
        event_from_json(through_json(event_to_json(SEEN)) | {"hit": hit})

    assert told in str(caught.value)


def test_a_whole_number_may_stand_for_a_time() -> None:
    record = through_json(event_to_json(PROGRESS)) | {"at": 3, "output_at": 2}

    assert PROGRESS == event_from_json(record)
