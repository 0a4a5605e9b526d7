"""Signature files are loaded again when they change; a mistake costs nothing."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from supervisor.adapters.database import Database
from supervisor.adapters.signature_files import SignatureSet
from supervisor.adapters.signature_watch import SignatureWatch, watch_signatures
from supervisor.errors import UsageError

ENTRY = """\
- id: {id}
  title: A title
  cause: launcher
  role: notice
  sources: [launcher]
  blames: nobody
  pattern: 'our launcher sneezed'
  samples: [{{line: 'our launcher sneezed'}}]
"""


class Heard:
    """What a watch has said so far."""

    def __init__(self) -> None:
        self.sets: list[SignatureSet] = []
        self.mistakes: list[str] = []

    def ids(self) -> list[str]:
        return [entry.signature.id for entry in self.sets[-1].entries] if self.sets else []


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "signatures"
    path.mkdir()
    (path / "a.yaml").write_text(ENTRY.format(id="one"))
    return path


@pytest.fixture
def watch(folder: Path, heard: Heard) -> Iterator[SignatureWatch]:
    watch = watch_signatures([folder], heard.sets.append, heard.mistakes.append)
    yield watch
    watch.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "not seen in 15 s"
        time.sleep(0.02)


def replace(folder: Path, text: str, name: str = "a.yaml") -> None:
    (folder / "new").write_text(text)
    os.replace(folder / "new", folder / name)


def test_changed_file_is_loaded_again(watch: SignatureWatch, folder: Path, heard: Heard) -> None:
    replace(folder, ENTRY.format(id="two"))
    until(lambda: heard.ids() == ["two"])

    assert heard.mistakes == []


def test_new_file_is_loaded(watch: SignatureWatch, folder: Path, heard: Heard) -> None:
    (folder / "b.yaml").write_text(ENTRY.format(id="three"))

    until(lambda: heard.ids() == ["one", "three"])


def test_mistake_is_told_and_the_old_set_stays(
    watch: SignatureWatch, folder: Path, heard: Heard
) -> None:
    """An editor saves half a file while a thousand hosts run."""
    replace(folder, ENTRY.format(id="two").replace("notice", "judge"))
    until(lambda: bool(heard.mistakes))
    (folder / "unrelated.txt").write_text("x")
    replace(folder, ENTRY.format(id="four"))
    until(lambda: heard.ids() == ["four"])

    assert len(heard.mistakes) == 1
    assert "a.yaml:4: entry 'two': role: " in heard.mistakes[0]
    assert "stay in use" in heard.mistakes[0]
    assert len(heard.sets) == 1


def test_nothing_is_heard_after_close(folder: Path, heard: Heard) -> None:
    watch = watch_signatures([folder], heard.sets.append, heard.mistakes.append)
    watch.close()
    replace(folder, ENTRY.format(id="two"))

    assert (heard.sets, heard.mistakes) == ([], [])


MISTAKES = {
    "not YAML": b"- id: ]\n",
    "not UTF-8": b"# \xff\n",
    "'judge' is none of": ENTRY.format(id="two").replace("notice", "judge").encode(),
    "no fixed text": ENTRY.format(id="two")
    .replace("'our launcher sneezed'", "'[a-z]ed'", 1)
    .encode(),
    "repeats a repeat": ENTRY.format(id="two").replace("'our l", "'(?:a+b?)+our l", 1).encode(),
    "s of a line of": ENTRY.format(id="two").replace("'our l", "'^a*a*a*our l", 1).encode(),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_no_mistake_stops_the_watch(
    watch: SignatureWatch, folder: Path, heard: Heard, words: str
) -> None:
    (folder / "a.yaml").write_bytes(MISTAKES[words])
    until(lambda: bool(heard.mistakes))
    replace(folder, ENTRY.format(id="four"))
    until(lambda: heard.ids() == ["four"])

    assert words in heard.mistakes[0]
    assert heard.mistakes[0].startswith(f"{folder}/a.yaml:")


def test_folder_that_is_gone_leaves_the_old_set(
    watch: SignatureWatch, folder: Path, heard: Heard
) -> None:
    folder.rename(folder.with_name("moved"))
    until(lambda: bool(heard.mistakes))

    assert "no such folder" in heard.mistakes[0]
    assert heard.sets == []


def test_file_broken_after_the_start_does_not_stop_a_run(folder: Path) -> None:
    """Signatures are needed only when the first attempt prints; by then the file may be worse."""
    said: list[str] = []
    database = Database([folder], said.append)
    (folder / "a.yaml").write_text("- id: ]\n")

    found = database.matcher().match(b"our launcher sneezed\n")
    until(lambda: bool(said))

    assert [hit.signature.id for hit in found] == ["one"]
    assert f"{folder}/a.yaml:1: not YAML" in said[0]


def test_folder_gone_after_the_start_does_not_stop_a_run(folder: Path) -> None:
    said: list[str] = []
    database = Database([folder], said.append)
    folder.rename(folder.with_name("moved"))

    found = database.matcher().match(b"our launcher sneezed\n")
    until(lambda: bool(said))

    assert [hit.signature.id for hit in found] == ["one"]
    assert "no such folder" in said[0]


def test_file_with_a_mistake_is_told_before_a_run_starts(folder: Path) -> None:
    (folder / "a.yaml").write_text("- id: ]\n")

    with pytest.raises(UsageError, match=r"a\.yaml:1: not YAML"):
        Database([folder], print)
