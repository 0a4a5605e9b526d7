"""The choice of a checkpoint, on real folders."""

import json
import zlib
from pathlib import Path

import pytest

from supervisor.adapters.checkpoints import Chosen, choose_checkpoint, clear_unfinished
from supervisor.checkpoint_folder import (
    MANIFEST,
    MARKER,
    MARKER_TEXT,
    FileSum,
    Manifest,
    dump_manifest,
)
from supervisor.errors import PlatformError

SHARD = bytes(range(256)) * 32


def make_checkpoint(parent: Path, name: str, step: int, *, complete: bool = True) -> Path:
    folder = parent / name
    folder.mkdir(parents=True)
    shards = {"__0_0.distcp": SHARD, "__1_0.distcp": SHARD[::-1]}
    for shard, content in shards.items():
        (folder / shard).write_bytes(content)
    sums = {n: FileSum(size=len(c), crc32=zlib.crc32(c)) for n, c in shards.items()}
    manifest = Manifest(step=step, world_size=2, files=sums)
    (folder / MANIFEST).write_bytes(dump_manifest(manifest, torch="2"))
    if complete:
        (folder / MARKER).write_text(MARKER_TEXT)
    return folder


def truncate_shard(folder: Path) -> None:
    (folder / "__1_0.distcp").write_bytes(SHARD[:100])


def flip_byte(folder: Path) -> None:
    content = bytearray(SHARD)
    content[1000] ^= 1
    (folder / "__0_0.distcp").write_bytes(content)


def remove_shard(folder: Path) -> None:
    (folder / "__0_0.distcp").unlink()


def remove_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def tear_manifest(folder: Path) -> None:
    content = (folder / MANIFEST).read_bytes()
    (folder / MANIFEST).write_bytes(content[: len(content) // 2])


def point_outside(folder: Path) -> None:
    fields = json.loads((folder / MANIFEST).read_bytes())
    fields["files"]["../secret"] = {"size": 1, "crc32": 0}
    (folder / MANIFEST).write_text(json.dumps(fields))


def rename_step(folder: Path) -> None:
    fields = json.loads((folder / MANIFEST).read_bytes())
    (folder / MANIFEST).write_text(json.dumps({**fields, "step": 7}))


def test_missing_folder_holds_no_checkpoint(tmp_path: Path) -> None:
    assert Chosen() == choose_checkpoint(tmp_path / "none")


def test_highest_number_wins_over_the_longest_name(tmp_path: Path) -> None:
    """Sorted as text, step-9 would beat step-100."""
    make_checkpoint(tmp_path, "step-9", 9)
    newest = make_checkpoint(tmp_path, "step-100", 100)

    assert Chosen(step=100, path=str(newest)) == choose_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (truncate_shard, "__1_0.distcp has 100 bytes instead of 8192"),
        (flip_byte, "__0_0.distcp does not match its checksum"),
        (remove_shard, "__0_0.distcp is missing"),
        (remove_manifest, "manifest.json is missing"),
        (tear_manifest, "manifest.json is not JSON"),
        (point_outside, "'../secret' is not a file name"),
        (rename_step, "its manifest names another step"),
    ],
)
def test_damaged_checkpoint_is_set_aside_and_the_one_before_is_chosen(
    tmp_path: Path, damage, why: str
) -> None:
    older = make_checkpoint(tmp_path, "step-00000010", 10)
    damage(make_checkpoint(tmp_path, "step-00000020", 20))

    chosen = choose_checkpoint(tmp_path)

    assert (10, str(older)) == (chosen.step, chosen.path)
    assert why in chosen.set_aside[0]
    assert ["step-00000010", "step-00000020.bad"] == sorted(p.name for p in tmp_path.iterdir())


def test_second_damaged_checkpoint_of_a_step_gets_another_name(tmp_path: Path) -> None:
    for _ in range(2):
        flip_byte(make_checkpoint(tmp_path, "step-00000020", 20))
        choose_checkpoint(tmp_path)

    names = sorted(p.name for p in tmp_path.iterdir())

    assert ["step-00000020.bad", "step-00000020.bad.2"] == names


def test_without_time_sizes_are_still_checked_and_bytes_are_believed(tmp_path: Path) -> None:
    make_checkpoint(tmp_path, "step-00000010", 10)
    flip_byte(make_checkpoint(tmp_path, "step-00000020", 20))
    truncate_shard(make_checkpoint(tmp_path, "step-00000030", 30))

    assert 20 == choose_checkpoint(tmp_path, budget_seconds=0.0).step


def test_folders_that_are_not_ours_or_not_finished_are_left_alone(tmp_path: Path) -> None:
    """Another tool's step-40 with its own .complete must not be renamed under its feet."""
    make_checkpoint(tmp_path, "step-00000010", 10)
    make_checkpoint(tmp_path, "step-00000020", 20, complete=False)
    make_checkpoint(tmp_path, "step-00000050.a3.tmp", 50)
    foreign = tmp_path / "step-40"
    foreign.mkdir()
    (foreign / MARKER).touch()
    before = sorted(p.name for p in tmp_path.iterdir())

    chosen = choose_checkpoint(tmp_path)

    assert (10, ()) == (chosen.step, chosen.set_aside)
    assert before == sorted(p.name for p in tmp_path.iterdir())


def test_clearing_removes_only_what_was_never_finished(tmp_path: Path) -> None:
    make_checkpoint(tmp_path, "step-00000010", 10)
    make_checkpoint(tmp_path, "step-00000020.a3.tmp", 20)
    make_checkpoint(tmp_path, "step-00000005.trash", 5)
    make_checkpoint(tmp_path, "step-00000007.bad", 7)

    cleared = clear_unfinished(tmp_path)

    assert ("step-00000005.trash", "step-00000020.a3.tmp") == cleared
    assert ["step-00000007.bad", "step-00000010"] == sorted(p.name for p in tmp_path.iterdir())


def test_folder_that_is_a_file_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()

    with pytest.raises(PlatformError, match=r"checkpoint folder .*file cannot be read: Not a dir"):
        choose_checkpoint(path)
