"""Runs the probe on hosts, each with its own deadline, and reads the answers as they come.

Few hosts are asked one by one, all at once. Many are asked as a tree: some of them are branches,
which ask their leaves by the same way (see supervisor/probe.py); whoever has not been heard of
then, behind a branch that is dead or mute too, is asked directly in a second round.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from math import isqrt
from pathlib import Path
from typing import Any

from supervisor import probe, virtual_call, wire
from supervisor.adapters import clock
from supervisor.adapters.probe_calls import Saying, by_program, on_virtual_host
from supervisor.core.devices import short_of_devices
from supervisor.core.events import HostProbed

PROBE_SECONDS = 10.0  # start of an interpreter from a cold shared file system included
AT_ONCE = 32
_TREE_FACTOR = 2  # a branch has its own answer and its leaves' to wait for

ArgvOn = Callable[[str, Sequence[str]], Sequence[str]]
Answered = Callable[[HostProbed], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOrder:
    """What the probe shall do on each host."""

    attempt: int
    run_id: str
    reap: bool = False
    stacks: bool = False
    folders: tuple[Path, ...] = ()
    command: tuple[str, ...] = ()
    scripts: tuple[Path, ...] = ()
    slurm: bool = False
    seconds: float = PROBE_SECONDS

    def argv(self, **more: object) -> tuple[str, ...]:
        """The program and its order, for one host or, with leaves, for a branch."""
        order = {
            "attempt": self.attempt,
            "run_id": self.run_id,
            "reap": self.reap,
            "stacks": self.stacks,
            "folders": [str(folder) for folder in self.folders],
            "command": self.command,
            "scripts": [str(script) for script in self.scripts],
            "slurm": self.slurm,
            "seconds": self.seconds,
            "cwd": str(Path.cwd()),
            **more,
        }
        return (sys.executable, "-S", "-I", probe.__file__, json.dumps(order))


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How hosts are reached: by the argv that runs a program there; virtual ones are called."""

    argv_on: ArgvOn
    run_dir: Path | None = None  # of virtual hosts
    devices: dict[str, int] = field(default_factory=dict)  # of hosts that answered, also before

    def call(
        self, host: str, argv: Sequence[str], environment: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Saying]:
        """Run a program there."""
        if self.run_dir is not None:
            return on_virtual_host(self.run_dir, host, argv, {**environment, wire.HOST: host})
        return by_program(self.argv_on(host, argv), environment)


async def probe_hosts(
    order: ProbeOrder, hosts: Sequence[str], way: Way, answered: Answered
) -> None:
    """Probe hosts; `answered` takes each answer, those that passed when all can be compared."""
    passed: list[HostProbed] = []

    async def take(answer: HostProbed) -> None:
        if answer.answer == "pass" and order.reap:
            passed.append(answer)
        else:
            await answered(answer)

    left = list(hosts)
    if len(hosts) > AT_ONCE and way.run_dir is None:
        left = await _ask_branches(order, hosts, way, take)
    await _ask_each(order, left, way, take)
    short = short_of_devices(way.devices)
    for answer in passed:
        await answered(_compared(answer, way.devices, short))


async def _ask_each(order: ProbeOrder, hosts: Sequence[str], way: Way, take: Answered) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(host: str) -> None:
        async with gate:
            await take(await probe_host(order, host, way))

    async with asyncio.TaskGroup() as group:
        for host in hosts:
            group.create_task(ask(host))


async def probe_host(order: ProbeOrder, host: str, way: Way) -> HostProbed:
    """One host's answer, or its silence, as an event."""
    found: list[HostProbed] = []

    async def take(asked: str, said: Mapping[str, Any]) -> bool:
        found.append(_answer(order, host, said, way))
        return True

    argv = order.argv(sent_at=_wall_now())
    why = await _hear(order, host, argv, way, order.seconds, take)
    return found[0] if found else _unreachable(order, host, why)


async def _ask_branches(
    order: ProbeOrder, hosts: Sequence[str], way: Way, take: Answered
) -> list[str]:
    """Ask through branches; answers who has not been heard of."""
    silent = dict.fromkeys(hosts)

    async def ask(branch: str, leaves: Sequence[str]) -> None:
        heard = 0

        async def hear(asked: str, said: Mapping[str, Any]) -> bool:
            nonlocal heard
            host = asked or branch
            if host in silent:
                del silent[host]
                heard += 1
                await take(_answer(order, host, said, way))
            return heard == 1 + len(leaves)

        argv = _branch_argv(order, leaves, way)
        await _hear(order, branch, argv, way, _TREE_FACTOR * order.seconds, hear)

    async with asyncio.TaskGroup() as group:
        for branch, *leaves in groups(hosts):
            group.create_task(ask(branch, leaves))
    return list(silent)


def groups(hosts: Sequence[str]) -> list[Sequence[str]]:
    """Hosts in about as many groups as each has members, and no more than can be asked at once."""
    count = min(AT_ONCE, isqrt(len(hosts)))
    return [hosts[start::count] for start in range(count)]


def _branch_argv(order: ProbeOrder, leaves: Sequence[str], way: Way) -> Sequence[str]:
    sent_at = _wall_now()
    leaf = list(way.argv_on(probe.PLACEHOLDER, order.argv(sent_at=sent_at)))
    return order.argv(sent_at=sent_at, leaves=list(leaves), leaf=leaf)


async def _hear(
    order: ProbeOrder,
    host: str,
    argv: Sequence[str],
    way: Way,
    seconds: float,
    take: Callable[[str, Mapping[str, Any]], Awaitable[bool]],
) -> str:
    """Hand on each answer until `take` has all it waits for; answers why there are no more."""
    environment = {key: value for key, value in os.environ.items() if key != wire.HOST}
    environment |= {wire.ROLE: "probe", wire.RUN_ID: order.run_id}
    try:
        async with asyncio.timeout(seconds), way.call(host, argv, environment) as saying:
            async for line in saying.lines():
                said = _read(line)
                if said is not None and await take(str(said.get("asked") or ""), said):
                    return ""
            return saying.complaint() or "the probe gave no answer"
    except TimeoutError:
        return f"no answer to the probe in {seconds:.0f} s"
    except (virtual_call.HostDown, virtual_call.HostLost):
        return "the virtual host is down"
    except (OSError, ValueError) as error:  # no such program; a line without an end
        return f"cannot ask it: {error}"


def _read(line: bytes) -> Mapping[str, Any] | None:
    try:
        said = json.loads(line)
    except ValueError:
        return None
    is_answer = isinstance(said, dict) and said.get("answer") in ("pass", "fail", "unknown")
    return said if is_answer else None


def _answer(order: ProbeOrder, host: str, said: Mapping[str, Any], way: Way) -> HostProbed:
    if isinstance(said.get("devices"), int):
        way.devices[host] = said["devices"]
    return HostProbed(
        at=clock.now(),
        attempt=order.attempt,
        host=host,
        answer=said["answer"],
        why=str(said.get("why") or ""),
        leftovers=int(said.get("leftovers") or 0),
        cause=str(said.get("cause") or ""),
        live=not order.reap,
        running=said["running"] if isinstance(said.get("running"), int) else None,
    )


def _compared(
    answer: HostProbed, devices: Mapping[str, int], short: Mapping[str, int]
) -> HostProbed:
    if answer.host not in short:
        return answer
    why = f"it has {devices[answer.host]} devices, most hosts have {short[answer.host]}"
    return replace(answer, answer="fail", why=why)


def _unreachable(order: ProbeOrder, host: str, why: str) -> HostProbed:
    return HostProbed(
        at=clock.now(),
        attempt=order.attempt,
        host=host,
        answer="unreachable",
        why=why,
        live=not order.reap,
    )


def _wall_now() -> float:
    return clock.now() - clock.wall_offset()
