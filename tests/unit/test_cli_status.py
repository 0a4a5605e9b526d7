"""`supervise status` tells where a run stands from its file alone."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Supervise

STATUS: dict[str, Any] = {
    "run_id": "20261129-1",
    "phase": "running",
    "attempt": 2,
    "step": 30,
    "hosts": {
        "active": [f"h{number}" for number in range(100)],
        "spare": [],
        "suspect": [],
        "retired": ["bad1"],
    },
    "deadline": None,
    "last_verdict": {"cause": "node_lost", "blame": ["bad1"], "why": "its shims fell silent"},
    "updated_at": 1.0,
    "version": "0.1.0",
}


def _run(folder: Path, status: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").touch()
    (folder / "status.json").write_text(json.dumps(status))
    return folder


def test_status_is_told_in_a_few_lines(supervise: "Supervise") -> None:
    _run(supervise.folder / "mine", STATUS)

    ended = supervise("status", "mine")

    assert ended.exit_code == 0
    assert "running, attempt 2, step 30" in ended.stdout
    assert "h7 and 92 more" in ended.stdout
    assert "node_lost, blames bad1: its shims fell silent" in ended.stdout


def test_status_as_json_is_the_file(supervise: "Supervise") -> None:
    _run(supervise.folder / "mine", STATUS)

    assert json.loads(supervise("status", "mine", "--json").stdout) == STATUS


def test_newest_run_is_taken_when_none_is_named(supervise: "Supervise") -> None:
    for number, name in enumerate(("c", "a", "b")):
        run = _run(supervise.folder / "runs" / name, STATUS | {"run_id": name})
        os.utime(run / "journal.jsonl", (number, number))

    assert "run b in runs/b" in supervise("status").stdout
    assert "run a in runs/a" in supervise("status", "a").stdout


@pytest.mark.parametrize("content", ["", "{", "[]", '{"hosts": 1}'])
def test_broken_status_is_one_line(supervise: "Supervise", content: str) -> None:
    run = _run(supervise.folder / "mine", STATUS)
    (run / "status.json").write_text(content)

    ended = supervise("status", "mine")

    assert ended.exit_code == 2
    assert "mine/status.json is no" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
