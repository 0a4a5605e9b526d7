"""What real launchers printed in real failures gets the verdict that their lines allow."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from asking import KNOWN_WRONG, Asking, cases, verdict

LOGS = Path(__file__).parents[1] / "logs" / "engines"
LABELS: dict[str, dict[str, Any]] = yaml.safe_load((LOGS / "labels.yaml").read_text())


def _log(name: str, folder: Path) -> Path:
    """The log of a case, cut where the case says so."""
    run = LABELS[name]["run"]
    whole = LOGS / f"{run.get('log', name)}.log"
    if "until" not in run:
        return whole
    part = folder / whole.name
    part.write_bytes(whole.read_bytes()[: run["until"]])
    return part


def _flags(run: dict[str, Any]) -> dict[str, object]:
    return {
        "hosts": ",".join(run["hosts"]),
        "launcher": run["launcher"],
        "exit-code": run.get("exit_code"),
        "ranks": run["ranks"],
        "ppn": run["ppn"],
    }


def _accepted(label: dict[str, Any]) -> list[dict[str, Any]]:
    """The verdict of a label and its alternatives, each whole."""
    return [verdict(label["verdict"] | other) for other in ({}, *label.get("also", ()))]


@pytest.mark.parametrize("name", cases(LABELS, "engines"))
def test_verdict_is_what_the_log_allows(name: str, explain: Asking, tmp_path: Path) -> None:
    """Each label says why it is what it is."""
    label = LABELS[name]

    answer = explain(_log(name, tmp_path), _flags(label["run"]))

    said, accepted = verdict(answer), _accepted(label)
    assert (said if said in accepted else accepted[0]) == said, label["why"]


def test_every_log_has_a_label() -> None:
    labelled = {label["run"].get("log", name) for name, label in LABELS.items()}

    assert labelled == {path.stem for path in LOGS.glob("*.log")}


def test_labels_keep_the_rules_of_labelling() -> None:
    """Blame and retirement go together, and stay inside the allocation."""
    broken = [
        (name, accepted)
        for name, label in LABELS.items()
        for accepted in _accepted(label)
        if bool(accepted["blame"]) != (accepted["action"] == "retire_and_relaunch")
        or not set(accepted["blame"]) <= set(label["run"]["hosts"])
    ]

    assert [] == broken


def test_cases_known_wrong_exist() -> None:
    assert set() == set(KNOWN_WRONG["engines"]) - set(LABELS)
