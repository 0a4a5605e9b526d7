"""`supervise signatures` lists the database, and tells entries that do not do what they say."""

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Supervise

GOOD = """
- id: my-fabric-down
  title: The fabric of our site is down
  cause: network
  role: notice
  sources: [rank]
  blames: nobody
  pattern: 'xyzzy fabric down'
  samples:
    - line: 'xyzzy fabric down'
  near_misses: ['xyzzy fabric up']
  references: ['seen: our site']
"""


def test_list_as_json_holds_every_entry(supervise: "Supervise") -> None:
    listed = json.loads(supervise("signatures", "list", "--json").stdout)

    ids = [entry["id"] for entry in listed]
    assert len(ids) == len(set(ids)) > 50
    assert {"cause", "role", "sources", "pattern", "file", "line"} <= set(listed[0])


def test_entries_of_the_user_join_the_shipped_ones(supervise: "Supervise") -> None:
    (supervise.folder / "mine").mkdir()
    (supervise.folder / "mine" / "site.yaml").write_text(GOOD)

    ended = supervise("signatures", "list", "--signatures", "mine")

    assert "my-fabric-down" in ended.stdout


def test_entry_that_hits_its_near_miss_is_told(supervise: "Supervise") -> None:
    (supervise.folder / "mine").mkdir()
    (supervise.folder / "mine" / "site.yaml").write_text(GOOD.replace("fabric up", "fabric down!"))

    ended = supervise("signatures", "test", "mine")

    assert ended.exit_code == 1
    assert "entry 'my-fabric-down': near_misses: is hit: 'xyzzy fabric down!'" in ended.stdout


def test_folder_that_is_missing_is_one_line(supervise: "Supervise") -> None:
    ended = supervise("signatures", "list", "--signatures", "missing")

    assert ended.exit_code == 2
    assert len(ended.stderr.splitlines()) == 1


@pytest.fixture
def mine(supervise: "Supervise") -> Path:
    folder = supervise.folder / "mine"
    folder.mkdir()
    (folder / "site.yaml").write_text(GOOD)
    return folder


def test_entry_is_shown_with_all_its_fields(supervise: "Supervise", mine: Path) -> None:
    shown = supervise("signatures", "show", "my-fabric-down", "--signatures", "mine")
    fields = json.loads(
        supervise("signatures", "show", "my-fabric-down", "--signatures", "mine", "--json").stdout
    )

    words = ("The fabric of our site is down", "xyzzy fabric up", "seen: our site", "site.yaml:2")
    assert [word for word in words if word not in shown.stdout] == []
    assert fields["literal"] == "xyzzy fabric down"
    assert fields["near_misses"] == ["xyzzy fabric up"]


def test_unknown_id_is_answered_with_like_ones(supervise: "Supervise", mine: Path) -> None:
    ended = supervise("signatures", "show", "my-fabric-dwn", "--signatures", "mine")

    assert ended.exit_code == 2
    assert "did you mean my-fabric-down" in ended.stderr


def test_good_entries_hold(supervise: "Supervise", mine: Path) -> None:
    ended = supervise("signatures", "test", "mine")

    assert (ended.exit_code, ended.stdout) == (0, "1 signature, 2 samples: all hold\n")


def test_entry_of_the_user_overrides_ours_by_id(supervise: "Supervise", mine: Path) -> None:
    (mine / "site.yaml").write_text(GOOD.replace("my-fabric-down", "nccl-peer-closed"))

    ended = supervise("signatures", "show", "nccl-peer-closed", "--signatures", "mine")

    assert "The fabric of our site is down" in ended.stdout


def test_variable_and_default_folder_are_read_too(supervise: "Supervise", mine: Path) -> None:
    default = supervise.folder / "config" / "supervise" / "signatures"
    default.mkdir(parents=True)
    (default / "a.yaml").write_text(GOOD.replace("my-fabric-down", "my-default"))
    environ = {
        "SUPERVISE_SIGNATURES": str(mine),
        "XDG_CONFIG_HOME": str(supervise.folder / "config"),
    }

    listed = supervise("signatures", "list", env=environ).stdout

    assert "my-fabric-down" in listed
    assert "my-default" in listed


@pytest.mark.parametrize("words", ["signatures list", "explain log", "-- true"])
def test_broken_file_is_one_line_wherever_it_was_named(
    supervise: "Supervise", mine: Path, words: str
) -> None:
    (mine / "site.yaml").write_text(GOOD.replace("role: notice", "role: judge"))
    (supervise.folder / "log").write_text("nothing\n")
    local = ["--virtual-hosts", "1"] if words == "-- true" else []

    ended = supervise(*local, *words.split(), env={"SUPERVISE_SIGNATURES": str(mine)})

    assert ended.exit_code == 2
    assert f"{mine}/site.yaml:5: entry 'my-fabric-down': role: 'judge' is none of" in ended.stderr


def test_try_shows_hits_with_line_numbers_and_captures(supervise: "Supervise") -> None:
    log = supervise.folder / "log.gz"
    log.write_bytes(gzip.compress(b"one\nx1 kernel: disk on fire\nx2 kernel: disk on fire\n"))

    ended = supervise("signatures", "try", "^<HOST> kernel: disk on fire", str(log))

    assert ended.exit_code == 0
    assert ended.stdout.splitlines() == [
        "accepted; looked for by ' kernel: disk on fire'",
        "2: x1 kernel: disk on fire  host=x1",
        "3: x2 kernel: disk on fire  host=x2",
        "2 hits",
    ]


def test_try_shows_no_more_than_a_hundred(supervise: "Supervise") -> None:
    (supervise.folder / "log").write_text("disk on fire\n" * 250)

    ended = supervise("signatures", "try", "disk on fire", "log")

    assert len(ended.stdout.splitlines()) == 102
    assert ended.stdout.endswith("250 hits, the first 100 shown\n")


def test_try_without_a_hit_ends_as_grep_does(supervise: "Supervise") -> None:
    (supervise.folder / "log").write_text("all is well\n")

    ended = supervise("signatures", "try", "disk on fire", "log")

    assert (ended.exit_code, ended.stdout.splitlines()[-1]) == (1, "0 hits")


@pytest.mark.parametrize(
    "pattern", ["(?:a+b?)+ on fire", "on (?=fire)", "fire", "<HOST> on fire", "^a*a*a* on fire$"]
)
def test_try_refuses_what_loading_would_refuse(supervise: "Supervise", pattern: str) -> None:
    (supervise.folder / "log").write_text("disk on fire\n")

    ended = supervise("signatures", "try", pattern, "log")

    assert ended.exit_code == 2
    assert ended.stderr.startswith("supervise: error: the pattern is refused: it ")
