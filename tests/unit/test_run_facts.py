"""What a run folder tells whoever explains its logs."""

import json
from pathlib import Path

import pytest

from supervisor.adapters.run_facts import RunFacts, facts_of


def _run(folder: Path, attempt: str, exited: str, ranks: int) -> None:
    logs = folder / "attempts" / attempt / "ranks"
    logs.mkdir(parents=True)
    for rank in range(ranks):
        (logs / f"{rank:05d}.log").write_text("")
    (logs.parent / "exit.json").write_text(exited)


def test_the_newest_attempt_counts(tmp_path: Path) -> None:
    _run(tmp_path, "999", json.dumps({"exit_code": 1}), ranks=2)
    _run(tmp_path, "1000", json.dumps({"exit_code": 0, "signal": None}), ranks=4)
    (tmp_path / "status.json").write_text(json.dumps({"hosts": {"active": ["n1", "n3"]}}))

    assert RunFacts(exit_code=0, hosts=("n1", "n3"), ranks=4) == facts_of(tmp_path)


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"exit_code": "none"}'])
def test_what_cannot_be_read_is_not_known(tmp_path: Path, damaged: str) -> None:
    _run(tmp_path, "001", damaged, ranks=0)
    (tmp_path / "status.json").write_text(damaged)

    assert RunFacts() == facts_of(tmp_path)


def test_a_folder_of_logs_is_no_run_folder(tmp_path: Path) -> None:
    assert RunFacts() == facts_of(tmp_path)
