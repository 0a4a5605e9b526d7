"""The labelled logs of failed jobs as values, for tests that change them before they ask."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from supervisor.adapters.explaining import Answer, Question, answer_with
from supervisor.adapters.log_files import find_logs
from supervisor.adapters.matcher import Matcher
from supervisor.adapters.signature_files import load_signatures, shipped_folder
from supervisor.core.hindsight import advice

LOGS = Path(__file__).parent / "logs"
Said = tuple[str, tuple[str, ...], str]  # cause, blame in order of names, action


@dataclass(frozen=True, kw_only=True)
class JobLog:
    """One job: what it printed and what is known around it."""

    name: str
    text: bytes
    hosts: tuple[str, ...]
    known: Mapping[str, Any] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)


def ask(job: JobLog, folder: Path) -> Answer:
    """The verdict on it; the folder is for its log."""
    path = folder / "job.log"
    path.write_bytes(job.text)
    question = Question(
        logs=find_logs([str(path)]),
        folders=(),
        hosts=job.hosts,
        addresses=job.addresses,
        **job.known,
    )
    return answer_with(matcher(), question, lambda size: None)


def said(found: Answer) -> Said:
    """What of an answer a change of the log must not change."""
    verdict = found.verdict
    return verdict.cause.value, tuple(sorted(verdict.blame)), advice(verdict).value


@cache
def matcher() -> Matcher:
    """Of the signatures that are shipped."""
    return Matcher(load_signatures([shipped_folder()]), engine="plain")


@cache
def jobs() -> tuple[JobLog, ...]:
    """All of them."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    cases = [
        yaml.load(path.read_text(encoding="utf-8"), loader)
        for kind in ("corpus", "held_out")
        for path in sorted((LOGS / kind).glob("*.yaml"))
    ]
    labels = yaml.load((LOGS / "engines" / "labels.yaml").read_text(encoding="utf-8"), loader)
    return (*map(_of_case, cases), *(_of_label(name, label) for name, label in labels.items()))


def _of_case(case: Mapping[str, Any]) -> JobLog:
    around = case.get("context") or {}
    return JobLog(
        name=case["id"],
        text=case["log"].encode(case.get("log_encoding") or "utf-8"),
        hosts=tuple(case["hosts"]),
        addresses=case.get("ip_map") or {},
        known={
            "exit_code": case.get("exit_code"),
            "ranks": case.get("nranks"),
            "ranks_per_host": case.get("ppn"),
            "elapsed": around.get("elapsed_s"),
            "walltime": around.get("walltime_s"),
        },
    )


def _of_label(name: str, label: Mapping[str, Any]) -> JobLog:
    run = label["run"]
    text = (LOGS / "engines" / f"{run.get('log', name)}.log").read_bytes()
    return JobLog(
        name=name,
        text=text[: run.get("until")],
        hosts=tuple(run["hosts"]),
        known={
            "exit_code": run.get("exit_code"),
            "ranks": run["ranks"],
            "ranks_per_host": run["ppn"],
        },
    )
