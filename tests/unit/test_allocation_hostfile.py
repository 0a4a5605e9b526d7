"""The user's list of hosts, as loosely as people write it."""

from pathlib import Path

import pytest

from supervisor.adapters.hostfile import read
from supervisor.errors import UsageError


def _written(folder: Path, content: bytes) -> Path:
    path = folder / "hosts"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "hosts", "ranks"),
    [
        (b"a1\na2\n", ("a1", "a2"), 1),
        (b"# mine\n\n  a1  \n\ta2\t# the good one\n", ("a1", "a2"), 1),
        (b"\xef\xbb\xbfa1\r\na2\r\n", ("a1", "a2"), 1),
        (b"a2\na1\na2\n", ("a2", "a1"), None),
        (b"a1 slots=4\na2\tslots=4 max_slots=8\n", ("a1", "a2"), 4),
        (b"a1 slots = 4\na1 slots=4\n", ("a1",), 4),
        (b"a1:4\na2:4", ("a1", "a2"), 4),
        (b"a1:4\na2:2\n", ("a1", "a2"), None),
        (b"a1\na1\na2\na2\n", ("a1", "a2"), 2),
        (b"a1.hpc.example\nA1\na1-hsn0\na2-hsn0\n", ("a1.hpc.example", "a2-hsn0"), None),
        (b"10.0.0.1:2\n10.0.0.2:2\n", ("10.0.0.1", "10.0.0.2"), 2),
        (b"fe80::1\n", ("fe80::1",), 1),
    ],
)
def test_loose_spelling_is_understood(
    tmp_path: Path, content: bytes, hosts: tuple[str, ...], ranks: int | None
) -> None:
    assert (hosts, ranks) == read(_written(tmp_path, content))


@pytest.mark.parametrize("content", [b"", b"\n \n", b"# a1\n"])
def test_empty_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = _written(tmp_path, content)

    with pytest.raises(UsageError, match=f"hostfile {path} names no host"):
        read(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a1\na2 a3\n", "line 2: cannot read 'a3'"),
        (b"-launcher-exec=/x\n", "line 1: '-launcher-exec=/x' is no host name"),
        (b"a1\n\nnode[1-3]\n", "line 3: 'node[1-3]' is no host name"),
        (b"a1 slots=0\n", "line 1: cannot read 'slots=0'"),
        (b"a1:0\n", "line 1: 'a1:0' is no host name"),
        (b"\xff\xfe\n", "line 1: "),
    ],
)
def test_unreadable_line_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(_written(tmp_path, content))

    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["missing", "."])
def test_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / name)


def test_endless_file_is_refused() -> None:
    with pytest.raises(UsageError, match="more than"):
        read(Path("/dev/zero"))


def test_ten_thousand_hosts_with_a_line_a_rank_are_read(tmp_path: Path) -> None:
    """Counting a host's lines by looking through all lines took minutes at this size."""
    lines = "".join(f"node{number}\n" * 8 for number in range(10_000))

    hosts, ranks = read(_written(tmp_path, lines.encode()))

    assert (len(hosts), ranks) == (10_000, 8)
