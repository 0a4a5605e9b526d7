"""Performs the core's actions on the world of one run, and answers with events."""

import asyncio
import os
import socket
import subprocess
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from supervisor import wire
from supervisor.adapters import clock, keeping
from supervisor.adapters.allocation import SCHEDULERS
from supervisor.adapters.attempt import RunningAttempt
from supervisor.adapters.launch_request import request_of
from supervisor.adapters.launchers import (
    LaunchRequest,
    Plan,
    check_plan,
    plan,
    plan_end,
    plan_on_host,
)
from supervisor.adapters.run_folder import AttemptFolder, RunFolder
from supervisor.adapters.run_spec import RunSpec
from supervisor.adapters.spool import clear_spool
from supervisor.core import actions as act
from supervisor.core import events as ev
from supervisor.core.notice import JobState
from supervisor.errors import PlatformError

# What the first launch does not need is imported where it is used: the command does not wait.
if TYPE_CHECKING:
    from supervisor.adapters.following import Following
    from supervisor.adapters.probing import ProbeOrder


class World:
    """The hosts, folders and processes of one run."""

    def __init__(
        self,
        spec: RunSpec,
        folder: RunFolder,
        run_id: str,
        post: Callable[[ev.Event], object],
        start: Callable[[Coroutine[Any, Any, None]], None],
        warn: Callable[[str], None],
        keeper: "subprocess.Popen[bytes] | None",
    ) -> None:
        self._spec, self._folder, self._run_id = spec, folder, run_id
        self._post, self._start_task = post, start
        self._spelled = spec.spelled()
        self._warn = warn
        self._waiting = keeper  # the first launch's, started before there was one
        self._attempt: RunningAttempt | None = None
        self._following: Following | None = None
        self._devices: dict[str, int] = {}  # of each host that has been probed
        if spec.signature_folders:  # a mistake in them is told before anything starts
            self._followers()

    async def choose_checkpoint(self, action: act.ChooseCheckpoint) -> ev.Event:
        """Find what the attempt resumes from."""
        if self._spec.checkpoint_dir is None:
            return ev.CheckpointChosen(at=clock.now(), attempt=action.attempt, step=None, path="")
        from supervisor.adapters.checkpoints import choose_checkpoint, clear_unfinished

        if action.attempt > 1:  # all hosts have been reaped: nobody is writing there
            await asyncio.to_thread(clear_unfinished, self._spec.checkpoint_dir)
        chosen = await asyncio.to_thread(choose_checkpoint, self._spec.checkpoint_dir)
        return ev.CheckpointChosen(
            at=clock.now(),
            attempt=action.attempt,
            step=chosen.step,
            path=chosen.path,
            set_aside=chosen.set_aside,
        )

    async def launch(self, action: act.Launch) -> ev.Event:
        """Start the attempt under a keeper, or find the keeper that a supervisor before us
        started.
        """
        folder = self._folder.attempt(action.attempt)
        try:
            if not await asyncio.to_thread(self._was_launched, folder):
                await self._start(action, folder)
        except PlatformError as error:
            return ev.LaunchFailed(at=clock.now(), attempt=action.attempt, why=str(error))
        ending = keeping.read_ending(folder)
        if ending is not None and ending.error:
            return ev.LaunchFailed(at=clock.now(), attempt=action.attempt, why=ending.error)
        self.follow(action.attempt, action.hosts)
        return ev.AttemptLaunched(at=clock.now(), attempt=action.attempt)

    def follow(self, attempt: int, hosts: Sequence[str]) -> None:
        """Follow a launched attempt to its end."""
        folder = self._folder.attempt(attempt)
        kept = keeping.find_kept(folder)
        keeper = keeping.watch_keeper(kept) if kept else None
        follower = self._followers().follower(attempt, folder, hosts, keeper)
        self._attempt = RunningAttempt(
            kept, keeper, follower, plan_end(self._spec.launcher, self._run_id, attempt)
        )
        self._start_task(asyncio.to_thread(follower.run))

    def _followers(self) -> "Following":
        if self._following is None:
            from supervisor.adapters.following import Following

            self._following = Following(self._spec, self._post, self._warn)
        return self._following

    async def end_attempt(self, action: act.EndAttempt) -> None:
        """End it; its follower posts AttemptEnded."""
        if self._attempt is not None:
            await self._attempt.end(action.grace)

    def attempt_is_over(self, attempt: int) -> None:
        """Its end has been journaled: let go of it and of its spool."""
        self.let_go()
        clear_spool(self._folder.attempt(attempt).spool)

    def let_go(self) -> None:
        """The attempt stays with its keeper; a keeper that was not told to launch leaves."""
        if self._waiting is not None:
            keeping.dismiss(self._waiting)
        if self._attempt is not None:
            self._attempt.let_go()
            self._attempt = None

    async def probe(
        self, action: act.ProbeHosts, answered: Callable[[ev.Event], Awaitable[None]]
    ) -> None:
        """Probe hosts, each answer as it comes."""
        await self._start_virtual_hosts()
        await self._probe(self._order(action.attempt, reap=action.reap), action.hosts, answered)

    async def dump_stacks(self, action: act.DumpStacks, hosts: Sequence[str]) -> ev.Event:
        """Ask the ranks on these hosts for their stacks and give them a moment to write."""
        folder = self._folder.attempt(action.attempt)
        wait = self._spec.settings.stacks_wait
        order = self._order(action.attempt, stacks=True, seconds=wait)

        async def ignore(_: ev.Event) -> None:
            return

        await self._probe(order, hosts, ignore)
        await asyncio.sleep(min(1.0, wait / 5))
        ranks = sum(1 for path in folder.stacks.glob("*.txt") if path.stat().st_size)
        return ev.StacksDumped(at=clock.now(), attempt=action.attempt, ranks=ranks)

    async def sweep(self, action: act.Sweep) -> ev.Event:
        """Nothing of the run may be left when it is over."""
        leftovers = 0

        async def count(event: ev.Event) -> None:
            nonlocal leftovers
            leftovers += event.leftovers if isinstance(event, ev.HostProbed) else 0

        if self._spec.virtual:
            from supervisor.virtual_host import stop_virtual_hosts

            await asyncio.to_thread(stop_virtual_hosts, self._folder.path)
        elif not self._spec.this_machine:
            await self._probe(self._order(action.attempt, reap=True), action.hosts, count)
        from supervisor.leftovers import reap

        here, _ = await asyncio.to_thread(reap, self._run_id, action.attempt, self._own_host())
        return ev.SweepFinished(at=clock.now(), attempt=action.attempt, leftovers=leftovers + here)

    async def ask_scheduler(self, action: act.AskScheduler) -> ev.Event:
        """What becomes of the job we are in."""
        job, state = self._spec.job, JobState.UNKNOWN
        if job is not None:
            asked = SCHEDULERS[job.scheduler].state
            state = await asyncio.to_thread(asked, job.job_id, os.environ)
        return ev.SchedulerAnswered(at=clock.now(), attempt=action.attempt, state=state)

    async def requeue_job(self, action: act.RequeueJob) -> ev.Event:
        """Have it queued again."""
        job, refused = self._spec.job, "there is no job"
        if job is not None:
            asked = SCHEDULERS[job.scheduler].requeue
            refused = await asyncio.to_thread(asked, job.job_id, os.environ)
        return ev.JobRequeued(at=clock.now(), attempt=action.attempt, refused=refused)

    def plan(self, attempt: int, hosts: Sequence[str], resume_from: str) -> Plan:
        """What the launcher will be given."""
        return plan(self._spec.launcher, self._request(attempt, hosts, resume_from))

    async def _start(self, action: act.Launch, folder: AttemptFolder) -> None:
        await self._start_virtual_hosts()
        launch = self.plan(action.attempt, action.hosts, action.resume_from)
        check_plan(launch, action.retired)
        keeping.write_launch(folder, launch)
        keeper = self._waiting or keeping.start_keeper(folder, self._run_id)
        self._waiting = None
        keeping.tell_to_launch(keeper)
        await asyncio.to_thread(keeping.wait_until_kept, folder, keeper)

    async def _start_virtual_hosts(self) -> None:
        if not self._spec.virtual:
            return
        from supervisor.virtual_host import start_virtual_hosts

        hosts = (*self._spec.active, *self._spec.spares)
        environment = {wire.RUN_ID: self._run_id}
        await asyncio.to_thread(start_virtual_hosts, self._folder.path, hosts, environment)

    def _was_launched(self, folder: AttemptFolder) -> bool:
        """Whether a supervisor before us started this attempt; a keeper just started may need a
        moment.
        """
        if not folder.launch.exists():
            return False
        return keeping.has_kept(folder, wait_seconds=2.0)

    def _request(self, attempt: int, hosts: Sequence[str], resume_from: str) -> LaunchRequest:
        return request_of(
            self._spec,
            run_id=self._run_id,
            attempt=attempt,
            hosts=hosts,
            resume_from=resume_from,
            master_port=_master_port(self._run_id, attempt),
        )

    def _order(self, attempt: int, **what: object) -> "ProbeOrder":
        from supervisor.adapters.probing import ProbeOrder

        folders = (self._spec.checkpoint_dir,) if self._spec.checkpoint_dir else ()
        return ProbeOrder(
            attempt=attempt,
            run_id=self._run_id,
            folders=folders,
            command=self._spec.command,
            scripts=self._spec.probe_scripts,
            slurm=self._spec.launcher.flavour == "srun",
            **what,  # type: ignore[arg-type]
        )

    def _own_host(self) -> str | None:
        from supervisor.probe import own_host

        return own_host(by_slurm=self._spec.launcher.flavour == "srun")

    async def _probe(
        self,
        order: "ProbeOrder",
        hosts: Sequence[str],
        answered: Callable[[ev.Event], Awaitable[None]],
    ) -> None:
        from supervisor.adapters.probing import Way, probe_hosts

        request = self._request(order.attempt, hosts, "")

        def argv_on(host: str, argv: Sequence[str]) -> Sequence[str]:
            return plan_on_host(self._spec.launcher, self._spelled.get(host, host), argv, request)

        run_dir = self._folder.path if self._spec.virtual else None
        way = Way(argv_on=argv_on, run_dir=run_dir, devices=self._devices)
        await probe_hosts(order, hosts, way, answered)


def _master_port(run_id: str, attempt: int) -> int:
    """A port outside the ephemeral range, another one for each attempt, free on this machine at
    least.
    """
    start = zlib.crc32(f"{run_id} {attempt}".encode())
    for offset in range(64):
        port = 20000 + (start + offset * 7) % 12000
        with socket.socket() as probe_socket:
            try:
                probe_socket.bind(("", port))
            except OSError:
                continue
            return port
    raise PlatformError("no free port between 20000 and 32000 for MASTER_PORT")
