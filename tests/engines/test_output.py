"""What the ranks print, on real processes under each launcher: the logs are theirs to the byte.

A rank keeps a copy of all it writes in a file of its own; RUN_DIR has to hold the same.
"""

import sys
from pathlib import Path

import pytest
from conftest import Ended, Supervise

from supervisor import wire

LAUNCHERS = ("local", "mpich")
LINES = 25_000  # of each of 8 ranks
FORGED = b"".join(wire.frames(1, 0, b"words put into the mouth of rank 1\n"))
BAD_END = {"local": "was killed by signal 9", "mpich": "BAD TERMINATION"}

pytestmark = [pytest.mark.engine, pytest.mark.timeout(90)]

# Each program begins with this: `say` writes without a buffer and remembers.
PREAMBLE = """
import os, random, signal, sys, time
RANK = int(os.environ["RANK"])
said = []
def say(data):
    said.append(data)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1 + len(said) % 2, rest):]  # both descriptors are one pipe
def keep():
    with open(f"said.{RANK}", "wb") as file:
        file.write(b"".join(said))
"""

# Eight ranks on a deadline of their own: those that are late write as fast as they can.
FAST = """
begin, lines = time.monotonic(), int(sys.argv[1])
for number in range(lines):
    say(b"rank %d line %d of %s\\n" % (RANK, number, b"x" * (number * 7 % 90)))
    ahead = number / 12500 - (time.monotonic() - begin)
    if ahead > 0.01:
        time.sleep(ahead)
keep()
"""

TORTURE = """
dice, forged = random.Random(RANK), bytes.fromhex(sys.argv[1])
say(b"\\xff\\xfe not UTF-8 \\xc3\\x28\\n\\0NUL\\0\\n\\x1e\\x1e\\x1eRS\\x1e\\n\\r\\n\\n\\n\\x1e")
say(b"\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07\\n" + forged)
for percent in range(100):
    say(b"\\rtrain %3d%% |%s|" % (percent, b"#" * (percent // 4)))
say(forged[:-1]); say(b"\\n"); say(b"before " + forged[: len(forged) // 2]); say(b"\\x1e\\n")
for _ in range(6):  # torn lines: the pause is longer than a beginning is held back
    say(b"torn "); time.sleep(0.08); say(forged[:9]); time.sleep(0.08); say(b"apart\\n")
for _ in range(300):
    say(dice.randbytes(dice.randrange(1, 9000)))
say(bytes(range(1, 10)) * 2_222_222)  # 20 MB; none of its nine bytes is a newline
say(b"\\nlast words without an end")
keep()
"""

# Rank 1 dies while the others are in the middle of their words.
CUT_SHORT = """
if os.environ["SUPERVISE_ATTEMPT"] == "1":
    begin = time.monotonic()
    while time.monotonic() - begin < 30:
        say(b"spoken by rank %d: %s\\n" % (RANK, b"la" * len(said)))
        if RANK == 1 and time.monotonic() - begin > 0.3:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.001)
"""

GREETING = """
say(b"calm words of %d\\n" % RANK)
if RANK == 3:
    say(b"RuntimeError: seen by rank 3\\n")
"""


@pytest.fixture(params=LAUNCHERS)
def launcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def line(launcher: str, ppn: int, console: str, program: str, *words: str) -> list[str]:
    """Two virtual hosts on which each rank runs this program."""
    ours = ["--launcher", launcher, "--virtual-hosts", "2", "--ppn", str(ppn)]
    command = [sys.executable, "-c", PREAMBLE + program, *words]
    return [*ours, "--console", console, "--", *command]


def log(ended: Ended, rank: int, attempt: int = 1) -> Path:
    return ended.run_dir / f"attempts/{attempt:03d}/ranks/{rank:05d}.log"


def damaged(supervise: Supervise, ended: Ended, ranks: int) -> dict[int, str]:
    """Where the logs of these ranks depart from what each has written; empty when nowhere."""
    found = {}
    for rank in range(ranks):
        said, kept = (supervise.folder / f"said.{rank}").read_bytes(), log(ended, rank).read_bytes()
        if said != kept:
            at = next((i for i, (a, b) in enumerate(zip(said, kept)) if a != b), -1)  # noqa: B905
            found[rank] = f"{len(said)} bytes written, {len(kept)} kept, first difference at {at}"
    return found


def spoken(rank: int, size: int) -> bytes:
    """What CUT_SHORT has rank say first, this many bytes of it."""
    words, number = bytearray(), 0
    while len(words) < size:
        words += b"spoken by rank %d: %s\n" % (rank, b"la" * number)
        number += 1
    return bytes(words[:size])


def test_two_hundred_thousand_lines_are_kept_to_the_byte(
    supervise: Supervise, launcher: str
) -> None:
    """Eight ranks at about 100,000 lines a second in all, one write a line."""
    ended = supervise(*line(launcher, 4, "none", FAST, str(LINES)), timeout=60)

    assert (ended.exit_code, ended.stdout) == (0, ""), ended.stderr
    assert damaged(supervise, ended, 8) == {}
    assert log(ended, 7).read_bytes().count(b"\n") == LINES


def test_no_byte_is_too_strange_to_be_kept(supervise: Supervise, launcher: str) -> None:
    """Bars, NULs, torn lines, 20 MB without a newline, and words that look like our own frames."""
    ended = supervise(*line(launcher, 1, "none", TORTURE, FORGED.hex()), timeout=60)

    assert ended.exit_code == 0, ended.stderr
    assert damaged(supervise, ended, 2) == {}
    assert b"\x1e" not in (ended.run_dir / "attempts/001/launcher.log").read_bytes()


def test_the_launchers_words_and_the_ranks_words_are_kept_apart(
    supervise: Supervise, launcher: str
) -> None:
    """A launcher that tells of a death amid the ranks' output: each to its own log."""
    ended = supervise(*line(launcher, 2, "none", CUT_SHORT), timeout=60)
    words = (ended.run_dir / "attempts/001/launcher.log").read_text(errors="replace")
    logs = [log(ended, rank).read_bytes() for rank in range(4)]

    assert ended.exit_code == 0, ended.stderr
    assert BAD_END[launcher] in words
    assert "spoken by" not in words
    assert "lala" not in words
    assert "\x1e" not in words
    assert min(text.count(b"\n") for text in logs) > 10
    assert [rank for rank, text in enumerate(logs) if spoken(rank, len(text)) != text] == []


def test_the_first_rank_alone_is_shown_but_for_errors(supervise: Supervise, launcher: str) -> None:
    """--console first: an error line is shown whoever wrote it, and the logs have the rest."""
    ended = supervise(*line(launcher, 2, "first", GREETING))
    shown = sorted(ended.stdout.splitlines())

    assert ended.exit_code == 0, ended.stderr
    assert shown == ["[0 vhost1] calm words of 0", "[3 vhost2] RuntimeError: seen by rank 3"]
    assert log(ended, 2).read_bytes() == b"calm words of 2\n"


def test_a_console_of_none_shows_nothing(supervise: Supervise, launcher: str) -> None:
    """--console none: not even errors; the logs have all of it."""
    ended = supervise(*line(launcher, 2, "none", GREETING))

    assert (ended.exit_code, ended.stdout) == (0, ""), ended.stderr
    assert log(ended, 3).read_bytes() == b"calm words of 3\nRuntimeError: seen by rank 3\n"
