"""What must not change a verdict: noise, paint, bars, other names, more of the same consequences.

Every labelled log is asked twice, as it is and changed. Whether the verdict is right is tested
elsewhere; here only that it does not depend on what says nothing.
"""

import random
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from job_logs import JobLog, Said, ask, jobs, matcher, said

from supervisor.adapters.line_text import without_escapes
from supervisor.core.signature import Role
from supervisor.wire import canonical_host

NOISE = (
    b"training goes on as planned",
    b"loss 3.2 lr 1e-4",
    b"[INFO] saved 12 files in 3.1 s",
    b"WARNING: foo() is deprecated, use bar()",
    b"Loading checkpoint shards: 100%|##########| 4/4",
    b"{'loss': 2.1, 'grad_norm': 0.7}",
    b"    return forward(x)",
    b"   ",
    b"",
)
PAINT = (b"\x1b[1m", b"\x1b[31m", b"\x1b[1;33m", b"\x1b[38;5;208m", b"\x1b]0;title\x07", b"\x1b[0m")
RANK = re.compile(rb"^\[[Rr]ank ?(\d+)\]")
STYLES = ("%d: ", "%4d: ", "[%d]: ", "[%d] ", "[1,%d]<stdout>:", "[1,%d]<stderr>: ", "[Rank %d] ")
STYLES += ("[default%d]:", "[prterun-head-9@1,%d]<stdout>: ")

pytestmark = pytest.mark.timeout(60)  # some hundred logs each, a second of a core

Change = Callable[[JobLog, random.Random], JobLog]

asked = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
some_job = st.sampled_from(jobs())
chance = st.integers(0, 1 << 32).map(random.Random)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


_verdicts: dict[str, Said] = {}


def _verdict(job: JobLog, folder: Path) -> Said:
    """On the log as it is."""
    if job.name not in _verdicts:
        _verdicts[job.name] = said(ask(job, folder))
    return _verdicts[job.name]


def _each_line(job: JobLog, change: Callable[[bytes], bytes]) -> JobLog:
    return replace(job, text=b"\n".join(map(change, job.text.split(b"\n"))))


def with_unrelated_lines(job: JobLog, chance: random.Random) -> JobLog:
    def change(line: bytes) -> bytes:
        return b"\n".join((*chance.choices(NOISE, k=chance.choice((0, 0, 1, 3))), line))

    return _each_line(job, change)


def with_unrelated_lines_shuffled(job: JobLog, chance: random.Random) -> JobLog:
    """Lines that no signature hits, that state neither time nor step, and stand in no box."""
    lines, hits, start = job.text.split(b"\n"), _starts_of_hits(job.text), 0
    free = []
    for number, line in enumerate(lines):
        if start not in hits and not re.search(rb"^[ =#*:-]|\d:\d\d|step|iter|poch|\r", line):
            free.append(number)
        start += len(line) + 1
    shuffled = chance.sample(free, k=len(free))
    moved = dict(zip(free, (lines[number] for number in shuffled), strict=True))
    return replace(job, text=b"\n".join(moved.get(n, line) for n, line in enumerate(lines)))


def with_noise_bytes(job: JobLog, chance: random.Random) -> JobLog:
    """Also bytes that no encoding has; not newline, carriage return and escape."""
    alphabet = bytes(byte for byte in range(256) if byte not in b"\n\r\x1b")

    def change(line: bytes) -> bytes:
        noise = bytes(chance.choices(alphabet, k=chance.randint(1, 60)))
        return noise + b"\n" + line if chance.random() < 0.3 else line

    return _each_line(job, change)


def with_painted_words(job: JobLog, chance: random.Random) -> JobLog:
    def change(line: bytes) -> bytes:
        parts = re.split(rb"(\s+)", line)
        painted = (chance.choice(PAINT) + part if chance.random() < 0.3 else part for part in parts)
        return b"".join(painted) + chance.choice((b"", b"\x1b[0m", b"\x1b[K"))

    return _each_line(job, change)


def with_bars_in_front(job: JobLog, chance: random.Random) -> JobLog:
    def change(line: bytes) -> bytes:
        number, drawn = chance.randint(0, 100), chance.choice((0, 0, 1, 5))
        return b" %3d%%|##    | %d/100 [00:01<00:05, 3.2it/s]\r" % (number, number) * drawn + line

    return _each_line(job, change)


def with_crlf(job: JobLog, chance: random.Random) -> JobLog:
    return replace(job, text=re.sub(rb"\r?\n", b"\r\n", job.text))


def with_trailing_blanks(job: JobLog, chance: random.Random) -> JobLog:
    return _each_line(job, lambda line: line + b" " * chance.randint(0, 5))


def without_last_newline(job: JobLog, chance: random.Random) -> JobLog:
    return replace(job, text=job.text.rstrip(b"\n"))


def with_another_tag(job: JobLog, chance: random.Random) -> JobLog:
    """A launcher that labels the output puts its own tag before that of the framework."""
    style = chance.choice(STYLES)

    def change(line: bytes) -> bytes:
        tag = RANK.match(line)
        return (style % int(tag[1])).encode() + line if tag else line

    return _each_line(job, change)


def with_more_consequences(job: JobLog, chance: random.Random) -> JobLog:
    """The lines it has that tell of a peer's end, again and again."""
    lines = [
        job.text[found.start : found.end]
        for found in matcher().match(job.text)
        if found.signature.role is Role.CASCADE
    ]
    more = chance.choices(lines, k=chance.randint(1, 200)) if lines else []
    return replace(job, text=b"\n".join((job.text.removesuffix(b"\n"), *more, b"")))


CHANGES = (
    with_unrelated_lines,
    with_unrelated_lines_shuffled,
    with_noise_bytes,
    with_painted_words,
    with_bars_in_front,
    with_crlf,
    with_trailing_blanks,
    without_last_newline,
    with_another_tag,
    with_more_consequences,
)


def _starts_of_hits(text: bytes) -> frozenset[int]:
    return frozenset(found.start for found in matcher().match(text))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@asked
@given(job=some_job, chance=chance)
def test_a_log_has_the_same_verdict(
    change: Change, folder: Path, job: JobLog, chance: random.Random
) -> None:
    assert _verdict(job, folder) == said(ask(change(job, chance), folder)), job.name


@asked
@given(job=some_job)
def test_a_log_printed_line_by_line_twice_accuses_nobody_else(folder: Path, job: JobLog) -> None:
    """An exception of an unknown host is counted by how often it was printed: that may change."""
    cause, blame, action = said(ask(_each_line(job, lambda line: line + b"\n" + line), folder))

    assert (cause, blame) == ("user_error", ()) or (cause, blame, action) == _verdict(job, folder)


@asked
@given(job=some_job, known=st.booleans())
def test_blame_lies_within_the_allocation(folder: Path, job: JobLog, known: bool) -> None:
    """Where the hosts are not given, within those that are found in the log."""
    found = ask(job if known else replace(job, hosts=()), folder)

    allocation = job.hosts if known else found.hosts
    assert set(found.verdict.blame) <= set(allocation)


@asked
@given(job=some_job, chance=chance)
def test_hosts_renamed_are_blamed_by_their_new_names(
    folder: Path, job: JobLog, chance: random.Random
) -> None:
    cause, blame, action = _verdict(job, folder)
    rename = _renamer(job, chance)
    plain = without_escapes(job.text).decode("latin-1")  # names with paint in them are not found

    changed = replace(
        job,
        text=rename(plain).encode("latin-1"),
        hosts=tuple(map(rename, job.hosts)),
        addresses={address: rename(host) for address, host in job.addresses.items()},
    )

    expected = (cause, tuple(sorted(map(rename, blame))), action)
    assert expected == said(ask(changed, folder)), job.name


def _renamer(job: JobLog, chance: random.Random) -> Callable[[str], str]:
    """Hosts change their names among each other, or all get a new stem, as cn- of cn-012."""
    short = list(dict.fromkeys(map(canonical_host, job.hosts)))
    stems = {found[0] for host in short if (found := re.match(r"[a-z-]+", host))}
    if chance.random() < 0.5 and not re.search(rb"[a-z-]\[\d", job.text):  # no gn[01-04]
        names, end = dict(zip(short, chance.sample(short, k=len(short)), strict=True)), r"(?!\w)"
    else:
        names, end = {stem: _new_stem(stem, chance) for stem in stems}, r"(?=[\d\[])"
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    begin = r"(?:(?<![\w-])|(?<=slurmstepd-))"
    pattern = re.compile(f"{begin}({'|'.join(longest_first)}){end}", re.ASCII | re.IGNORECASE)
    return lambda text: pattern.sub(lambda found: names[found[0].lower()], text)


def _new_stem(stem: str, chance: random.Random) -> str:
    return re.sub("[a-z]", lambda letter: chance.choice("qzvkwjy"), stem)


@asked
@given(
    parts=st.lists(
        st.binary(max_size=200)
        | st.sampled_from([entry.literal for entry in matcher()._entries])
        | st.sampled_from(jobs()).map(lambda job: job.text[:2000])
        | st.sampled_from((b"\n", b"\r", b"\x1b[", b"\x1b]", b"==> rank_3.err <==\n", b"\x1f\x8b")),
        max_size=30,
    )
)
@example(parts=[])
@example(parts=[b"\x1f\x8b"])
def test_no_bytes_raise(folder: Path, parts: list[bytes]) -> None:
    """But for what begins like gzip and is not, which is the user's mistake."""
    text = b"".join(parts)
    job = JobLog(name="any", text=b" " + text, hosts=("gn1", "gn2"), known={"ranks": 4})

    assert "success" != said(ask(job, folder))[0]


def test_ten_million_random_bytes_raise_nothing_and_take_bounded_time(folder: Path) -> None:
    text = random.Random(3).randbytes(10_000_000)
    began = time.thread_time()

    verdict = said(ask(JobLog(name="any", text=text, hosts=("gn1", "gn2")), folder))

    assert ("unknown", (), "relaunch") == verdict
    assert time.thread_time() - began < 15
