"""The labelled failure logs get the cause, the blame and the action that each is labelled with."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from asking import KNOWN_WRONG, Asking, cases, verdict

LOGS = Path(__file__).parents[1] / "logs"
KINDS = ("corpus", "held_out", "held_out_2")
PATHS = {path.stem: path for kind in KINDS for path in LOGS.glob(f"{kind}/*.yaml")}


def _case(name: str) -> dict[str, Any]:
    case: dict[str, Any] = yaml.safe_load(PATHS[name].read_text(encoding="utf-8"))
    return case


def _flags(case: dict[str, Any]) -> dict[str, object]:
    context = case.get("context") or {}
    addresses = (f"{address}={host}" for address, host in (case.get("ip_map") or {}).items())
    return {
        "hosts": ",".join(case["hosts"]),
        "exit-code": case.get("exit_code"),
        "launcher": case["runtime"],
        "machine": case.get("machine"),
        "ranks": case.get("nranks"),
        "ppn": case.get("ppn"),
        "ip-map": ",".join(addresses),
        "elapsed": context.get("elapsed_s"),
        "walltime": context.get("walltime_s"),
    }


def _accepted(expected: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """The label; where what was said is an acceptable alternative, that."""
    causes = [expected["category"], *(expected.get("alt_categories") or ())]
    actions = [expected["action"], *(expected.get("alt_actions") or ())]
    return {
        "cause": said["cause"] if said["cause"] in causes else causes[0],
        "blame": sorted(expected.get("blame") or ()),
        "action": said["action"] if said["action"] in actions else actions[0],
    }


@pytest.mark.parametrize("name", cases(sorted(PATHS), "corpus"))
def test_verdict_is_as_labelled(name: str, explain: Asking, tmp_path: Path) -> None:
    """Each case says why it is labelled so."""
    case = _case(name)
    log = tmp_path / f"{name}.log"
    log.write_bytes(case["log"].encode(case.get("log_encoding", "utf-8")))

    answer = explain(log, _flags(case))

    said = verdict(answer)
    assert _accepted(case["expected"], said) == said, case["expected"]["why"]


def test_the_corpus_is_here() -> None:
    """An empty folder would pass."""
    assert len(PATHS) >= 102 + 133 + 65


def test_cases_known_wrong_exist() -> None:
    assert set() == set(KNOWN_WRONG["corpus"]) - set(PATHS)
