"""What `--dry-run` shows is what the first attempt starts."""

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Supervise

CHOSEN_LATER = {"MASTER_PORT", "SUPERVISE_RUN_ID"}


@pytest.mark.engine
@pytest.mark.parametrize("launcher", ["local", "mpich"])
def test_first_attempt_starts_what_the_dry_run_showed(
    supervise: "Supervise", launcher: str
) -> None:
    """A plan that is printed from other values than the one that runs is worse than none."""
    line = ["--virtual-hosts", "3", "--spare-nodes", "1", "--launcher", launcher]
    run = ["--run-dir", str(supervise.folder / "run"), "--", "sh", "-c", "exit 0"]
    shown = json.loads(supervise(*line, "--dry-run", "--json", *run).stdout)

    assert supervise(*line, *run).exit_code == 0

    launch = json.loads((supervise.folder / "run/attempts/001/launch.json").read_text())
    assert shown["argv"] == launch["argv"]
    fixed = {key: shown["environment"][key] for key in shown["environment"].keys() - CHOSEN_LATER}
    assert fixed == {key: launch["environment"].get(key) for key in fixed}
    assert shown["hostfile"] == (supervise.folder / "run/attempts/001/hostfile").read_text()
