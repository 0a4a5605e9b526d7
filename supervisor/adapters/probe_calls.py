"""Starts one probe and hands on what it says, line by line: by a program, or on a virtual host."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from supervisor import virtual_call

_LONGEST_LINE = 1 << 20


class Saying:
    """The output of a probe that runs, and the last line of its complaints when it has ended."""

    def __init__(self, out: asyncio.StreamReader, err: IO[bytes]) -> None:
        self._out, self._err = out, err

    async def lines(self) -> AsyncIterator[bytes]:
        """Whole lines as they come; who has heard enough need not wait for the end."""
        while line := await self._out.readline():
            yield line

    def complaint(self) -> str:
        """The last line of its standard error."""
        self._err.seek(0)
        lines = self._err.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else ""


@asynccontextmanager
async def by_program(argv: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Saying]:
    """Run a program that runs the probe; leaving ends it, whether or not it has ended."""
    with TemporaryFile() as err:  # a pipe would stay open in the hands of a host that has stopped
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=err,
            start_new_session=True,
            limit=_LONGEST_LINE,
        )
        try:
            assert process.stdout is not None
            yield Saying(process.stdout, err)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


@asynccontextmanager
async def on_virtual_host(
    run_dir: Path, host: str, argv: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[Saying]:
    """Have a virtual host's daemon run the probe: no program of ours in between."""
    readable, writable = os.pipe()
    with TemporaryFile() as err, TemporaryFile() as nothing, os.fdopen(readable, "rb") as out:
        stdio = (nothing.fileno(), writable, err.fileno())
        try:
            call = virtual_call.call(
                str(run_dir), host, argv, environment=environment, cwd=str(Path.cwd()), stdio=stdio
            )
        finally:
            os.close(writable)
        reader = asyncio.StreamReader(limit=_LONGEST_LINE)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), out
        )
        try:
            yield Saying(reader, err)
        finally:
            transport.close()
            call.close()
