"""Lines of every family of messages, on hosts and in wordings that no entry's own samples have.

Each file of families/ is a list: `line` with the `id` of the one signature that hits it, or with
`none: true` where nobody may take it for a fault.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor.adapters.matcher import Matcher
from supervisor.adapters.signature_files import SignatureSet

GROUPS = sorted((Path(__file__).parent / "families").glob("*.yaml"))
ENOUGH = 100  # lines a group


@pytest.fixture(scope="module")
def matcher(shipped: SignatureSet) -> Matcher:
    return Matcher(shipped, engine="plain")


@pytest.fixture(params=GROUPS, ids=lambda path: path.stem)
def group(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = yaml.safe_load(request.param.read_text())
    return lines


def test_each_line_hits_exactly_its_own_signature(
    matcher: Matcher, group: list[dict[str, Any]]
) -> None:
    wrong = {
        row["line"]: found for row in group if (found := hits(matcher, row["line"])) != wanted(row)
    }

    assert wrong == {}


def test_each_group_is_broad_and_has_look_alikes(group: list[dict[str, Any]]) -> None:
    assert len(group) >= ENOUGH
    assert any(wanted(row) == [] for row in group)


def test_no_line_is_an_entrys_own_sample(
    shipped: SignatureSet, group: list[dict[str, Any]]
) -> None:
    samples = {sample.line for entry in shipped.entries for sample in entry.samples}

    assert sorted(samples & {row["line"] for row in group if "id" in row}) == []


def test_every_entry_says_where_its_message_comes_from(shipped: SignatureSet) -> None:
    bare = [entry.signature.id for entry in shipped.entries if not entry.references]

    assert bare == []


def hits(matcher: Matcher, line: str) -> list[str]:
    text = b"step=1 loss=2\n" + line.encode() + b"\nstep=2 loss=2\n"
    return [found.signature.id for found in matcher.match(text)]


def wanted(row: dict[str, Any]) -> list[str]:
    return [] if row.get("none") else [row["id"]]
