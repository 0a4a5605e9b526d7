"""Log files the command writes by itself: every new line of theirs is read, and read once."""

import os
import select
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from supervisor.adapters import clock
from supervisor.adapters.extra_logs import ExtraLogs
from supervisor.adapters.sightings import Piece
from supervisor.core.signature import Source

QUEUED_EVENTS = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


class Following:
    """Followers of one folder, with a clock of the test's own."""

    def __init__(self, folder: Path, *, watched: bool) -> None:
        self.folder, self._watched, self.now = folder, watched, 100.0
        self._logs: list[ExtraLogs] = []

    def begin(
        self, pattern: str = "*.log", hosts: tuple[str, ...] = (), apart: str | None = None
    ) -> None:
        """Follow from now on."""
        logs = ExtraLogs(
            str(self.folder / pattern), hosts, apart, lambda path: self._watched, lambda: self.now
        )
        self._logs.append(logs)
        assert [] == logs.read()

    def pieces(self, after: float | None = None) -> list[Piece]:
        """What comes when the kernel tells, or the next time all files are looked at."""
        self.now += after or (0.02 if self._watched else 6.0)
        return [piece for pieces in iter(self._logs[-1].read, []) for piece in pieces]

    def lines(self, after: float | None = None) -> dict[str, bytes]:
        """The same by file."""
        return joined(self.pieces(after))

    def rest(self) -> dict[str, bytes]:
        """What comes at the end."""
        return joined([piece for pieces in self._logs[-1].rest() for piece in pieces])

    def wait(self, other: int, seconds: float) -> None:
        """Wait as the follower of an attempt does."""
        self.now += 0.02
        self._logs[-1].wait(other, seconds)

    def close(self) -> None:
        """Give the descriptors back."""
        for logs in self._logs:
            logs.close()


@pytest.fixture(params=["watched", "polled"])
def following(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Following]:
    following = Following(tmp_path, watched=request.param == "watched")
    yield following
    following.close()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Following]:
    following = Following(tmp_path, watched=True)
    yield following
    following.close()


def joined(pieces: list[Piece]) -> dict[str, bytes]:
    """The lines of each file."""
    found: defaultdict[str, bytes] = defaultdict(bytes)
    for piece in pieces:
        found[piece.file] += piece.lines
    return dict(found)


def add(path: Path, data: bytes) -> None:
    """Append, as a logger does."""
    with path.open("ab") as file:
        file.write(data)


def test_only_what_the_attempt_adds_is_read_in_whole_lines(following: Following) -> None:
    """Yesterday's error must not judge today's attempt."""
    old, new = following.folder / "old.log", following.folder / "new.log"
    old.write_bytes(b"yesterday\n")
    following.begin()
    add(old, b"today\nhalf")
    new.write_bytes(b"new\n")
    first = following.lines()
    add(old, b" done\n")

    assert {"old.log": b"today\n", "new.log": b"new\n"} == first
    assert {"old.log": b"half done\n"} == following.lines()
    assert {} == following.rest()


def test_the_end_of_a_line_that_nobody_ends_is_read_at_the_end(following: Following) -> None:
    """The last words of a rank that died while it wrote them."""
    following.begin()
    (following.folder / "a.log").write_bytes(b"one\nCUDA error: unc")
    first = following.lines()

    assert ({"a.log": b"one\n"}, {"a.log": b"CUDA error: unc\n"}) == (first, following.rest())


def test_nothing_is_handed_on_twice_while_nothing_is_added(following: Following) -> None:
    """A sweep looks at every file again."""
    following.begin()
    add(following.folder / "a.log", b"one\n")
    following.lines()

    assert {} == following.lines(after=11.0)


def test_bytes_of_any_encoding_are_kept_as_they_are(following: Following) -> None:
    """Latin-1, torn UTF-8, zeros, carriage returns, names that are no UTF-8."""
    following.begin()
    data = bytes(range(256)).replace(b"\n", b"") + b"\n\xe2\x96\r\n\0\0\n"
    name = os.fsencode(following.folder) + b"/\xff\xfe.log"
    Path(os.fsdecode(name)).write_bytes(data)

    assert {os.fsdecode(b"\xff\xfe.log"): data} == following.lines()


def test_a_line_without_end_comes_in_pieces_and_a_bar_as_it_is_redrawn(
    following: Following,
) -> None:
    """A bar ends no line for hours, and a dumped tensor may be one line of 100 MB."""
    following.begin()
    add(following.folder / "bar.log", b"\r 10%" * 300)
    add(following.folder / "long.log", b"x" * 1_000_000)
    found = following.lines()

    assert b"\r 10%" * 299 + b"\n" == found["bar.log"]
    assert 1_000_000 == found["long.log"].count(b"x")


def test_a_file_that_is_rotated_is_read_to_its_end_and_the_new_one_from_its_start(
    following: Following,
) -> None:
    """logrotate renames under the writer, which goes on writing to the old file for a while."""
    path, rotated = following.folder / "a.log", following.folder / "a.log.1"
    following.begin()
    add(path, b"1\n")
    first = following.lines()
    with path.open("ab") as writer:
        writer.write(b"2\n")
        path.rename(rotated)
        writer.write(b"3\n")
    path.write_bytes(b"4\n" * 5)
    second = following.lines()
    add(rotated, b"5\n")

    assert {"a.log": b"1\n"} == first
    assert sorted(b"2\n3\n" + b"4\n" * 5) == sorted(second["a.log"])
    assert {"a.log": b"5\n"} == following.lines()


def test_a_rotated_file_that_the_pattern_covers_too_is_not_read_twice(
    following: Following,
) -> None:
    """`*.log*` covers a.log.1 as well."""
    path = following.folder / "a.log"
    following.begin("*.log*")
    add(path, b"1\n")
    following.lines()
    path.rename(following.folder / "a.log.1")
    path.write_bytes(b"2\n")

    assert {"a.log": b"2\n"} == following.lines()


@pytest.mark.parametrize("size", [1, 100])
def test_a_file_that_was_emptied_is_read_from_its_start(following: Following, size: int) -> None:
    """copytruncate, or a logger that opens with mode "w"; shorter or longer than before."""
    path = following.folder / "a.log"
    following.begin()
    add(path, b"before\n" * 10)
    following.lines()
    path.write_bytes(b"after\n" * size)

    assert {"a.log": b"after\n" * size} == following.lines()


def test_a_file_replaced_by_a_renamed_one_is_read_from_its_start(following: Following) -> None:
    """Written beside and moved into place."""
    path = following.folder / "a.log"
    following.begin()
    add(path, b"old\n")
    following.lines()
    (following.folder / "a.new").write_bytes(b"new, longer\n")
    (following.folder / "a.new").rename(path)

    assert {"a.log": b"new, longer\n"} == following.lines()


def test_removed_files_are_forgotten_and_begun_anew(following: Following) -> None:
    """The next file may well get the inode of the one that was removed."""
    path = following.folder / "a.log"
    following.begin()
    add(path, b"first\n")
    following.lines()
    path.unlink()
    following.lines(after=11.0)
    path.write_bytes(b"second, longer\n")

    assert {"a.log": b"second, longer\n"} == following.lines()


def test_folders_that_appear_later_are_looked_into(following: Following) -> None:
    """Trainers make a folder an attempt, a host, a rank."""
    (following.folder / "there").mkdir()
    following.begin("logs/**/*.err")
    deep = following.folder / "logs" / "host1" / "3"
    deep.mkdir(parents=True)
    (deep / "r.err").write_bytes(b"deep\n")
    (following.folder / "logs" / "r.err").write_bytes(b"flat\n")
    (following.folder / "logs" / "r.out").write_bytes(b"not meant\n")
    first = following.lines()
    add(deep / "r.err", b"more\n")

    assert [b"deep\n", b"flat\n"] == sorted(first.values())
    assert [b"more\n"] == list(following.lines().values())


def test_a_folder_that_is_renamed_is_followed_by_its_new_name(following: Following) -> None:
    """Within one sweep."""
    old = following.folder / "run"
    old.mkdir()
    following.begin("*/a.log")
    add(old / "a.log", b"1\n")
    first = following.lines()
    old.rename(following.folder / "run.0")
    add(following.folder / "run.0" / "a.log", b"2\n")

    assert [b"1\n", b"2\n"] == [*first.values(), *following.lines(after=11.0).values()]


def test_links_pipes_and_folders_do_no_harm(following: Following, tmp_path: Path) -> None:
    """A pattern may cover anything; two names of one file are one file."""
    following.begin()
    path = following.folder / "a.log"
    os.mkfifo(following.folder / "pipe.log")
    (following.folder / "folder.log").mkdir()
    (following.folder / "dangling.log").symlink_to("nowhere")
    path.write_bytes(b"once\n")
    os.link(path, following.folder / "b.log")
    (following.folder / "c.log").symlink_to(path)

    assert [b"once\n"] == list(following.lines().values())
    assert {} == following.lines(after=11.0)


def test_our_own_files_are_not_among_them(following: Following) -> None:
    """`**/*.log` covers the run folder, whose logs hold what was read already."""
    ours = following.folder / "runs"
    following.begin("**/*.log", apart=str(ours))
    ours.mkdir()
    (ours / "launcher.log").write_bytes(b"again\n")

    assert {} == following.lines()


def test_the_name_of_a_file_tells_its_rank_and_host(following: Following) -> None:
    """A number no rank has is a job's; one below another host's name is a local rank."""
    following.begin("**/*.log", hosts=("h1", "h1", "h2", "h2"))
    for name in ("rank_2.log", "h2.example.org.log", "h2/rank_0.log", "4711.log", "main.log"):
        (following.folder / name).parent.mkdir(exist_ok=True)
        (following.folder / name).write_bytes(b"x\n")
    found = {piece.file: (piece.source, piece.rank, piece.host) for piece in following.pieces()}

    assert {
        "rank_2.log": (Source.RANK, 2, "h2"),
        "h2.example.org.log": (Source.RANK, None, "h2"),
        "h2/rank_0.log": (Source.RANK, None, "h2"),
        "4711.log": (Source.RANK, None, None),
        "main.log": (Source.RANK, None, None),
    } == found


def test_lines_are_numbered_and_dated(following: Following) -> None:
    """A hit names its line, and the journal shows how long it took us to see it."""
    path = following.folder / "a.log"
    following.begin()
    begin = clock.now()
    add(path, b"1\n2\n")
    (first,) = following.pieces()
    add(path, b"3\n")
    (second,) = following.pieces()

    assert [1, 3] == [first.first_line, second.first_line]
    assert first.written_at is not None
    assert begin - 0.1 <= first.written_at <= clock.now()


def test_a_date_in_the_future_is_now(watched: Following) -> None:
    """The clock of a file server may go ahead of ours."""
    watched.begin()
    path = watched.folder / "a.log"
    add(path, b"1\n")
    os.utime(path, (4e9, 4e9))
    (piece,) = watched.pieces()

    assert piece.written_at is not None
    assert piece.written_at <= clock.now()


def test_more_than_fits_into_one_read_comes_in_turns(following: Following) -> None:
    """One file of 3 MB must not make another wait, nor fill the memory."""
    following.begin()
    line = b"x" * 99 + b"\n"
    (following.folder / "big.log").write_bytes(line * 30_000)
    (following.folder / "small.log").write_bytes(line)
    pieces = following.pieces()

    assert {"big.log": line * 30_000, "small.log": line} == joined(pieces)
    assert 300_000 > max(len(piece.lines) for piece in pieces)
    assert "small.log" in [piece.file for piece in pieces[:3]]


def test_many_files_in_a_hurry_are_read_as_carefully_as_one(watched: Following) -> None:
    """Above 64 at once files are no longer looked at one by one, and descriptors are kept."""
    names = [f"{number}.log" for number in range(100)]
    paths = [watched.folder / name for name in names]
    watched.begin()
    expected: list[dict[str, bytes]] = []
    found: list[dict[str, bytes]] = []
    for text in (b"first\n", b"second\n", b"third\nto", b"rn\n"):
        for path in paths:
            add(path, text)
        found.append(watched.lines())
    whole = (b"first\n", b"second\n", b"third\n", b"torn\n")
    expected += [dict.fromkeys(names, text) for text in whole]
    for path in paths:
        path.rename(f"{path}.1")
        path.write_bytes(b"rotated, and longer than what was there before\n")
        add(Path(f"{path}.1"), b"late\n")
    found.append(watched.lines())
    expected.append(dict.fromkeys(names, b"late\nrotated, and longer than what was there before\n"))
    for path in paths:
        add(path, b"again\n")
        add(Path(f"{path}.1"), b"later\n")
    found.append({name: bytes(sorted(text)) for name, text in watched.lines().items()})
    expected.append(dict.fromkeys(names, bytes(sorted(b"again\nlater\n"))))
    for path in paths:
        path.write_bytes(b"emptied\n")
    found.append(watched.lines())
    expected.append(dict.fromkeys(names, b"emptied\n"))

    assert expected == found


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


@pytest.fixture
def exhausted() -> Iterator[Callable[[], None]]:
    """Use up what inotify allows this user."""
    from supervisor.adapters.inotify import Inotify

    taken: list[Inotify] = []

    def take() -> None:
        with suppress(OSError):
            while True:
                taken.append(Inotify())

    yield take
    for one in taken:
        one.close()


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
