"""The rules for authors: each is told with file, line and field when it is broken."""

from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.adapters.benign_log import LINES, benign_log
from supervisor.adapters.signature_files import load_signatures
from supervisor.adapters.signature_rules import complaints, pattern_complaints

ENTRY = """\
- id: disk-on-fire
  title: A disk burns
  cause: node_hardware
  role: proof
  sources: [kernel]
  blames: reporter
  pattern: 'kernel: disk (?P<number>\\d{1,3}) on fire at '
  samples:
    - line: 'x1 kernel: disk 7 on fire at 451 C'
      expect: {number: '7'}
  near_misses:
    - 'x1 kernel: disk on shelf'
"""
OTHER = """\
- id: any-fire
  title: Fire
  cause: node_hardware
  role: notice
  sources: [kernel]
  blames: nobody
  pattern: ' on fire at '
  samples: [{line: 'barn on fire at 7'}]
  near_misses: ['a campfire at 7']
"""
BROKEN = {
    "has less than 8 bytes of fixed text": (
        7,
        "kernel: disk (?P<number>\\d{1,3}) on fire at ",
        "l: disk(?P<number>.\\d)",
    ),
    "lines of a healthy log": (
        7,
        "kernel: disk (?P<number>\\d{1,3}) on fire at ",
        " NCCL INFO (?P<number>\\d) ",
    ),
    "is not hit: ": (9, "disk 7 on", "disk seven on"),
    "captures {'number': '7'}, not {'number': '8'}": (9, "number: '7'", "number: '8'"),
    "is hit: 'x1 kernel: disk 9 on fire at 3'": (12, "disk on shelf", "disk 9 on fire at 3"),
    "is missing; add a harmless line": (
        1,
        "  near_misses:\n    - 'x1 kernel: disk on shelf'\n",
        "",
    ),
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def told(tmp_path: Path, text: str, other: str = "", tested: str = "a.yaml") -> list[str]:
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.yaml").write_text(other)
    loaded = load_signatures([tmp_path])
    entries = [entry for entry in loaded.entries if Path(entry.file).name == tested]
    return list(complaints(loaded, entries))


def test_good_entry_has_no_complaint(tmp_path: Path) -> None:
    assert told(tmp_path, ENTRY) == []


@pytest.mark.parametrize("words", BROKEN)
def test_broken_rule_is_told_with_its_place(tmp_path: Path, words: str) -> None:
    line, before, after = BROKEN[words]
    assert before in ENTRY

    found = [text for text in told(tmp_path, ENTRY.replace(before, after)) if words in text]

    assert len(found) == 1
    assert found[0].startswith(f"{tmp_path}/a.yaml:{line}: entry 'disk-on-fire': ")


def test_short_literal_may_be_stated(tmp_path: Path) -> None:
    text = ENTRY.replace("kernel: disk (?P<number>\\d{1,3}) on fire at ", "l: disk(?P<number>.\\d)")
    stated = text.replace("  samples:", "  literal: 'l: disk'\n  samples:").replace("'7'", "' 7'")

    assert told(tmp_path, stated) == []


def test_sample_of_another_entry_is_hit_too(tmp_path: Path) -> None:
    [found] = told(tmp_path, ENTRY, OTHER, tested="b.yaml")

    assert found.startswith(f"{tmp_path}/b.yaml:7: entry 'any-fire': pattern: hits a sample of ")


def test_pattern_slower_than_the_rule_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(ENTRY)
    [entry] = load_signatures([tmp_path]).entries
    signature = replace(entry.signature, pattern=r"^a*a*a* disaster$")

    [found] = pattern_complaints(replace(entry, signature=signature, literal=b" disaster"), 0)

    assert found.startswith(f"{tmp_path}/a.yaml:7: entry 'disk-on-fire': pattern: takes 0.")


def test_healthy_log_is_always_the_same() -> None:
    assert benign_log() == benign_log()
    assert benign_log().count(b"\n") == LINES
