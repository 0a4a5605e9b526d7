"""From options to a run: the hosts are found and divided, the engine gets a RunSpec.

Nothing is written before everything asked for is known to be possible.
"""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from supervisor.adapters import clock
from supervisor.adapters.allocation import Allocation, advice_on_spares, find_allocation
from supervisor.adapters.launchers import find_launcher
from supervisor.adapters.run_spec import RunSpec
from supervisor.adapters.signature_folders import own_folders
from supervisor.adapters.split import Split, split
from supervisor.core.settings import Settings
from supervisor.core.value import value
from supervisor.errors import ExitCode, UsageError

_SILENCE_SECONDS = 15.0  # a lost host is found within 30 s: this, and the probe that proves it


@value
class Options:
    """What the user asked for, as the parser spells it."""

    command: tuple[str, ...]
    nodes: int | None
    spare_nodes: int | str | None
    min_nodes: int | None
    ppn: int | None
    hostfile: str | None
    virtual_hosts: int | None
    launcher: str
    launcher_args: list[str]
    cpu_bind: str | None
    scheduler: str
    preflight: bool
    probe_script: list[str]
    idle_timeout: float
    startup_timeout: float
    grace: float
    signal_before: float
    requeue: bool
    max_relaunches: int
    walltime: float | None
    checkpoint_dir: str | None
    run_dir: str | None
    rank_logs: str | None
    console: str
    signatures: list[str]
    no_shim: bool
    dry_run: bool
    json: bool
    q: int
    v: int


def main(options: Options, environ: Mapping[str, str] = os.environ) -> int:
    """Run the command, or print the plan, and answer with the exit code."""
    _refuse_contradictions(options)
    allocation = find_allocation(
        hostfile=Path(options.hostfile) if options.hostfile else None,
        virtual_hosts=options.virtual_hosts,
        scheduler=options.scheduler,
        environ=environ,
    )
    parts = _divide(options, allocation)
    _refuse_missing_command(options.command, allocation, environ)
    spec = _spec(options, allocation, parts, environ)
    if options.v >= options.q:
        _introduce(allocation, parts, environ)
    if options.dry_run:
        from supervisor.cli import dry_run

        dry_run.show(spec, options.json)
        return int(ExitCode.SUCCEEDED)
    return _start(spec)


def _start(spec: RunSpec) -> int:
    from supervisor.adapters import keeping
    from supervisor.adapters.run_folder import open_run_folder

    folder = open_run_folder(spec.run_dir)
    if spec.verbosity >= 0:
        _say(f"run folder {folder.path}")
    is_new = not folder.journal.exists()
    # Its Python starts while ours imports the engine: the command starts 30 ms earlier.
    keeper = keeping.start_keeper(folder.attempt(1), spec.run_id) if is_new else None
    from supervisor import engine

    return engine.run(spec, keeper)


def _divide(options: Options, allocation: Allocation) -> Split:
    parts = split(
        hosts=allocation.hosts,
        nodes=options.nodes,
        spare_nodes=options.spare_nodes,
        ppn=options.ppn or allocation.ranks_per_host or 1,
        source=allocation.source,
    )
    if options.min_nodes and options.min_nodes > len(parts.active):
        raise UsageError(
            f"--min-nodes {options.min_nodes}: more than the {len(parts.active)} active hosts"
        )
    return parts


def _spec(
    options: Options, allocation: Allocation, parts: Split, environ: Mapping[str, str]
) -> RunSpec:
    run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(2).hex()}"
    return RunSpec(
        command=options.command,
        run_dir=Path(options.run_dir or Path("runs") / run_id).absolute(),
        run_id=run_id,
        active=parts.active,
        spares=parts.spares,
        virtual=allocation.virtual,
        this_machine=allocation.this_machine,
        launcher=find_launcher(
            options.launcher, allocation.virtual, allocation.this_machine, environ
        ),
        deadline=_deadline(options, allocation),
        settings=_settings(options, parts, allocation),
        checkpoint_dir=Path(options.checkpoint_dir).absolute() if options.checkpoint_dir else None,
        console=options.console,
        rank_logs=options.rank_logs,
        signature_folders=own_folders(options.signatures, environ),
        shim=not options.no_shim,
        launcher_args=_words(options.launcher_args),
        cpu_bind=options.cpu_bind,
        probe_scripts=tuple(_script(given) for given in options.probe_script),
        verbosity=options.v - options.q,
        job=allocation.job,
        lost=allocation.lost,
    )


def _words(given: list[str]) -> tuple[str, ...]:
    try:
        return tuple(word for each in given for word in shlex.split(each))
    except ValueError as error:
        raise UsageError(f"--launcher-args: {error}".lower()) from error


def _script(given: str) -> Path:
    path = Path(given).absolute()
    if not os.access(path, os.X_OK) or not path.is_file():
        raise UsageError(f"--probe-script: {given} is no program that can be started")
    return path


def _settings(options: Options, parts: Split, allocation: Allocation) -> Settings:
    return Settings(
        ranks_per_host=parts.ranks_per_host,
        checkpoints=options.checkpoint_dir is not None,
        min_hosts=options.min_nodes,
        max_relaunches=options.max_relaunches,
        idle_timeout=options.idle_timeout,
        startup_timeout=options.startup_timeout,
        silence_timeout=min(_SILENCE_SECONDS, options.idle_timeout / 2),
        grace=options.grace,
        signal_before=options.signal_before,
        requeue=options.requeue,
        scheduler=allocation.job.scheduler if allocation.job else "",
        preflight=options.preflight,
        jitter=tuple(0.5 + byte / 256 for byte in os.urandom(16)),
    )


def _deadline(options: Options, allocation: Allocation) -> float | None:
    own = clock.now() + options.walltime if options.walltime else None
    known = [moment for moment in (own, allocation.deadline) if moment is not None]
    return min(known, default=None)


def _refuse_contradictions(options: Options) -> None:
    if options.json and not options.dry_run:
        raise UsageError(
            "--json belongs to --dry-run; for a run there is `supervise status --json`"
        )


def _refuse_missing_command(
    command: tuple[str, ...], allocation: Allocation, environ: Mapping[str, str]
) -> None:
    """Known only where the ranks run here; another host's PATH is another matter."""
    here = allocation.virtual or allocation.this_machine
    if here and shutil.which(command[0], path=environ.get("PATH")) is None:
        hint = f"; did you mean `-- python {command[0]}`?" if command[0].endswith(".py") else ""
        raise UsageError(
            f"{command[0]!r} is no program: not on PATH, missing, or not executable{hint}"
        )


def _introduce(allocation: Allocation, parts: Split, environ: Mapping[str, str]) -> None:
    """What was found, before anything happens; a note is what the user might not expect."""
    counts = [
        _counted(len(parts.active), "active host"),
        f"{_counted(parts.ranks_per_host, 'rank')} each",
        _counted(len(parts.spares), "spare"),
    ]
    _say(f"{', '.join(counts)} ({allocation.source})")
    if parts.unused:
        unused = _counted(len(parts.unused), "host")
        _say(f"{unused} of it unused; --spare-nodes auto makes spares of the rest")
    advice = advice_on_spares(allocation, environ) if parts.spares else ()
    for note in (*allocation.notes, *advice):
        _say(note)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _say(line: str) -> None:
    with suppress(OSError):  # the terminal is gone; the run is not
        print(f"supervise: {line}", file=sys.stderr, flush=True)
