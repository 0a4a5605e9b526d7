"""What the tests of `supervise explain` share: how it is asked, and which cases are known wrong.

The words are those of the command line, so that the contract under test is the one users have;
the call is in this process, since a process for each of some hundred logs would take minutes.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
KNOWN_WRONG: dict[str, dict[str, str]] = yaml.safe_load((HERE / "known_wrong.yaml").read_text())


class Asking:
    """Asks `supervise explain` about a log."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, log: Path, flags: Mapping[str, object]) -> dict[str, Any]:
        """What it answers in JSON; a flag without a value is left out."""
        from supervisor.cli.explain import main

        told = (f"--{flag}={value}" for flag, value in flags.items() if value not in (None, ""))
        assert 0 == main([str(log), "--json", *told])
        answer: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return answer


def cases(names: Iterable[str], kind: str) -> list[Any]:
    """A parameter for each name; one known wrong must fail, for the reason written there."""
    known = KNOWN_WRONG[kind]
    return [pytest.param(name, id=name, marks=_marks(known.get(name))) for name in names]


def _marks(reason: str | None) -> list[pytest.MarkDecorator]:
    return [] if reason is None else [pytest.mark.xfail(strict=True, reason=reason)]


def verdict(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What of an answer is compared; the order of hosts does not count."""
    return {
        "cause": answer["cause"],
        "blame": sorted(answer["blame"]),
        "action": answer["action"],
    }
