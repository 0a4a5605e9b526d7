"""`supervise signatures` lists the database, and tells entries that do not do what they say."""

import json
from typing import TYPE_CHECKING

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
