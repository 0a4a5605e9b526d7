"""`supervise status [RUN]`: where a run stands, from its status.json, without asking any process.

The run may be on another machine, or over: the file is all there is to read.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from supervisor.adapters import clock
from supervisor.cli.parser import parse_with
from supervisor.errors import UsageError
from supervisor.linux import is_locked

SHOWN_HOSTS = 8  # of each kind; a run of 10,000 hosts must fit on a screen


def main(words: list[str]) -> int:
    """Print the status of a run."""
    options = parse_with(_parser(), words)
    folder = choose_run(options.run)
    text = _read(folder / "status.json")
    print(text.rstrip() if options.json else _told(_parsed(text, folder), folder))
    return 0


def choose_run(name: str | None) -> Path:
    """The run folder of that name, or the newest under ./runs."""
    if name is not None:
        for folder in (Path(name), Path("runs") / name):
            if folder.is_dir():
                return folder
        raise UsageError(f"{name}: no such run folder, here or under ./runs")
    runs = [file.parent for file in Path("runs").glob("*/journal.jsonl")]
    if not runs:
        raise UsageError("no run under ./runs: name its folder")
    return max(runs, key=lambda folder: (folder / "journal.jsonl").stat().st_mtime)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="supervise status",
        description="Where a run stands, from its folder.",
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="run folder (default: the newest under ./runs)"
    )
    parser.add_argument("--json", action="store_true", help="status.json as it is")
    return parser


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        why = f"{error.strerror}; is {path.parent} a run folder?"
        raise UsageError(f"{path} cannot be read: {why}") from error


def _parsed(text: str, folder: Path) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{folder / 'status.json'} is no JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("hosts"), dict):
        raise UsageError(f"{folder / 'status.json'} is no status of a run")
    return found


def _told(status: dict[str, Any], folder: Path) -> str:
    lines = [
        f"run {status.get('run_id')} in {folder}",
        f"{status.get('phase')}, attempt {status.get('attempt')}, step {_or_none(status, 'step')}",
        *_ending(status, folder),
    ]
    for kind in ("active", "spare", "suspect", "retired"):
        lines.append(f"{kind:8} {_hosts(status['hosts'].get(kind) or [])}")
    if verdict := _verdict(status.get("last_verdict")):
        lines.append(f"last verdict: {verdict}")
    if isinstance(deadline := status.get("deadline"), int | float):
        lines.append(f"deadline in {_span(deadline - clock.now())}")
    if isinstance(updated := status.get("updated_at"), int | float):
        lines.append(f"written {_span(clock.now() - updated)} ago")
    return "\n".join(lines)


def _ending(status: dict[str, Any], folder: Path) -> list[str]:
    """How it ended, or that nobody is left to end it."""
    if status.get("phase") == "finished":
        try:
            summary = json.loads((folder / "summary.json").read_text())
        except (OSError, ValueError):
            return []
        return [f"{summary['outcome']}, exit code {summary['exit_code']}: {summary['message']}"]
    if is_locked(str(folder / "lock")):
        return []
    return ["no supervisor holds this run: give the same command again to go on with it"]


def _or_none(status: dict[str, Any], key: str) -> str:
    value = status.get(key)
    return "none yet" if value is None else str(value)


def _hosts(names: list[str]) -> str:
    more = len(names) - SHOWN_HOSTS
    shown = " ".join(map(str, names[:SHOWN_HOSTS]))
    return f"{len(names):5}  {shown}{f' and {more} more' if more > 0 else ''}".rstrip()


def _verdict(found: object) -> str:
    if not isinstance(found, dict):
        return str(found or "")
    blame = ", ".join(map(str, found.get("blame") or ())) or "nobody"
    why = f": {found['why']}" if found.get("why") else ""
    return f"{found.get('cause')}, blames {blame}{why}"


def _span(seconds: float) -> str:
    """A time span as a person says it, `0:00:07`."""
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
