"""The matcher: the same hits from both engines, whatever a line is wrapped in."""

import importlib.util
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from supervisor.adapters.hits import Found, make_hit, speech
from supervisor.adapters.matcher import Matcher
from supervisor.adapters.matcher_fast import coarse, fast_engine
from supervisor.adapters.signature_entry import Entry
from supervisor.adapters.signature_files import SignatureSet, load_signatures
from supervisor.core.signature import Blames, Cause, Hit, Role, Signature, Source
from supervisor.errors import PlatformError

ENGINES = ["plain", *(["fast"] if importlib.util.find_spec("hyperscan") else [])]
KNOWN = {"x1": "x1", "x2.site.example": "x2", "10.0.0.7": "x7", "n1": "n1", "n2": "n2"}


def entry(identifier: str, pattern: str, literal: bytes, **changed: object) -> Entry:
    fields: dict[str, object] = {
        "id": identifier,
        "title": identifier,
        "cause": Cause.NODE_LOST,
        "role": Role.PROOF,
        "sources": frozenset({Source.LAUNCHER}),
        "blames": Blames.NAMED,
        "pattern": pattern,
    }
    return Entry(
        signature=Signature(**(fields | changed)),  # type: ignore[arg-type]
        literal=literal,
        samples=(),
        near_misses=(),
        references=(),
        status="stable",
        description="",
        file="here",
        line=1,
    )


LOST = entry(
    "lost", r"^(?:\[[^\]]{1,40}\] ?){0,3}(?P<host>[\w.-]{1,99}): shepherd died", b": shepherd died"
)
XID = entry(
    "xid",
    r"NVRM: Xid \(PCI:[\w:.]{4,20}\): 79, ",
    b"NVRM: Xid (PCI:",
    sources=frozenset({Source.KERNEL}),
    blames=Blames.REPORTER,
)
LIST = entry("list", r"Node failure on (?P<hosts>[\w.,\[\]-]{1,400})(?:\s|$)", b"Node failure on ")
PEER = entry(
    "peer",
    r"closed by peer \[?(?P<addr>[0-9a-f.:]{3,45})\]?:\d",
    b"closed by peer ",
    sources=frozenset({Source.RANK, Source.LAUNCHER}),
    role=Role.VOTE,
)
BURNT = entry("burnt", r"burnt down: (?P<host>n+)\b", b"burnt down: ")
ALL = SignatureSet(entries=(LOST, XID, LIST, PEER, BURNT), digest="test")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.getbasetemp() / "matcher-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture(params=ENGINES)
def matcher(request: pytest.FixtureRequest) -> Matcher:
    return Matcher(ALL, engine=request.param)


def brief(found: list[Found]) -> list[tuple[str, dict[str, bytes]]]:
    return [(one.signature.id, one.captures) for one in found]


def seen(
    found: Found,
    line: bytes,
    source: Source | None = Source.LAUNCHER,
    host: str | None = None,
    rank: int | None = None,
) -> Hit | None:
    said = speech(found, line, source=source, host=host, rank=rank, resolve=KNOWN.get)
    return None if said is None else make_hit(found, line, said, line_number=7)


def only(block: bytes) -> tuple[Found, bytes]:
    [found] = Matcher(ALL, engine="plain").match(block)
    return found, block[found.start : found.end]


def test_hit_has_the_place_of_its_line(matcher: Matcher) -> None:
    block = b"one\nx1: shepherd died of it\nthree\n"

    [found] = matcher.match(block)

    assert block[found.start : found.end] == b"x1: shepherd died of it"
    assert found.captures == {"host": b"x1"}


def test_block_may_be_a_view_of_a_buffer(matcher: Matcher) -> None:
    buffer = bytearray(b"junk x1: shepherd died\nx2: shepherd died\n")

    assert brief(matcher.match(memoryview(buffer)[23:])) == [("lost", {"host": b"x2"})]


def test_hits_come_in_the_order_of_their_lines(matcher: Matcher) -> None:
    block = b"Node failure on n1\nx1: shepherd died\nNode failure on n2\n"

    assert [one.start for one in matcher.match(block)] == [0, 19, 37]


def test_line_hits_a_signature_once(matcher: Matcher) -> None:
    block = b"Node failure on n1 Node failure on n2\n"

    assert brief(matcher.match(block)) == [("list", {"hosts": b"n1"})]


def test_colours_inside_a_line_do_not_hide_it(matcher: Matcher) -> None:
    """A launcher coloured host and number, and the one decisive line went unseen."""
    line = b"[\x1b[90m17:30:01\x1b[0m] \x1b[33mx1\x1b[0m: shep\x1b[1;31mherd\x1b[0m died"
    block = b"\x1b[31mred\x1b[0m\n" + line + b"\n\x1b]0;title\x07plain\n"

    [found] = matcher.match(block)

    assert found.captures == {"host": b"x1"}
    assert block[found.start : found.end] == line


def test_progress_bar_does_not_hide_what_follows_it(matcher: Matcher) -> None:
    """A kernel's line was glued to the end of a bar that never wrote a newline."""
    kernel = b"gpu-1 kernel: NVRM: Xid (PCI:0000:04:00): 79, off"
    glued = b"\rTrain: 50%| 2/4\rTrain: 55%| 3/4 err=0]" + kernel
    block = glued + b"\nnext\rx1: shepherd died\r\n"

    first, second = matcher.match(block)

    assert block[first.start : first.end] == glued[glued.rindex(b"\r") + 1 :]
    assert second.captures == {"host": b"x1"}


def test_long_line_is_searched_around_its_literal(matcher: Matcher) -> None:
    line = b"a" * 30_000 + b" Node failure on n1 " + b"b" * 30_000

    assert brief(matcher.match(line + b"\n")) == [("list", {"hosts": b"n1"})]


def test_cut_of_the_window_ends_no_capture(matcher: Matcher) -> None:
    line = b"a" * 20_000 + b" burnt down: " + b"n" * 20_000

    assert matcher.match(line) == []
    assert brief(matcher.match(b"burnt down: nnn\n")) == [("burnt", {"host": b"nnn"})]


def test_any_bytes_are_only_bytes(matcher: Matcher) -> None:
    every = bytes(range(256)) * 40

    assert matcher.match(every) == []
    assert matcher.match(b"") == []
    assert matcher.match(b"\x1b[" * 1000 + b"\x1b]" + b"\n\r" * 50) == []
    assert brief(matcher.match(every + b"\nx1: shepherd died \xff\xfe\n")) == [
        ("lost", {"host": b"x1"})
    ]


def test_slow_signature_is_switched_off_with_a_warning() -> None:
    """A pattern from a user's folder must not stop the supervisor from reading."""
    warnings: list[str] = []
    slow = entry("slow", r"^a*a*a* disaster$", b" disaster")
    matcher = Matcher(
        SignatureSet(entries=(slow, LIST), digest="slow"),
        engine="plain",
        on_switched_off=warnings.append,
    )
    line = b"a" * 1200 + b" disaster!\n"

    for _ in range(3):
        matcher.match(line)
    began = time.thread_time()
    found = matcher.match(line + b"Node failure on n1\n")

    assert warnings == ["signature slow is switched off: its pattern is too slow"]
    assert brief(found) == [("list", {"hosts": b"n1"})]
    assert time.thread_time() - began < 0.05


def test_little_text_starts_no_probe() -> None:
    """`supervise explain` on a short log is over before a probe could end, time and again."""
    matcher = Matcher(SignatureSet(entries=(LOST,), digest="little"), engine="auto")
    matcher.match(b"all is well\n" * 1000)

    assert matcher._fast is None


def test_auto_engine_serves_at_once_and_becomes_fast() -> None:
    matcher = Matcher(ALL, engine="auto")
    deadline = time.monotonic() + 15
    while matcher.engine != ENGINES[-1] and time.monotonic() < deadline:
        matcher.match(b"all is well\n" * 100_000)
        assert brief(matcher.match(b"x1: shepherd died\n")) == [("lost", {"host": b"x1"})]

    assert matcher.engine == ENGINES[-1]
    assert brief(matcher.match(b"x1: shepherd died\n")) == [("lost", {"host": b"x1"})]


@pytest.mark.skipif("fast" not in ENGINES, reason="hyperscan is not installed")
def test_library_that_kills_its_process_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing hyperscan on an older CPU ends in SIGILL, which no `except` catches."""
    (tmp_path / "hyperscan.py").write_text("import os; os.kill(os.getpid(), 4)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    with pytest.raises(PlatformError, match="use the plain engine"):
        fast_engine([b"abcdefg"], wait=True)
    kept = fast_engine([b"abcdefg"], wait=False)

    assert kept is not None
    assert not kept.ready()


def test_probe_does_not_outlive_its_parent(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        from supervisor.adapters.matcher_fast import fast_engine
        engine = fast_engine([b"abcdefg"], wait=False)
        print(engine._probe._process.pid if engine and engine._probe else 0)
    """)
    told = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
        cwd=Path(__file__).parents[2],
        env={"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )

    assert told.stdout.strip() == "0" or not Path(f"/proc/{told.stdout.strip()}").exists()


def test_coarse_pattern_loses_its_wide_bounds_only() -> None:
    assert (
        coarse(rb"[\w.-]{1,99}: \d{0,12}x{2,4}y{0,3}\{1,99}") == rb"[\w.-]+: \d*x{2,4}y{0,3}\{1,99}"
    )


def test_hit_carries_all_that_judging_needs() -> None:
    found, line = only(b"x2.site.example: shepherd died\n")

    assert seen(found, line, host="head") == Hit(
        signature="lost",
        title="lost",
        cause=Cause.NODE_LOST,
        role=Role.PROOF,
        blames=Blames.NAMED,
        source=Source.LAUNCHER,
        host="head",
        rank=None,
        named=("x2",),
        line="x2.site.example: shepherd died",
        line_number=7,
    )


def test_line_from_a_source_that_may_not_say_it_is_no_hit() -> None:
    """A training script that prints a launcher's words convicts nobody."""
    found, line = only(b"x1: shepherd died\n")

    assert seen(found, line, source=Source.RANK, host="x3", rank=3) is None


def test_unknown_name_names_nobody() -> None:
    found, line = only(b"stranger: shepherd died\n")
    hit = seen(found, line)

    assert hit is not None
    assert hit.named == ()


def test_bracket_list_names_each_of_its_hosts() -> None:
    found, line = only(b"srun: error: Node failure on n[1-3],x1,n[2]\n")
    hit = seen(found, line)

    assert hit is not None
    assert hit.named == ("n1", "n2", "x1")


def test_broken_bracket_list_names_nobody() -> None:
    found, line = only(b"srun: error: Node failure on n[1-\n")
    hit = seen(found, line)

    assert hit is not None
    assert hit.named == ()


def test_address_is_resolved_also_in_its_mapped_form() -> None:
    for text in (b"[10.0.0.7]:5", b"[::ffff:10.0.0.7]:5", b"10.0.0.7:5"):
        found, line = only(b"[rank3]: closed by peer " + text + b"\n")
        hit = seen(found, line, source=Source.RANK, host="x1", rank=3)

        assert hit is not None
        assert hit.named == ("x7",)


def test_kernel_line_of_another_machine_has_that_machine_as_its_source() -> None:
    """A site's syslog collector writes the kernels of many machines into one file."""
    found, line = only(b"Nov 29 12:00:01 n2 kernel: NVRM: Xid (PCI:0000:04:00): 79, off\n")
    other, foreign = only(b"stranger kernel: NVRM: Xid (PCI:0000:04:00): 79, off\n")

    hosts = [
        hit.host
        for hit in (
            seen(found, line, source=Source.KERNEL, host="x1"),
            seen(other, foreign, source=Source.KERNEL, host="x1"),
        )
        if hit
    ]

    assert hosts == ["n2", None]


def test_merged_log_tells_source_rank_and_host_by_tags() -> None:
    found, line = only(b"n1: [rank13]: closed by peer [10.0.0.7]:5\n")
    hit = seen(found, line, source=None)

    assert hit is not None
    assert (hit.source, hit.host, hit.rank) == (Source.RANK, "n1", 13)


def test_merged_log_does_not_let_a_rank_speak_for_the_launcher() -> None:
    found, line = only(b"[rank0]: srun: error: Node failure on n1\n")

    assert seen(found, line, source=None) is None


def test_shown_line_is_printable_and_short() -> None:
    head = b"\x1b[31mNode failure on n1 \x00\x07\xff" + "\u2588".encode() + b"x" * 900
    found, line = only(head + b"\n")
    hit = seen(found, line)

    assert hit is not None
    assert hit.line.startswith("Node failure on n1 ?")
    assert len(hit.line) == 300
    assert hit.line.isprintable()


def test_shown_line_shows_the_match_when_it_lies_far_out() -> None:
    found, line = only(b"x" * 5000 + b" Node failure on n1 \n")
    hit = seen(found, line)

    assert hit is not None
    assert "Node failure on n1" in hit.line


def test_shipped_set_and_own_folder_join(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "- id: own\n  title: Own\n  cause: launcher\n  role: notice\n  sources: [launcher]\n"
        "  blames: nobody\n  pattern: 'our launcher sneezed'\n"
        "  samples: [{line: 'our launcher sneezed'}]\n"
    )
    matcher = Matcher(load_signatures([tmp_path]), engine="plain")

    assert brief(matcher.match(b"our launcher sneezed\n")) == [("own", {})]
