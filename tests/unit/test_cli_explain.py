"""`supervise explain`: what it prints, what it answers to mistakes, and what is read from where."""

import gzip
import importlib.util
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor.adapters.matcher import Matcher
from supervisor.adapters.signature_files import load_signatures, shipped_folder
from supervisor.cli.bar import Bar
from supervisor.cli.explain import main
from supervisor.cli.main import main as supervise
from supervisor.errors import ExitCode

XID = "{host} kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=71, GPU has fallen off the bus.\n"
LOG = f"[rank0]: step 3 loss 2.1\n{XID.format(host='gn12')}"
HOSTS = "--hosts=gn11,gn12,gn13"


@pytest.fixture(scope="module", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache that is not the user's, filled once: else each ask would begin to fill it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        if importlib.util.find_spec("hyperscan") is not None:
            Matcher(load_signatures([shipped_folder()]), engine="fast")
        yield


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "job.log"
    path.write_text(LOG)
    return str(path)


def _answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert 0 == main([*words, "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def _mistake(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that a mistake is answered with."""
    assert int(ExitCode.USAGE) == supervise(["explain", *words])
    out, said = capsys.readouterr()
    assert ("", 1) == (out, said.count("\n"))
    assert said.startswith("supervise: error: ")
    return said


def test_json_has_the_keys_that_others_script_against(
    capsys: pytest.CaptureFixture[str], log: str
) -> None:
    answer = _answer(capsys, log, HOSTS)

    evidence = answer.pop("evidence")
    assert {
        "cause": "node_hardware",
        "blame": ["gn12"],
        "action": "retire_and_relaunch",
        "confidence": "proven",
        "hosts": ["gn11", "gn12", "gn13"],
        "set_aside": [],
    } == {key: answer[key] for key in answer if key != "why"}
    assert "GPU has fallen off the bus" in answer["why"]
    assert (f"{log}:2", "gn12") == (evidence[0]["place"], evidence[0]["speaker"])


def test_text_says_cause_blame_what_to_do_and_why(
    capsys: pytest.CaptureFixture[str], log: str
) -> None:
    assert 0 == supervise(["explain", log, HOSTS])

    told = capsys.readouterr().out.splitlines()
    assert [
        "cause: node_hardware (proven)",
        "blame: gn12",
        "do:    retire gn12 and relaunch from the newest checkpoint",
    ] == told[:3]
    assert any(line.startswith(f"  {log}:2: ") for line in told)


def test_hosts_are_found_in_the_log_when_none_are_given(
    capsys: pytest.CaptureFixture[str], log: str
) -> None:
    answer = _answer(capsys, log)

    assert (["gn12"], True) == (answer["blame"], "gn12" in answer["hosts"])


def test_a_host_outside_the_allocation_is_not_blamed(
    capsys: pytest.CaptureFixture[str], log: str
) -> None:
    assert [] == _answer(capsys, log, "--hosts=gn21,gn22")["blame"]


def test_hosts_are_blamed_as_the_user_spells_them(
    capsys: pytest.CaptureFixture[str], log: str
) -> None:
    blame = _answer(capsys, log, "--hosts=GN11.example.org, GN12.example.org")["blame"]

    assert ["GN12.example.org"] == blame


def test_exit_code_0_is_success(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    quiet = tmp_path / "quiet.log"
    quiet.write_text("step 3 loss 2.1\n")

    answer = _answer(capsys, str(quiet), HOSTS, "--exit-code=0")
    assert ("success", "stop") == (answer["cause"], answer["action"])


def test_time_used_up_is_walltime(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    quiet = tmp_path / "quiet.log"
    quiet.write_text("step 3 loss 2.1\n")

    answer = _answer(capsys, str(quiet), HOSTS, "--elapsed=1:00:00", "--walltime=1h")
    assert "walltime" == answer["cause"]


@pytest.mark.parametrize(
    ("placed", "host"),
    [(("--ppn=4",), "gn11"), (("--ranks=6",), "gn12"), (("--ranks=3", "--ppn=1"), None)],
)
def test_ranks_fill_one_host_after_the_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, placed: tuple[str, ...], host: str | None
) -> None:
    path = tmp_path / "job.log"
    path.write_text("[rank3]: ModuleNotFoundError: No module named 'flash_attn'\n")

    answer = _answer(capsys, str(path), HOSTS, *placed)
    assert ([host] if host else []) == answer["blame"]


@pytest.mark.parametrize(
    "placed",
    [
        ("--hosts=gn1,gn2,gn3,gn4", "--ranks=10"),  # 3 3 3 1 or 3 3 2 2: who knows
        ("--hosts=gn1,gn2,gn3,gn4", "--ranks=2"),
        ("--hosts=gn1,gn2,gn3,gn4", "--ranks=8", "--ppn=8"),  # no job of 8 has a rank 8
        ("--hosts=gn1,gn2,gn1,gn2", "--ppn=8"),
    ],
)
def test_a_rank_that_no_one_can_place_accuses_no_host(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, placed: tuple[str, ...]
) -> None:
    path = tmp_path / "job.log"
    path.write_text("[rank8]: ModuleNotFoundError: No module named 'flash_attn'\n")

    assert [] == _answer(capsys, str(path), *placed)["blame"]


@pytest.mark.parametrize("placed", ["--ppn=2", "--ranks=4"])
def test_a_host_that_is_listed_once_a_rank_is_one_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, placed: str
) -> None:
    path = tmp_path / "job.log"
    path.write_text("[rank2]: ModuleNotFoundError: No module named 'flash_attn'\n")

    answer = _answer(capsys, str(path), "--hosts=gn1,gn1,gn2,gn2", placed)
    assert ["gn2"] == answer["blame"]


def test_more_ranks_than_the_hosts_can_hold_are_a_mistake(
    capsys: pytest.CaptureFixture[str], log: str
) -> None:
    said = _mistake(capsys, log, HOSTS, "--ranks=16", "--ppn=2")

    assert "--ranks 16: 3 hosts with --ppn 2 hold 6" in said


@pytest.mark.parametrize("names", ["gpu-ib0,gpu-ib1", "n1.rack1,n1.rack2"])
def test_hosts_that_cannot_be_told_apart_are_a_mistake(
    capsys: pytest.CaptureFixture[str], log: str, names: str
) -> None:
    """Blame would fall on the first of them, whichever is meant."""
    first, second = names.split(",")

    assert f"{first} and {second} mean one host" in _mistake(capsys, log, f"--hosts={names}")


def test_a_folder_and_a_gzip_file_are_read_like_a_file(
    capsys: pytest.CaptureFixture[str], log: str, tmp_path: Path
) -> None:
    packed = tmp_path / "logs" / "job.log.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(LOG.encode()))

    for name in (packed, packed.parent):
        assert ["gn12"] == _answer(capsys, str(name), HOSTS)["blame"]


def test_an_empty_log_and_junk_say_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for data in (b"", bytes(range(256)) * 100, b"\x00" * 10_000):
        path = tmp_path / "junk.log"
        path.write_bytes(data)
        answer = _answer(capsys, str(path), HOSTS)
        assert ("unknown", [], "weak") == (answer["cause"], answer["blame"], answer["confidence"])


def test_no_log_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no log: write `supervise explain LOG...`" in _mistake(capsys)
    assert "no log" in _mistake(capsys, "--json")


def test_a_missing_log_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert "/no/such.log: no such file" in _mistake(capsys, "/no/such.log")


def test_a_folder_without_logs_is_a_mistake(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()

    assert "holds no log file" in _mistake(capsys, str(tmp_path / "empty"))


def test_gzip_cut_short_is_judged_by_what_is_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A job that dies leaves such files."""
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress(LOG.encode())[:-9])

    assert 0 == main([str(path), "--json"])
    told = capsys.readouterr()
    assert "cannot be read to its end" in told.err
    assert "node_hardware" == json.loads(told.out)["cause"]


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--ip-map=gn11", "'gn11' is no list of IP=HOST"),
        ("--ip-map=10.0.0.1=", "is no list of IP=HOST"),
        ("--ip-map==gn11", "is no list of IP=HOST"),
        ("--ppn=0", "--ppn: 0: must be at least 1"),
        ("--ranks=0", "--ranks: 0: must be at least 1"),
        ("--ranks=many", "'many' is no whole number"),
        ("--exit-code=bad", "--exit-code"),
        ("--elapsed=soon", "'soon' is no duration"),
        ("--walltime=-1", "'-1' is no duration"),
        ("--launcher=sbatch", "invalid choice: 'sbatch'"),
        ("--frobnicate", "'--frobnicate' is not understood"),
        ("--js", "'--js' is not understood"),
        ("--hosts", "expected one argument"),
    ],
)
def test_a_slip_in_an_option_is_a_mistake(
    capsys: pytest.CaptureFixture[str], log: str, flag: str, said: str
) -> None:
    assert said in _mistake(capsys, log, flag)


def test_the_bar_is_not_drawn_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar(1_000)
    bar.show(500)
    bar.warn("signature x is switched off")
    bar.clear()

    assert "supervise: signature x is switched off\n" == capsys.readouterr().err


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("total", "said"), [(10_000_000, " 50% of 10 MB"), (0, "5 MB")])
def test_the_bar_shows_how_much_is_read_and_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch, total: int, said: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    times = iter((0.0, 0.5, 2.0, 2.01))
    bar = Bar(total, lambda: next(times))
    for _ in range(3):  # at first not yet, then drawn, then not so soon again
        bar.show(5_000_000)
    bar.clear()

    assert f"\rsupervise: reading, {said}\r\x1b[K" == terminal.getvalue()


@pytest.mark.parametrize(("rank", "blame"), [(0, []), (1, ["n2"])])
def test_a_kernels_words_count_from_a_rank_on_that_host_only(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rank: int, blame: list[str]
) -> None:
    """A training script that prints what it read of another host convicts nobody."""
    path = tmp_path / "job.log"
    path.write_text(
        f"[rank{rank}]: n2 kernel: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off\n"
    )

    assert blame == _answer(capsys, str(path), "--hosts=n1,n2,n3", "--ppn=1")["blame"]


@pytest.mark.parametrize("hosts", ["gn[10-12]", "gn10,gn11,gn12", "gn10 gn11, gn12"])
def test_hosts_may_be_a_range_or_a_list(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, hosts: str
) -> None:
    path = tmp_path / "job.log"
    path.write_text("step=1\n")

    assert ["gn10", "gn11", "gn12"] == _answer(capsys, str(path), f"--hosts={hosts}")["hosts"]


def test_hosts_that_are_named_and_not_given_are_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "job.log"
    path.write_text("srun: error: Node failure on gn77\n")

    assert 0 == main([str(path), "--hosts=n1,n2"])
    assert "note:  the log names gn77, not of these hosts" in capsys.readouterr().out
