"""The loop that joins the core to the world: events in, journal, actions out.

One queue, one TaskGroup. For each event: the core decides, the journal has the event and the
decision on disk, then the actions are performed; each action that has an answer is a task whose
answer comes back as an event.
"""

import asyncio
import signal
import subprocess
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, assert_never

from supervisor.adapters import clock, going_on
from supervisor.adapters.journal import Journal, read_journal
from supervisor.adapters.narration import Narration
from supervisor.adapters.run_folder import RunFolder, locked, open_run_folder
from supervisor.adapters.run_spec import RunSpec
from supervisor.adapters.status_files import append_retired, replace_json
from supervisor.adapters.wait_signs import WaitSigns
from supervisor.adapters.world import World
from supervisor.core import actions as act
from supervisor.core import events as ev
from supervisor.core import machine
from supervisor.core.waits import waited_for
from supervisor.errors import PlatformError, SupervisorError

__all__ = ["RunSpec", "run"]

_STATUS_EVERY = 1.0
_ALIVE = (machine.Phase.RUNNING, machine.Phase.DUMPING, machine.Phase.ENDING)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run(spec: RunSpec, keeper: "subprocess.Popen[bytes] | None" = None) -> int:
    """Supervise a run to its end, or go on with the one its folder holds; answers the exit code.

    `keeper` waits to be told of the first launch.
    """
    folder = open_run_folder(spec.run_dir)
    with locked(folder):
        try:
            return asyncio.run(_Engine(spec, folder, keeper).run())
        except ExceptionGroup as group:
            raise _told(_first_of(group), folder) from group
        except OSError as error:
            raise _told(error, folder) from error


def _told(error: BaseException, folder: RunFolder) -> BaseException:
    """Trouble with files is the place's; the attempt, if one runs, is kept by its keeper."""
    if not isinstance(error, OSError):
        return error
    return PlatformError(
        f"cannot go on in {folder.path}: {error}; what runs there goes on under its keeper: "
        "put it right, then give the same command again"
    )


def _first_of(group: ExceptionGroup) -> BaseException:
    """Errors of tasks come in groups; the user is told of one of ours, a bug keeps its trace."""
    ours, _ = group.split(SupervisorError)
    found: BaseException = ours if ours is not None else group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


class _Engine:
    """One run: its state, its queue, its tasks."""

    def __init__(
        self, spec: RunSpec, folder: RunFolder, keeper: "subprocess.Popen[bytes] | None"
    ) -> None:
        self._folder, self._keeper = folder, keeper
        self._past = read_journal(folder.journal)
        self._state = machine.initial()
        for event in self._past:
            self._state, _ = machine.step(self._state, event)
        self._spec = going_on.continued(spec, self._past[0], self._state) if self._past else spec
        self._queue: asyncio.Queue[ev.Event] = asyncio.Queue()
        self._narration = Narration(spec.verbosity)
        self._signs = WaitSigns(self._narration.say)
        self._exit_code: int | None = None
        self._status_at = 0.0
        self._status_lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """From the first event to the exit code."""
        loop = asyncio.get_running_loop()
        self._world = World(
            self._spec,
            self._folder,
            self._spec.run_id,
            lambda event: loop.call_soon_threadsafe(self._queue.put_nowait, event),
            self._start,
            self._narration.say,
            self._keeper,
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
            command=self._spec.command,
            allocation=self._spec.allocation,
        )

    def _return(self) -> None:
        """Take over from a supervisor that died, or go on where another allocation ended."""
        event = going_on.next_event(self._spec, self._state, self._folder)
        if isinstance(event, ev.AllocationGranted):
            self._narration.say(f"going on in another allocation with {self._folder.path}")
            self._apply(event)
            return
        self._narration.say(f"taking over the run in {self._folder.path}")
        self._apply(event)
        if self._state.phase in _ALIVE:
            self._world.follow(self._state.attempt, self._state.ledger.active)
        for action in machine.outstanding(self._state):
            self._perform(action)

    async def _loop(self) -> None:
        while self._exit_code is None:
            event = await self._next_event()
            if event is not None:
                self._apply(event)
            state = self._state
            self._signs.look((state.phase, state.attempt), waited_for(state), clock.now())
            self._refresh_status()

    async def _next_event(self) -> ev.Event | None:
        """None when it is only time for a sign of life."""
        wake, sign = machine.next_wake(self._state), self._signs.due_at
        due = min((at for at in (wake, sign) if at is not None), default=None)
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - clock.now())):
                return await self._queue.get()
        except TimeoutError:
            return ev.Ticked(at=clock.now()) if due == wake else None

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
                self._narration.say(action.text, action.grounds)
            case act.Sweep():
                self._start(self._answer(self._world.sweep(action)))
            case act.AskScheduler():
                self._start(self._answer(self._world.ask_scheduler(action)))
            case act.RequeueJob():
                self._start(self._answer(self._world.requeue_job(action)))
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
        from supervisor.report import summary_of

        events = read_journal(self._folder.journal)
        await replace_json(self._folder.summary, summary_of(events, action))
        await self._write_status()
        self._narration.detail(action.grounds)
        self._narration.conclude(action.message)
        self._exit_code = action.exit_code
        await self._queue.put(ev.Ticked(at=clock.now()))  # wakes the loop

    def _refresh_status(self) -> None:
        """A file system that stalls must not stall decisions: one write at a time, beside them."""
        if self._state.phase is machine.Phase.LAUNCHING:  # the command does not wait for a report
            return
        now = clock.now()
        if now - self._status_at >= _STATUS_EVERY and not self._status_lock.locked():
            self._status_at = now
            self._start(self._try_to_write_status())

    async def _try_to_write_status(self) -> None:
        with suppress(OSError):  # others read it; the run does not need it
            await self._write_status()

    async def _write_status(self) -> None:
        """One at a time: the last event's is the one that stays."""
        from supervisor.report import status_of

        async with self._status_lock:
            await replace_json(self._folder.status, status_of(self._state, clock.now()))

    def _request_stop(self, number: signal.Signals) -> None:
        self._queue.put_nowait(ev.StopRequested(at=clock.now(), signal=int(number)))
