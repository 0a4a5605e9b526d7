"""The shim's output: every byte arrives, whatever the command writes and the launcher tears."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from engines.shim_bench import PATIENCE, decoded, environ, python, run, running, shim_argv

from supervisor import wire
from supervisor.frame_decoder import Decoder

pytestmark = pytest.mark.engine

_RANKS, _LINES = 8, 20_000


def torture(seed: int, size: int) -> bytes:
    """Bytes with everything in them that a frame could stumble over."""
    chance = random.Random(seed)
    nasty = [
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b"\x1e",
        b"\x10",
        b"\x1f",
        b"\xff\xfe",
        b"\n\n\n",
        b"\x1e1.",
    ]
    pieces: list[bytes] = []
    while sum(map(len, pieces[-64:])) * len(pieces) / 64 < size:
        pieces += (chance.choice(nasty), chance.randbytes(chance.choice((1, 9, 300, 5000))))
        pieces.append(b"a long line of plain words " * chance.choice((1, 40, 400)))
    return b"".join(pieces)


def test_every_byte_arrives_whatever_it_is(tmp_path: Path) -> None:
    written = tmp_path / "written"
    written.write_bytes(torture(1, 5_000_000))
    code, told = run("cat", str(written))

    assert (0, b"") == (code, told.text)
    assert written.read_bytes() == told.output()
    assert written.stat().st_size == told.exited()["size"]


def test_output_without_a_newline_passes_in_bounded_memory() -> None:
    """Progress bars write 100 MB without ever ending a line."""
    shim = subprocess.Popen(
        shim_argv("head", "-c", "100000000", "/dev/zero"), env=environ(), stdout=subprocess.PIPE
    )
    decoder, size, memory = Decoder(), 0, 0
    with shim:
        while data := os.read(shim.stdout.fileno(), 1 << 18):
            for item in decoder.feed(data):
                assert isinstance(item, wire.Frame)
                size += len(item.payload) if item.kind == wire.Kind.OUTPUT else 0
            if 90_000_000 < size < 99_000_000:
                memory = psutil.Process(shim.pid).memory_info().rss

    assert (0, 100_000_000) == (shim.returncode, size)
    assert 0 < memory < 30_000_000


def test_the_end_of_a_line_is_shown_soon_and_not_at_once() -> None:
    program = "import time; print('half', end=''); time.sleep(600)"
    with running(*python(program)) as shim:
        shim.wait_for(b"half")


def test_lines_are_cut_only_after_newlines_where_they_fit_a_frame() -> None:
    program = "for number in range(5000): print('a line of output, number', number)"
    _, told = run(*python(program))
    pieces = [frame.payload for frame in told.frames if frame.kind == wire.Kind.OUTPUT]

    assert [] == [piece for piece in pieces if not piece.endswith(b"\n")]


def test_eight_ranks_share_one_pipe_and_lose_nothing() -> None:
    """All ranks of the local launcher inherit one pipe; writes up to PIPE_BUF are not torn."""
    program = "import os\nfor n in range(20_000): print(os.environ['RANK'], n, 'x' * (n % 200))"
    reader, writer = os.pipe()
    shims = [
        subprocess.Popen(shim_argv(*python(program)), env=environ(rank, _RANKS), stdout=writer)
        for rank in range(_RANKS)
    ]
    os.close(writer)
    with open(reader, "rb") as stream:
        told = decoded(stream.read())

    assert [0] * _RANKS == [shim.wait(PATIENCE) for shim in shims]
    assert b"" == told.text
    for rank in range(_RANKS):
        lines = (f"{rank} {n} {'x' * (n % 200)}\n" for n in range(_LINES))
        assert "".join(lines).encode() == told.output(rank)


def test_a_slow_reader_is_waited_for() -> None:
    shim = subprocess.Popen(
        shim_argv("head", "-c", "3000000", "/dev/zero"),
        env=environ(SUPERVISE_BEAT_SECONDS="0.1"),
        stdout=subprocess.PIPE,
    )
    stream = b""
    with shim:
        while data := os.read(shim.stdout.fileno(), 30_000):
            stream += data
            time.sleep(0.005)
    told = decoded(stream)

    assert (b"\0" * 3_000_000, b"") == (told.output(), told.text)
    assert told.reports(wire.Kind.BEAT)


@pytest.fixture(scope="module")
def mpiexec() -> str:
    return str(Path(sys.executable).with_name("mpiexec"))


def test_lines_torn_by_mpiexec_are_put_together_again(mpiexec: str) -> None:
    """MPICH cuts what it reads where its buffer ends, and puts other ranks' lines in between."""
    program = (
        "import os\nrank = int(os.environ['RANK'])\n"
        "for n in range(4000): print(f'rank {rank} line {n}', 'x' * (70 + (n * 7 + rank) % 200))"
    )
    ended = subprocess.run(
        [mpiexec, "-launcher", "fork", "-n", "4", *shim_argv(*python(program))],
        env=os.environ | {"SUPERVISE_LAUNCHER": "mpich"},
        stdout=subprocess.PIPE,
        timeout=PATIENCE + 4,
    )
    told = decoded(ended.stdout)

    assert (0, b"") == (ended.returncode, told.text)
    for rank in range(4):
        lines = (f"rank {rank} line {n} {'x' * (70 + (n * 7 + rank) % 200)}\n" for n in range(4000))
        assert "".join(lines).encode() == told.output(rank)
        assert 0 == told.exited(rank)["exit_code"]


def test_an_mpi_program_runs_unchanged(mpiexec: str) -> None:
    """The launcher talks to the MPI library through a descriptor that must stay open."""
    program = (
        "import os\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\n"
        "total = world.allreduce(world.rank + 1)\n"
        "print(world.rank, world.size, os.environ['RANK'], os.environ['WORLD_SIZE'], total)"
    )
    ended = subprocess.run(
        [mpiexec, "-launcher", "fork", "-n", "4", *shim_argv(*python(program))],
        env=os.environ | {"SUPERVISE_LAUNCHER": "mpich"},
        stdout=subprocess.PIPE,
        timeout=PATIENCE + 4,
    )
    told = decoded(ended.stdout)

    assert 0 == ended.returncode
    assert [b"%d 4 %d 4 10\n" % (n, n) for n in range(4)] == [told.output(n) for n in range(4)]
