"""Starts real shims for the tests and takes apart what they say."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import supervisor
from supervisor import wire
from supervisor.frame_decoder import Decoder

SHIM = Path(supervisor.__file__).with_name("shim.py")
PATIENCE = 15.0  # seconds a test waits for what must come


@dataclass(frozen=True, kw_only=True)
class Told:
    """What was read from the standard output of shims."""

    frames: list[wire.Frame]
    text: bytes

    def output(self, rank: int = 1) -> bytes:
        """The rank's output; each piece must begin where the last one ended."""
        pieces = [f for f in self.frames if f.rank == rank and f.kind == wire.Kind.OUTPUT]
        ends = [frame.offset + len(frame.payload) for frame in pieces]

        assert [0, *ends[:-1]][: len(pieces)] == [frame.offset for frame in pieces]
        return b"".join(frame.payload for frame in pieces)

    def reports(self, kind: wire.Kind, rank: int = 1) -> list[dict[str, Any]]:
        found = [f for f in self.frames if f.rank == rank and f.kind == kind]
        return [json.loads(frame.payload) for frame in found]

    def exited(self, rank: int = 1) -> dict[str, Any]:
        (only,) = self.reports(wire.Kind.EXITED, rank)
        return only


def decoded(stream: bytes) -> Told:
    decoder = Decoder()
    items = decoder.feed(stream) + decoder.close()
    frames = [item for item in items if isinstance(item, wire.Frame)]
    return Told(frames=frames, text=b"".join(i for i in items if isinstance(i, bytes)))


def shim_argv(*command: str) -> list[str]:
    return [sys.executable, "-S", "-I", str(SHIM), *command]


def python(program: str) -> tuple[str, str, str, str]:
    """A command that runs a Python program; unbuffered, for its lines to come when printed."""
    return sys.executable, "-u", "-c", program


def environ(rank: int = 1, world_size: int = 2, **more: str) -> dict[str, str]:
    """The environment of a rank of the local launcher."""
    names = {"RANK": rank, "WORLD_SIZE": world_size, "LOCAL_RANK": rank}
    names |= {"LOCAL_WORLD_SIZE": world_size, "SUPERVISE_LAUNCHER": "local"}
    names |= {"SUPERVISE_RUN_ID": f"test-{os.getpid()}", "SUPERVISE_ATTEMPT": 1}
    return {**os.environ, **{name: str(value) for name, value in names.items()}, **more}


def run(*command: str, rank: int = 1, **more: str) -> tuple[int, Told]:
    """Run a command under a shim to its end; how the shim ended, and what it said."""
    ended = subprocess.run(
        shim_argv(*command), env=environ(rank, **more), stdout=subprocess.PIPE, timeout=PATIENCE
    )
    return ended.returncode, decoded(ended.stdout)


class Running:
    """A shim that runs; its output is read while it does."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process, self.stream = process, b""
        os.set_blocking(process.stdout.fileno(), False)

    def read(self) -> Told:
        with suppress(BlockingIOError):
            while data := os.read(self.process.stdout.fileno(), 1 << 16):
                self.stream += data
        return decoded(self.stream)

    def wait_for(self, words: bytes) -> Told:
        """Wait until the command has printed this."""
        wait_until(lambda: words in self.read().output())
        return self.read()

    def end(self) -> tuple[int, Told]:
        wait_until(lambda: self.read() and self.process.poll() is not None)
        return self.process.returncode, self.read()


@contextmanager
def running(*command: str, **more: str) -> Iterator[Running]:
    """A shim in the background, ended with all below it when the test has left."""
    process = subprocess.Popen(shim_argv(*command), env=environ(**more), stdout=subprocess.PIPE)
    try:
        yield Running(process)
    finally:
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
        process.kill()
        process.wait()
        process.stdout.close()


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that only waits to be collected has."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
