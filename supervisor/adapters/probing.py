"""Runs the probe on hosts, all at once, each with its own deadline, and reads the answers."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from supervisor import wire
from supervisor.adapters import clock
from supervisor.core.events import HostProbed

PROBE_SECONDS = 10.0  # start of an interpreter from a cold shared file system included
_AT_ONCE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOrder:
    """What the probe shall do on each host."""

    attempt: int
    run_id: str
    reap: bool = False
    stacks: bool = False
    folders: tuple[Path, ...] = ()
    seconds: float = PROBE_SECONDS

    def argv(self) -> tuple[str, ...]:
        words = [sys.executable, "-I", "-m", "supervisor.probe", "--run-id", self.run_id]
        words += ["--attempt", str(self.attempt)]
        words += ["--reap"] * self.reap + ["--stacks"] * self.stacks
        for folder in self.folders:
            words += ["--folder", str(folder)]
        return tuple(words)


async def probe_hosts(
    order: ProbeOrder,
    hosts: Sequence[str],
    argv_on: Callable[[str, Sequence[str]], Sequence[str]],
    answered: Callable[[HostProbed], Awaitable[None]],
) -> None:
    """Probe hosts; `argv_on` says how to run a program on a host, `answered` takes each answer."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def probe(host: str) -> None:
        async with gate:
            await answered(await probe_host(order, host, argv_on(host, order.argv())))

    async with asyncio.TaskGroup() as group:
        for host in hosts:
            group.create_task(probe(host))


async def probe_host(order: ProbeOrder, host: str, argv: Sequence[str]) -> HostProbed:
    """Run the probe's argv and turn what it says, or its silence, into an event.

    Its output goes to files: a pipe would stay open in the hands of a host that has stopped.
    """
    environment = {key: value for key, value in os.environ.items() if key != wire.HOST}
    environment |= {wire.ROLE: "probe", wire.RUN_ID: order.run_id}
    with TemporaryFile() as out, TemporaryFile() as err:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(order.seconds):
                await process.wait()
        except TimeoutError:
            return _unreachable(order, host, f"no answer to the probe in {order.seconds:.0f} s")
        finally:
            if process.returncode is None:
                await _end(process)
        out.seek(0)
        err.seek(0)
        return _read_answer(order, host, out.read(), err.read())


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _read_answer(order: ProbeOrder, host: str, out: bytes, err: bytes) -> HostProbed:
    for line in reversed(out.splitlines()):
        try:
            words = json.loads(line)
        except ValueError:
            continue
        if isinstance(words, dict) and words.get("answer") in ("pass", "fail", "unknown"):
            return HostProbed(
                at=clock.now(),
                attempt=order.attempt,
                host=host,
                answer=words["answer"],
                why=str(words.get("why") or ""),
                leftovers=int(words.get("leftovers") or 0),
                cause=str(words.get("cause") or ""),
                live=not order.reap,
                running=words["running"] if isinstance(words.get("running"), int) else None,
            )
    last = err.decode(errors="replace").strip().splitlines()
    return _unreachable(order, host, last[-1][:200] if last else "the probe gave no answer")


def _unreachable(order: ProbeOrder, host: str, why: str) -> HostProbed:
    return HostProbed(
        at=clock.now(),
        attempt=order.attempt,
        host=host,
        answer="unreachable",
        why=why,
        live=not order.reap,
    )
