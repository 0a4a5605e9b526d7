"""Log files the command writes by itself: every new line of theirs is read, and read once."""

import os
from pathlib import Path

import pytest
from growing_logs import Following, add

from supervisor.adapters import clock
from supervisor.core.signature import Source


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
