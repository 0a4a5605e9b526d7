"""What the supervisor exists for, on real processes under each launcher: every way to lose an
attempt, and back.

The training is toy_train.py, which needs no torch; test_training.py does the same with a real one.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import Started, Supervise

TOY = str(Path(__file__).with_name("toy_train.py"))
LAUNCHERS = ("local", "mpich")

pytestmark = [pytest.mark.engine, pytest.mark.timeout(90)]


@pytest.fixture(params=LAUNCHERS)
def launcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def line(launcher: str, *options: str, ckpt: bool = True) -> list[str]:
    """Three virtual hosts, one of them a spare, two ranks each."""
    words = ["--launcher", launcher, "--virtual-hosts", "3", "--spare-nodes", "1", "--ppn", "2"]
    words += ["--grace", "3", *options]
    return [*words, "--checkpoint-dir", "ckpt"] if ckpt else words


def toy(*words: str) -> list[str]:
    return ["--", sys.executable, TOY, "--ckpt-dir", "ckpt", "--loss-file", "loss.jsonl", *words]


def losses(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "loss.jsonl").read_text().splitlines()]


def journal(run_dir: Path, kind: str) -> list[dict[str, Any]]:
    entries = map(json.loads, (run_dir / "journal.jsonl").read_text().splitlines())
    return [entry for entry in entries if entry["event"] == kind]


def summary(run_dir: Path) -> dict[str, Any]:
    return dict(json.loads((run_dir / "summary.json").read_text()))


def launches(run_dir: Path) -> list[list[str]]:
    """The hosts of each attempt, from what the launcher was given."""
    hostfiles = sorted((run_dir / "attempts").glob("*/hostfile"))
    return [[word.partition(":")[0] for word in path.read_text().split()] for path in hostfiles]


def survivors(run_dir: Path) -> list[psutil.Process]:
    """Processes of this run that are still there."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("SUPERVISE_RUN_DIR") == str(run_dir):
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.05)


def reached(started: Started, step: int) -> Callable[[], bool]:
    return lambda: f"step={step} " in started.stdout


def test_a_killed_rank_resumes_in_place(supervise: Supervise, launcher: str) -> None:
    """SIGKILL of one rank: no host is to blame, the newest checkpoint is taken up."""
    fault = ["--fault", "sigkill", "--fault-rank", "1", "--fault-step", "35"]
    ended = supervise(*line(launcher), *toy(*fault), timeout=60)
    steps = [loss["step"] for loss in losses(supervise.folder)]

    assert ended.exit_code == 0, ended.stderr
    assert len(launches(ended.run_dir)) == 2
    assert launches(ended.run_dir)[0] == launches(ended.run_dir)[1]
    assert steps == [*range(1, 35), *range(31, 61)]
    assert survivors(ended.run_dir) == []


def test_a_lost_host_is_retired_and_the_spare_takes_its_place(
    supervise: Supervise, launcher: str
) -> None:
    """The second host dies whole; the order of the others is kept, and no later attempt touches
    it.
    """
    fault = ["--fault", "host", "--fault-rank", "3", "--fault-step", "35"]
    words = line(launcher)
    words[words.index("3")] = "4"
    ended = supervise(*words, *toy(*fault), timeout=60)
    retired = (ended.run_dir / "retired.txt").read_text().splitlines()

    assert ended.exit_code == 0, ended.stderr
    assert launches(ended.run_dir) == [
        ["vhost1", "vhost2", "vhost3"],
        ["vhost1", "vhost4", "vhost3"],
    ]
    assert [entry.split("\t")[:3] for entry in retired] == [["vhost2", "1", "node_lost"]]
    assert "on vhost2 attempt 2" not in ended.stdout
    assert survivors(ended.run_dir) == []


def test_a_user_error_stops_at_once(supervise: Supervise, launcher: str) -> None:
    """KeyError on all ranks before the first step: one attempt, no spare spent, the words in the
    last line.
    """
    ended = supervise(*line(launcher), *toy("--fault", "keyerror", "--fault-step", "1"), timeout=60)
    last = ended.stderr.strip().splitlines()[-1]

    assert (ended.exit_code, len(launches(ended.run_dir))) == (1, 1), ended.stderr
    assert "KeyError: 'targets'" in last
    assert not (ended.run_dir / "retired.txt").exists()


def test_a_frozen_host_is_found_by_its_silence(supervise: Supervise, launcher: str) -> None:
    """All processes of a host are stopped; nothing prints an error and no launcher notices."""
    fault = ["--fault", "suspend-host", "--fault-rank", "3", "--fault-step", "35"]
    ended = supervise(*line(launcher, "--idle-timeout", "8"), *toy(*fault), timeout=80)
    retired = (ended.run_dir / "retired.txt").read_text().splitlines()

    assert ended.exit_code == 0, ended.stderr
    assert [entry.split("\t")[:2] for entry in retired] == [["vhost2", "1"]]
    assert launches(ended.run_dir)[1] == ["vhost1", "vhost3"]
    assert survivors(ended.run_dir) == []


def test_a_stopped_rank_is_found_though_another_prints(supervise: Supervise, launcher: str) -> None:
    """SIGSTOP of one rank while rank 0 prints telemetry: only steps are progress."""
    fault = ["--fault", "sigstop", "--fault-rank", "3", "--fault-step", "35", "--chatter"]
    ended = supervise(*line(launcher, "--idle-timeout", "5"), *toy(*fault), timeout=80)

    assert ended.exit_code == 0, ended.stderr
    assert len(launches(ended.run_dir)) == 2
    assert not (ended.run_dir / "retired.txt").exists()
    assert [loss["step"] for loss in losses(supervise.folder)][-1] == 60
    assert survivors(ended.run_dir) == []


def test_a_rank_that_names_a_host_convicts_nobody(supervise: Supervise, launcher: str) -> None:
    """A training script can print anything."""
    say = "vhost2: shepherd died from signal 9"
    fault = ["--fault", "sigkill", "--fault-rank", "0", "--fault-step", "15", "--say", say]
    ended = supervise(*line(launcher), *toy(*fault), timeout=60)

    assert ended.exit_code == 0, ended.stderr
    assert say in ended.stdout
    assert not (ended.run_dir / "retired.txt").exists()


def test_frightening_words_and_exit_0_are_a_success(supervise: Supervise, launcher: str) -> None:
    """Success is the ranks' own word, whatever they have printed."""
    say = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus\nCUDA out of memory"
    ended = supervise(*line(launcher), *toy("--steps", "5", "--fault-step", "3", "--say", say))

    assert (ended.exit_code, len(launches(ended.run_dir))) == (0, 1), ended.stderr
    assert summary(ended.run_dir)["outcome"] == "succeeded"


def test_a_supervisor_killed_hard_is_followed_by_one_that_adopts(
    supervise: Supervise, launcher: str
) -> None:
    """kill -9: the training goes on under its keeper, and the next supervisor takes it over."""
    words = [*line(launcher, "--run-dir", "run"), *toy("--step-time", "0.1")]
    first = supervise.start(*words)
    until(reached(first, 15))
    refused = supervise(*words)
    first.kill()
    ended = supervise(*words, timeout=60)
    log = (ended.run_dir / "attempts/001/ranks/00000.log").read_text()
    steps = [text.split()[0] for text in log.splitlines() if text.startswith("step=")]

    assert refused.exit_code == 2
    assert f"pid {first.process.pid}" in refused.stderr
    assert ended.exit_code == 0, ended.stderr
    assert len(launches(ended.run_dir)) == 1
    assert steps == [f"step={number}" for number in range(1, 61)]
    assert [loss["step"] for loss in losses(supervise.folder)] == list(range(1, 61))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing(
    supervise: Supervise, launcher: str, number: signal.Signals, code: int
) -> None:
    """One final line, the code of the signal, no process."""
    started = supervise.start(*line(launcher), *toy("--step-time", "0.1"))
    until(reached(started, 3))
    os.kill(started.process.pid, number)
    ended = started.wait(30)

    assert ended.exit_code == code, ended.stderr
    assert ended.stderr.strip().splitlines()[-1].startswith("supervise: ")
    assert survivors(ended.run_dir) == []
    assert summary(ended.run_dir)["outcome"] == "stopped"
