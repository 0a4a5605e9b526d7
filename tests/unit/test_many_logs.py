"""Log files by the hundred or in a hurry: none waits for another, none is read less carefully."""

import os
import select
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from growing_logs import Following, add, joined

from supervisor.adapters import clock
from supervisor.adapters.inotify import Inotify
from supervisor.adapters.spool import BLOCK

QUEUED_EVENTS = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


@pytest.fixture
def exhausted() -> Iterator[Callable[[], None]]:
    """Use up what inotify allows this user."""
    taken: list[Inotify] = []

    def take() -> None:
        with suppress(OSError):
            while True:
                taken.append(Inotify())

    yield take
    for one in taken:
        one.close()


def test_more_than_fits_into_one_read_comes_in_turns(following: Following) -> None:
    """One file of 3 MB must not make another wait, nor fill the memory."""
    following.begin()
    line = b"x" * 99 + b"\n"
    (following.folder / "big.log").write_bytes(line * 30_000)
    (following.folder / "small.log").write_bytes(line)
    pieces = following.pieces()

    assert {"big.log": line * 30_000, "small.log": line} == joined(pieces)
    assert BLOCK >= max(len(piece.lines) for piece in pieces)
    assert "small.log" in [piece.file for piece in pieces[:3]]


def test_many_files_in_a_hurry_are_read_as_carefully_as_one(watched: Following) -> None:
    """Above 64 at once files are no longer looked at one by one, and descriptors are kept."""
    names = [f"{number}.log" for number in range(100)]
    watched.begin()
    found: list[dict[str, bytes]] = []
    for text in (b"first\n", b"second\n", b"third\nto", b"rn\n"):
        add_to_all(watched.folder, names, text)
        found.append(watched.lines())

    whole = (b"first\n", b"second\n", b"third\n", b"torn\n")
    assert [dict.fromkeys(names, text) for text in whole] == found


def test_many_files_are_rotated_and_emptied_without_loss(watched: Following) -> None:
    """A descriptor that was kept may be of the file that has another name now."""
    names = [f"{number}.log" for number in range(100)]
    rotated = [f"{name}.1" for name in names]
    watched.begin()
    for text in (b"first\n", b"second\n"):
        add_to_all(watched.folder, names, text)
        watched.lines()
    for old, new in zip(names, rotated, strict=True):
        (watched.folder / old).rename(watched.folder / new)
    add_to_all(watched.folder, names, b"rotated, and longer than what was there before\n")
    add_to_all(watched.folder, rotated, b"late\n")
    after_rotation = watched.lines()
    add_to_all(watched.folder, names, b"again\n")
    add_to_all(watched.folder, rotated, b"later\n")
    both = {name: tuple(sorted(text.splitlines())) for name, text in watched.lines().items()}
    for name in names:
        (watched.folder / name).write_bytes(b"emptied\n")

    late = b"late\nrotated, and longer than what was there before\n"
    assert dict.fromkeys(names, late) == after_rotation
    assert dict.fromkeys(names, (b"again", b"later")) == both
    assert dict.fromkeys(names, b"emptied\n") == watched.lines()


def add_to_all(folder: Path, names: list[str], text: bytes) -> None:
    for name in names:
        add(folder / name, text)


def test_lines_that_many_files_gained_while_we_were_late_are_not_dated_later(
    watched: Following,
) -> None:
    """A supervisor that was held up for minutes must not call its delay milliseconds."""
    paths = [watched.folder / f"{number}.log" for number in range(200)]
    watched.begin()
    for path in paths:
        add(path, b"1\n")
    watched.lines()
    for path in paths:
        add(path, b"2\n")
        os.utime(path, (1e9, 1e9))
    dates = [piece.written_at for piece in watched.pieces(after=1.0)]

    assert 200 == len(dates)
    assert all(date is not None and abs(date - 1e9) < 60 for date in dates)


def test_descriptors_are_given_back_when_files_grow_no_more(watched: Following) -> None:
    """Those of 10,000 ranks that have gone silent must not be missing elsewhere."""
    paths = [watched.folder / f"{number}.log" for number in range(100)]
    watched.begin()
    before = len(os.listdir("/proc/self/fd"))
    for text in (b"1\n", b"2\n"):
        for path in paths:
            add(path, text)
        watched.lines()
    kept = len(os.listdir("/proc/self/fd")) - before
    for _ in range(3):
        watched.lines(after=11.0)

    assert (100, before) == (kept, len(os.listdir("/proc/self/fd")))


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_burst_that_overflows_the_kernels_queue_loses_no_line(watched: Following) -> None:
    """The kernel drops events of a reader that does not come; then all files are looked at."""
    watched.begin()
    count = QUEUED_EVENTS + 500
    paths = [watched.folder / f"{number}.log" for number in range(count // 2)]
    for path in paths:
        path.write_bytes(b"one\n")
    for path in paths:
        add(path, b"two\n")
    late = watched.folder / "late.log"  # no event tells of it
    late.write_bytes(b"one\ntwo\n")
    found = watched.lines()

    assert len(paths) + 1 == len(found)
    assert {b"one\ntwo\n"} == set(found.values())


def test_a_queue_that_did_not_overflow_needs_no_sweep(watched: Following) -> None:
    """Else the tests above would pass without a watch."""
    watched.begin()
    add(watched.folder / "a.log", b"1\n")

    assert {"a.log": b"1\n"} == watched.lines(after=0.02)


def test_without_watches_left_files_are_polled(
    tmp_path: Path, exhausted: Callable[[], None]
) -> None:
    """A user has 128 instances of inotify at most, and other programs use them too."""
    exhausted()
    following = Following(tmp_path, watched=True)
    following.begin()
    add(tmp_path / "a.log", b"1\n")

    assert {"a.log": b"1\n"} == following.lines(after=11.0)
    following.close()


def test_a_polled_file_that_grew_lately_is_looked_at_more_often(tmp_path: Path) -> None:
    """Four times a second, and the others every few seconds."""
    following = Following(tmp_path, watched=False)
    (tmp_path / "cold.log").touch()
    following.begin()
    add(tmp_path / "hot.log", b"1\n")
    following.lines(after=6.0)
    add(tmp_path / "hot.log", b"2\n")
    add(tmp_path / "cold.log", b"3\n")

    assert {"hot.log": b"2\n"} == following.lines(after=0.26)
    assert {"cold.log": b"3\n"} == following.lines(after=6.0)
    following.close()


def test_a_change_ends_the_wait(watched: Following) -> None:
    """So that a line is read within milliseconds and not at the next look."""
    watched.begin()
    never, writer = os.pipe()
    add(watched.folder / "a.log", b"1\n")
    begin = clock.now()
    watched.wait(never, 10.0)

    assert clock.now() - begin < 5.0
    assert not select.select([never], [], [], 0)[0]
    assert {"a.log": b"1\n"} == watched.lines(after=0.02)
    os.close(never)
    os.close(writer)
