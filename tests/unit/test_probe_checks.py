"""What the probe says of a host: each check, and checks that never end."""

import time
from pathlib import Path

import pytest

from supervisor import host_checks
from supervisor.core.devices import short_of_devices
from supervisor.host_checks import (
    PASS,
    Answer,
    check_clock,
    check_command,
    check_folder,
    check_script,
    checks_of,
    run_checks,
)
from supervisor.host_devices import is_fatal, judge_devices


def _script(folder: Path, text: str) -> str:
    path = folder / "site-check"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_check_that_never_ends_costs_only_itself() -> None:
    def never() -> Answer:
        time.sleep(60)
        return PASS

    mute: Answer = ("unknown", "/lustre does not answer", "")
    began = time.monotonic()
    answers = run_checks([(never, "lustre", mute), (lambda: PASS, "other", mute)], seconds=0.3)
    assert [mute, PASS] == answers
    assert time.monotonic() - began < 3


def test_a_check_that_breaks_says_nothing_of_the_host() -> None:
    def broken() -> Answer:
        raise RuntimeError("no such thing")

    (answer,) = run_checks([(broken, "it", PASS)])
    assert ("unknown", "a check could not be made: no such thing", "") == tuple(answer)


def test_a_folder_is_read_and_written_and_nothing_is_left(tmp_path: Path) -> None:
    assert PASS == check_folder(str(tmp_path))
    assert [] == list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    assert "unknown" == check_folder(str(tmp_path / "none"))[0]


def test_a_file_in_place_of_a_folder_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer, why, cause = check_folder(str(tmp_path / "file"))
    assert ("fail", "environment") == (answer, cause)
    assert "Not a directory" in why


def test_a_script_that_is_missing_fails_and_a_bare_name_is_the_launcher_s(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    assert PASS == check_command(["python", "train.py"], str(tmp_path))
    assert PASS == check_command(["train-it", "x.py"], str(tmp_path))
    assert PASS == check_command(["python", "-m", "train"], str(tmp_path))
    missing = check_command(["python3.11", "gone.py"], str(tmp_path))
    assert ("fail", f"{tmp_path}/gone.py does not exist here", "environment") == missing


def test_a_command_that_may_not_be_executed_fails(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("")
    answer = check_command(["./train"], str(tmp_path))
    assert ("fail", f"{tmp_path}/./train cannot be executed", "environment") == answer


def test_a_clock_far_off_is_said_but_fails_nobody() -> None:
    assert PASS == check_clock(5.0)
    assert "ahead of the supervisor's" in check_clock(100.0)[1]
    assert "behind the supervisor's" in check_clock(-100.0)[1]
    assert "unknown" == check_clock(-100.0)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exit 0", "pass"),
        ("echo first; echo 'link 3 is slow' >&2; exit 4", "fail"),
        ("echo cannot tell; exit 75", "unknown"),
    ],
)
def test_a_site_s_script_decides_by_its_exit_code(tmp_path: Path, text: str, expected: str) -> None:
    assert expected == check_script(_script(tmp_path, text))[0]


def test_a_site_s_script_says_why_in_its_last_line(tmp_path: Path) -> None:
    script = _script(tmp_path, "echo first; echo 'link 3 is slow'; exit 4")
    assert ("fail", f"{script}: link 3 is slow", "") == check_script(script)


def test_a_healthy_host_passes_all_checks(tmp_path: Path) -> None:
    order: dict[str, object] = {"folders": [str(tmp_path)], "command": ["true"]}
    answers = [*host_checks.quick_answers(0.0), *run_checks(checks_of(order))]
    assert {"pass"} == {answer for answer, _, _ in answers}


def test_a_host_with_fewer_devices_than_most_is_short() -> None:
    assert {"c": 4} == short_of_devices({"a": 4, "b": 4, "c": 3})
    assert {} == short_of_devices({"a": 4, "b": 3})
    assert {} == short_of_devices({"a": 4, "b": 4, "c": 8})
    assert {} == short_of_devices({"a": 4})
    assert {} == short_of_devices({})


def test_nvidia_s_tool_names_a_lost_device() -> None:
    said = "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n"
    assert "fail" == judge_devices(255, said)[0]
    assert "unknown" == judge_devices(9, "NVIDIA-SMI has failed")[0]
    assert "pass" == judge_devices(0, "0, GPU-1\n1, GPU-2\n")[0]


def test_the_kernel_s_fatal_word_counts_for_an_hour() -> None:
    record = "4,1234,5000000,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    assert is_fatal(record, 6_000_000)
    assert not is_fatal(record, 4_000_000_000)
    assert not is_fatal(record.replace(" 79,", " 31,"), 6_000_000)
    assert not is_fatal("6,1,5000000,-;usb 1-1: new device", 6_000_000)
    assert not is_fatal("torn", 1)


def test_a_site_s_script_that_leaves_a_daemon_behind_is_not_waited_for(tmp_path: Path) -> None:
    script = _script(tmp_path, "sleep 5 & echo 'link 3 is slow'; exit 4")
    began = time.monotonic()
    assert ("fail", f"{script}: link 3 is slow", "") == check_script(script)
    assert time.monotonic() - began < 4


def test_of_a_site_s_script_that_writes_much_the_last_line_is_kept(tmp_path: Path) -> None:
    script = _script(tmp_path, "head -c 3000000 /dev/zero; echo; echo 'link 3 is slow'; exit 4")
    assert ("fail", f"{script}: link 3 is slow", "") == check_script(script)
