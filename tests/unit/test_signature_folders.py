"""Where the user's own signature files are looked for, and which of them decides."""

from pathlib import Path

import pytest

from supervisor.adapters.signature_folders import own_folders
from supervisor.errors import UsageError


@pytest.fixture
def default(tmp_path: Path) -> Path:
    folder = tmp_path / ".config" / "supervise" / "signatures"
    folder.mkdir(parents=True)
    return folder


def test_what_is_given_decides_over_variable_and_default(tmp_path: Path, default: Path) -> None:
    first, second, given = (tmp_path / name for name in ("first", "second", "given"))
    for folder in (first, second, given):
        folder.mkdir()
    environ = {"HOME": str(tmp_path), "SUPERVISE_SIGNATURES": f"{first}::{second}"}

    assert own_folders([str(given)], environ) == (default, first, second, given)


def test_default_folder_may_be_absent(tmp_path: Path) -> None:
    assert own_folders([], {"HOME": str(tmp_path)}) == ()
    assert own_folders([], {}) == ()


def test_default_folder_follows_the_desktop_standard(tmp_path: Path, default: Path) -> None:
    environ = {"HOME": "/nowhere", "XDG_CONFIG_HOME": str(tmp_path / ".config")}

    assert own_folders([], environ) == (default,)
    assert own_folders([], {**environ, "XDG_CONFIG_HOME": "relative"}) == ()


def test_one_file_may_be_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("")

    assert own_folders([str(file)], {}) == (file,)


def test_named_folder_that_is_missing_is_told_with_who_named_it() -> None:
    with pytest.raises(UsageError, match=r"^--signatures /no/such: no such folder"):
        own_folders(["/no/such"], {})
    with pytest.raises(UsageError, match=r"^\$SUPERVISE_SIGNATURES /no/such: no such folder"):
        own_folders([], {"SUPERVISE_SIGNATURES": "/no/such"})
