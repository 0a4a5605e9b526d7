"""Signature files: what is wrong is said with file, line and field; what is right is served
afresh.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.adapters import cache_files
from supervisor.adapters.pattern_check import complaint, expand, required_literal
from supervisor.adapters.signature_files import load_signatures, shipped_folder
from supervisor.core.signature import Blames, Cause, Role, Signature, Source
from supervisor.errors import UsageError

ENTRY = """\
- id: disk-on-fire
  title: A disk burns
  cause: node_hardware
  role: proof
  sources: [kernel, launcher]
  blames: named
  pattern: '^<HOST> kernel: disk on fire at \\d+ C'
  samples:
    - line: 'x1 kernel: disk on fire at 451 C'
      source: kernel
      expect: {host: x1}
  near_misses: ['x1 kernel: disk on shelf']
  references: ['seen: Fahrenheit']
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    path.mkdir()
    return path


def write(folder: Path, text: str, name: str = "a.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refusal(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_signatures([folder])
    return str(caught.value)


def test_entry_is_read_with_its_macros_written_out(folder: Path) -> None:
    path = write(folder, ENTRY)

    [entry] = load_signatures([folder]).entries

    assert entry.signature == Signature(
        id="disk-on-fire",
        title="A disk burns",
        cause=Cause.NODE_HARDWARE,
        role=Role.PROOF,
        sources=frozenset({Source.KERNEL, Source.LAUNCHER}),
        blames=Blames.NAMED,
        pattern=r"^(?P<host>[\w.-]{1,99}) kernel: disk on fire at \d+ C",
    )
    assert entry.literal == b" kernel: disk on fire at "
    assert entry.samples[0].expect == {"host": "x1"}
    assert (entry.file, entry.line, entry.status) == (str(path), 1, "stable")


MISTAKES = {
    ("id: disk-on-fire", "id: Disk on fire"): (1, "id"),
    ("  title: A disk burns\n", ""): (1, "title"),
    ("node_hardware", "bad_luck"): (3, "cause"),
    ("role: proof", "role: judge"): (4, "role"),
    ("[kernel, launcher]", "[kernel, gossip]"): (5, "sources"),
    ("[kernel, launcher]", "[]"): (5, "sources"),
    ("[kernel, launcher]", "kernel"): (5, "sources"),
    ("blames: named", "blames: everybody"): (6, "blames"),
    ("<HOST> kernel", "kernel"): (7, "pattern"),
    ("on fire at", "(on fire at"): (7, "pattern"),
    ("kernel: disk on fire at", "k\\w+: d\\w+ at"): (7, "pattern"),
    ("at \\d+ C", "at (?=4)"): (7, "pattern"),
    ("at \\d+ C", "at (?:\\d+-?)+ C"): (7, "pattern"),
    ("at \\d+ C", ".* at .* C"): (7, "pattern"),
    ("at \\d+ C", "at (?:a|b|ab){1,40} C"): (7, "pattern"),
    ("at \\d+ C", "at \\S+\\s*\\S+\\s*\\S+ C"): (7, "pattern"),
    ("at \\d+ C", "at \\d+"): (7, "pattern"),
    ("^<HOST> kernel", "(?P<host>\\w+) kernel"): (7, "pattern"),
    ("^<HOST> kernel", "<HOST> kernel"): (7, "pattern"),
    ("'x1 kernel: disk on fire at 451 C'", "[]"): (9, "line"),
    ("source: kernel", "source: gossip"): (10, "source"),
    ("  references:", "  colour: red\n  references:"): (13, "colour"),
    ("  references:", "  title: Twice\n  references:"): (13, "title"),
    ("  references:", "  status: rumour\n  references:"): (13, "status"),
    ("  references:", "  literal: 'no such text'\n  references:"): (13, "literal"),
}


@pytest.mark.parametrize("change", MISTAKES, ids=lambda change: change[1][:30])
def test_mistake_is_told_with_its_line_and_field(folder: Path, change: tuple[str, str]) -> None:
    line, field = MISTAKES[change]
    assert change[0] in ENTRY
    path = write(folder, ENTRY.replace(*change))

    text = refusal(folder)

    assert text.startswith(f"{path}:{line}: entry '")
    assert f"': {field}: " in text
    assert "\n" not in text


def test_broken_yaml_is_told_with_its_line(folder: Path) -> None:
    path = write(folder, ENTRY + "- id: ]\n")

    assert refusal(folder).startswith(f"{path}:14: not YAML: ")


def test_text_that_is_not_utf8_is_told_with_its_line(folder: Path) -> None:
    path = folder / "a.yaml"
    path.write_bytes(ENTRY.encode() + b"# \xff\n")

    assert refusal(folder).startswith(f"{path}:14: not UTF-8")


def test_missing_folder_is_told() -> None:
    assert refusal(Path("/nowhere/at/all")).startswith("/nowhere/at/all: no such folder")


def test_same_id_twice_in_a_folder_is_told_with_both_places(folder: Path) -> None:
    first, second = write(folder, ENTRY), write(folder, ENTRY, "b.yaml")

    text = refusal(folder)

    assert text.startswith(f"{second}:1: entry 'disk-on-fire': id: also at {first}:1")


def test_one_bad_entry_refuses_the_whole_file(folder: Path) -> None:
    write(folder, ENTRY + ENTRY.replace("disk-on-fire", "other").replace("proof", "judge"))

    assert ":17: entry 'other': role: " in refusal(folder)


def test_later_folder_overrides_by_id(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(folder, ENTRY)
    write(other, ENTRY.replace("A disk burns", "A disk burns brightly"))

    loaded = load_signatures([folder, other])

    assert [entry.signature.title for entry in loaded.entries] == ["A disk burns brightly"]


def test_file_may_stand_for_a_folder(folder: Path) -> None:
    assert len(load_signatures([write(folder, ENTRY)]).entries) == 1


def test_empty_file_holds_nothing(folder: Path) -> None:
    write(folder, "# nothing yet\n")

    assert load_signatures([folder]).entries == ()


def test_second_load_needs_no_yaml(folder: Path, cache: Path) -> None:
    """YAML takes 70 ms of a start that should take 150."""
    write(folder, ENTRY)
    first = load_signatures([folder])
    program = (
        "import sys; from pathlib import Path;"
        "from supervisor.adapters.signature_files import load_signatures;"
        f"loaded = load_signatures([Path({str(folder)!r})]);"
        "print(loaded.digest, 'yaml' in sys.modules)"
    )

    told = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
        cwd=Path(__file__).parents[2],
    )

    assert told.stdout.split() == [first.digest, "False"]


def test_cached_set_equals_the_read_one(folder: Path) -> None:
    write(folder, ENTRY)

    assert load_signatures([folder]) == load_signatures([folder])


def test_changed_content_is_never_served_from_the_cache(folder: Path) -> None:
    path = write(folder, ENTRY)
    times = path.stat()
    load_signatures([folder])
    write(folder, ENTRY.replace("451", "452"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    [entry] = load_signatures([folder]).entries

    assert entry.samples[0].line == "x1 kernel: disk on fire at 452 C"


def test_damaged_cache_is_not_believed(folder: Path, cache: Path) -> None:
    write(folder, ENTRY)
    good = load_signatures([folder])
    [file] = cache.rglob("signatures-*.json")
    file.write_bytes(file.read_bytes()[:-3] + b"xyz")

    assert load_signatures([folder]) == good


def test_unwritable_cache_is_done_without(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, ENTRY)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no/such/place")

    assert len(load_signatures([folder]).entries) == 1
    assert cache_files.read_cache("anything") is None


def test_aliases_cannot_grow_without_bound(folder: Path) -> None:
    """A few lines of YAML aliases stand for billions of nodes when written out."""
    layers = "\n".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))
    write(folder, "- &a0 [x]\n" + layers)

    assert "is not a mapping" in refusal(folder)


def test_shipped_folder_holds_every_family() -> None:
    names = {path.stem for path in shipped_folder().glob("*.yaml")}

    assert {"pals", "hydra", "openmpi", "slurm", "pbs", "ssh", "nccl", "kernel"} <= names


def test_cached_json_has_no_machine_dependent_order(folder: Path, cache: Path) -> None:
    write(folder, ENTRY)
    load_signatures([folder])
    [file] = cache.rglob("signatures-*.json")

    [fields] = json.loads(file.read_bytes()[32:])

    assert fields["signature"]["sources"] == ["kernel", "launcher"]


LITERALS = {
    r"abcdef": b"abcdef",
    r"^abc\bdef$": b"abcdef",
    r"ab(?:cd|ce)fghij": b"fghij",
    r"x?abcdef": b"abcdef",
    r"(?:abcdef)?gh": b"gh",
    r"(?:abcdef)+gh": b"abcdef",
    r"\[rank(?P<rank>\d+)\]: out": b"]: out",
    r"[ab]": b"",
}


@pytest.mark.parametrize("pattern", LITERALS)
def test_literal_is_contained_in_every_match(pattern: str) -> None:
    assert required_literal(pattern) == LITERALS[pattern]


def test_tag_reads_what_loggers_put_before_a_line() -> None:
    assert complaint(expand("<TAG>abcdef")) is None
    assert complaint("(?i)abcdef") is not None
