"""Ways to follow many rank logs, for the benchmark that compares them."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

STOP = "stop"
Seen = list[tuple[float, bytes]]  # when, and which lines


def until_stopped(folder: Path) -> Iterator[None]:
    """Says that we are ready, goes on until told to stop, and prints the CPU used meanwhile."""
    print("ready", flush=True)
    used, begin = time.process_time(), time.monotonic()
    while not (folder / STOP).exists():
        yield
    print((time.process_time() - used) / (time.monotonic() - begin), flush=True)


def matching() -> Callable[[list[object]], None]:
    """What our follower does with pieces: match them, read their steps."""
    from supervisor.adapters.matcher import Matcher
    from supervisor.adapters.printed_steps import PrintedSteps
    from supervisor.adapters.rank_reports import RankReports
    from supervisor.adapters.sightings import Sightings
    from supervisor.adapters.signature_files import load_signatures, shipped_folder

    matcher = Matcher(load_signatures([shipped_folder()]))
    matcher.match(b"loaded\n")
    sightings = Sightings(1, lambda: matcher, lambda name: None)
    steps = PrintedSteps(RankReports(1, hosts(), 3.0, 0.0), 5.0)

    def take(pieces: list[object]) -> None:
        steps.look(pieces, time.monotonic())
        sightings.look(pieces, time.monotonic())

    return take


def hosts() -> list[str]:
    """The host of each rank, eight on each."""
    return [f"h{rank // 8}" for rank in range(100_000)]


def ours(folder: Path, *, watched: bool = True) -> Seen:
    """As the follower of an attempt does it."""
    from supervisor.adapters.extra_logs import ExtraLogs

    take, seen = matching(), []
    logs = ExtraLogs(str(folder / "*.log"), hosts(), None, lambda path: watched)
    never, _ = os.pipe()
    logs.read()
    for _ in until_stopped(folder):
        pieces = logs.read()
        if pieces:
            take(pieces)
            seen.append((time.monotonic(), b"".join(piece.lines for piece in pieces)))
        else:
            logs.wait(never, 0.1)
    for pieces in logs.rest():
        seen.append((time.monotonic(), b"".join(piece.lines for piece in pieces)))
    return seen


def polled(folder: Path) -> Seen:
    """The same without watches."""
    return ours(folder, watched=False)


def watchdog(folder: Path) -> Seen:
    """watchdog's observer names the files; they are read and matched as we do it."""
    from supervisor.adapters.log_owners import owners
    from supervisor.adapters.log_tails import LogTails

    due: dict[str, None] = {}
    take, seen = matching(), []
    tails = LogTails(owners(hosts(), str(folder)), lambda path: path.endswith(".log"))
    observer = observed(folder, due)
    for _ in until_stopped(folder):
        time.sleep(0.02)
        paths = [due.popitem()[0] for _ in range(len(due))]
        pieces = [piece for path in paths if (piece := tails.read(path, 0.0))]
        if pieces:
            take(pieces)
            seen.append((time.monotonic(), b"".join(piece.lines for piece in pieces)))
    observer.stop()
    return seen


def observed(folder: Path, due: dict[str, None]) -> "BaseObserver":
    """An observer that notes the files which changed."""
    from watchdog.events import FileModifiedEvent, FileSystemEventHandler
    from watchdog.observers import Observer

    class Note(FileSystemEventHandler):
        def on_modified(self, event: object) -> None:
            due[event.src_path] = None

    observer = Observer()
    observer.schedule(Note(), str(folder), event_filter=[FileModifiedEvent])
    observer.start()
    return observer


def poll(folder: Path) -> Seen:
    """Every file in turn, then a pause."""
    descriptors = [os.open(path, os.O_RDONLY) for path in folder.glob("*.log")]
    seen: Seen = []
    for _ in until_stopped(folder):
        time.sleep(0.25)
        for descriptor in descriptors:
            if data := os.read(descriptor, 65536):
                seen.append((time.monotonic(), data))
    return seen


def with_aiofiles(folder: Path) -> Seen:
    """A task a file."""
    import aiofiles

    seen: Seen = []
    paths = list(folder.glob("*.log"))

    async def follow(path: Path) -> None:
        async with aiofiles.open(path, "rb") as file:
            while True:
                if data := await file.read():
                    seen.append((time.monotonic(), data))
                await asyncio.sleep(1.0)

    async def follow_all() -> None:
        tasks = [asyncio.create_task(follow(path)) for path in paths]
        await asyncio.sleep(2.0)
        for _ in until_stopped(folder):
            await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()

    asyncio.run(follow_all())
    return seen


READERS: dict[str, Callable[[Path], Seen]] = {
    "ours": ours,
    "polled": polled,
    "watchdog": watchdog,
    "poll": poll,
    "aiofiles": with_aiofiles,
}
