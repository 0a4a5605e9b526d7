"""`--dry-run` prints the plan and leaves nothing behind."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Supervise

LINE = "--virtual-hosts 4 --nodes 2 --spare-nodes 1 --ppn 3 --launcher local --dry-run --run-dir r"


def test_plan_as_json_has_the_fields_scripts_rely_on(supervise: "Supervise") -> None:
    ended = supervise(*LINE.split(), "--json", "--", "echo", "a b", "--nodes", "9")

    plan = json.loads(ended.stdout)
    assert set(plan) == {"hosts", "spares", "argv", "environment", "hostfile"}
    assert (plan["hosts"], plan["spares"]) == (["vhost1", "vhost2"], ["vhost3"])
    assert plan["argv"][-4:] == ["echo", "a b", "--nodes", "9"]
    assert plan["hostfile"] == "vhost1\nvhost2\n"
    assert plan["environment"]["SUPERVISE_RUN_DIR"] == str(supervise.folder / "r")


def test_plan_for_people_shows_a_line_that_can_be_pasted(supervise: "Supervise") -> None:
    ended = supervise(*LINE.split(), "--", "echo", "a b")

    assert ended.exit_code == 0
    assert "echo 'a b'" in ended.stdout
    assert "spares: vhost3" in ended.stdout
    assert "2 active hosts, 3 ranks each, 1 spare (--virtual-hosts 4)" in ended.stderr
    assert "1 host of it unused" in ended.stderr


def test_nothing_is_written(supervise: "Supervise") -> None:
    supervise(*LINE.split(), "--", "true")

    assert sorted(path.name for path in supervise.folder.iterdir()) == ["supervise-1"]
