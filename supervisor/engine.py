"""The loop that joins the core to the world: events in, journal, actions out.

One queue, one TaskGroup. For each event: the core decides, the journal has the event and the
decision on disk, then the actions are performed; each action that has an answer is a task whose
answer comes back as an event.
"""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, assert_never

from supervisor.adapters import clock
from supervisor.adapters.journal import Journal, read_journal
from supervisor.adapters.narration import Narration
from supervisor.adapters.run_folder import RunFolder, locked, open_run_folder
from supervisor.adapters.run_spec import RunSpec
from supervisor.adapters.status_files import append_retired, replace_json
from supervisor.adapters.world import World
from supervisor.core import actions as act
from supervisor.core import events as ev
from supervisor.core import machine
from supervisor.errors import SupervisorError, UsageError
from supervisor.report import status_of, summary_of

__all__ = ["RunSpec", "run"]

_STATUS_EVERY = 1.0
_ALIVE = (machine.Phase.RUNNING, machine.Phase.DUMPING, machine.Phase.ENDING)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(spec: RunSpec) -> int:
    """Supervise a run to its end, or go on with the one its folder holds; answers the exit code."""
    folder = open_run_folder(spec.run_dir)
    with locked(folder):
        try:
            return asyncio.run(_Engine(spec, folder).run())
        except ExceptionGroup as group:
            raise _first_of(group) from group


def _first_of(group: ExceptionGroup) -> BaseException:
    """Errors of tasks come in groups; the user is told of one of ours, a bug keeps its trace."""
    ours, _ = group.split(SupervisorError)
    found: BaseException = ours if ours is not None else group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


class _Engine:
    """One run: its state, its queue, its tasks."""

    def __init__(self, spec: RunSpec, folder: RunFolder) -> None:
        self._spec, self._folder = spec, folder
        self._past = read_journal(folder.journal)
        self._state = machine.initial()
        self._queue: asyncio.Queue[ev.Event] = asyncio.Queue()
        self._narration = Narration(spec.verbosity)
        self._exit_code: int | None = None
        self._status_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """From the first event to the exit code."""
        loop = asyncio.get_running_loop()
        self._world = World(
            self._spec,
            self._folder,
            self._run_id(),
            lambda event: loop.call_soon_threadsafe(self._queue.put_nowait, event),
            self._start,
            self._narration.say,
        )
        self._journal = Journal(self._folder.journal)
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._request_stop, number)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._begin()
                await self._loop()
                self._world.let_go()
                for task in self._tasks:
                    task.cancel()
        finally:
            self._world.let_go()
            self._journal.close()
        assert self._exit_code is not None
        return self._exit_code

    def _run_id(self) -> str:
        first = self._past[0] if self._past else None
        return first.run_id if isinstance(first, ev.RunStarted) else self._spec.run_id

    def _begin(self) -> None:
        if self._past:
            self._return()
        else:
            self._apply(self._run_started())

    def _run_started(self) -> ev.RunStarted:
        return ev.RunStarted(
            at=clock.now(),
            run_id=self._spec.run_id,
            active=self._spec.active,
            spares=self._spec.spares,
            deadline=self._spec.deadline,
            settings=self._spec.settings,
        )

    def _return(self) -> None:
        """Take over from a supervisor that died: replay, look at the world, go on."""
        for event in self._past:
            self._state, _ = machine.step(self._state, event)
        if self._state.phase is machine.Phase.FINISHED:
            raise UsageError(
                f"the run in {self._folder.path} has ended; choose another folder with --run-dir"
            )
        self._narration.say(f"taking over the run in {self._folder.path}")
        self._apply(ev.SupervisorReturned(at=clock.now()))
        if self._state.phase in _ALIVE:
            self._world.follow(self._state.attempt, self._state.ledger.active)
        for action in machine.outstanding(self._state):
            self._perform(action)

    async def _loop(self) -> None:
        while self._exit_code is None:
            self._apply(await self._next_event())
            await self._refresh_status()

    async def _next_event(self) -> ev.Event:
        wake = machine.next_wake(self._state)
        try:
            async with asyncio.timeout(None if wake is None else max(0.0, wake - clock.now())):
                return await self._queue.get()
        except TimeoutError:
            return ev.Ticked(at=clock.now())

    def _apply(self, event: ev.Event) -> None:
        before = self._state
        self._state, actions = machine.step(before, event)
        if isinstance(event, ev.Ticked) and not actions and self._state == before:
            return
        self._journal.append(event, actions)
        self._narration.event(event, actions)
        if isinstance(event, ev.AttemptEnded) and event.attempt == self._state.attempt:
            self._world.attempt_is_over(event.attempt)
        for action in actions:
            self._perform(action)

    def _perform(self, action: act.Action) -> None:  # noqa: C901  # one row an action
        match action:
            case act.ChooseCheckpoint():
                self._start(self._answer(self._world.choose_checkpoint(action)))
            case act.Launch():
                self._start(self._answer(self._world.launch(action)))
            case act.EndAttempt():
                self._narration.say(f"ending attempt {action.attempt}: {action.why}")
                self._start(self._world.end_attempt(action))
            case act.ProbeHosts():
                self._start(self._world.probe(action, self._queue.put))
            case act.DumpStacks():
                hosts = self._state.ledger.active
                self._start(self._answer(self._world.dump_stacks(action, hosts)))
            case act.RetireHost():
                append_retired(self._folder.retired, action)
            case act.Announce():
                self._narration.say(action.text)
            case act.Sweep():
                self._start(self._answer(self._world.sweep(action)))
            case act.Finish():
                self._start(self._finish(action))
            case _:
                assert_never(action)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, work: Coroutine[Any, Any, ev.Event]) -> None:
        await self._queue.put(await work)

    async def _finish(self, action: act.Finish) -> None:
        events = read_journal(self._folder.journal)
        await replace_json(self._folder.summary, summary_of(events, action))
        await replace_json(self._folder.status, status_of(self._state, clock.now()))
        self._narration.conclude(action.message)
        self._exit_code = action.exit_code
        await self._queue.put(ev.Ticked(at=clock.now()))  # wakes the loop

    async def _refresh_status(self) -> None:
        now = clock.now()
        if now - self._status_at >= _STATUS_EVERY:
            self._status_at = now
            await replace_json(self._folder.status, status_of(self._state, now))

    def _request_stop(self, number: signal.Signals) -> None:
        self._queue.put_nowait(ev.StopRequested(at=clock.now(), signal=int(number)))
