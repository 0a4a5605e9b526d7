"""Log files the command writes by itself."""

from pathlib import Path

from supervisor.adapters.extra_logs import ExtraLogs


def test_only_what_the_attempt_adds_is_read_in_whole_lines(tmp_path: Path) -> None:
    """Yesterday's error must not judge today's attempt."""
    old = tmp_path / "old.log"
    old.write_bytes(b"yesterday\n")
    logs = ExtraLogs(str(tmp_path / "*.log"))
    logs.read()
    with old.open("ab") as file:
        file.write(b"today\nhalf")
    (tmp_path / "new.log").write_bytes(b"new\n")

    assert logs.read() == [b"new\n", b"today\n"]


def test_without_a_pattern_nothing_is_read() -> None:
    """The option is off by default."""
    assert ExtraLogs(None).read() == []
