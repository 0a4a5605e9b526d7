"""Flavour `srun`: a step of the Slurm job we are in.

Facts this stands on (22.05.8): the hostfile with one line a rank and the distribution `arbitrary`
keep our order of hosts, so that rank 0 is on the first; without -K a dead rank leaves the others
waiting, with --wait a rank that is done early ends them; after --no-kill a lost host ends in 0, so
it is never given, and unset where the environment has it; SIGTERM to srun is SIGKILL to the ranks,
so a step is asked to end by scancel; only a step with --overlap starts where another holds the
processors. A step whose slurmstepd was killed holds them for good: without it the next attempt
would wait, silently and for ever.
"""

import os
from collections.abc import Sequence

from supervisor.adapters.launchers.values import (
    EndPlan,
    Launcher,
    LaunchRequest,
    Plan,
    hostfile_path,
    plan_of,
    shimmed,
)
from supervisor.errors import UsageError

FLAVOUR = "srun"
FIRST_LINE = "slurm"  # Debian says slurm-wlm
PROGRAMS = ("srun",)


def plan(launcher: Launcher, request: LaunchRequest) -> Plan:
    """One step on exactly these hosts."""
    if request.virtual:
        raise UsageError("--virtual-hosts works with the launchers local, mpich and intelmpi only")
    own = [launcher.program, f"--job-name={step_name(request.run_id, request.attempt)}"]
    own += [f"--nodes={len(request.hosts)}", f"--ntasks={request.ranks}"]
    own += ["--distribution=arbitrary", "--kill-on-bad-exit=1", "--wait=0", "--no-kill=off"]
    own += ["--overlap", "--export=ALL", "--input=none"]
    own += [f"--cpu-bind={request.cpu_bind}"] if request.cpu_bind else []
    return plan_of(
        request,
        FLAVOUR,
        [*own, *request.launcher_args],
        shimmed(request),
        line="\n".join(["{host}"] * request.ranks_per_host),
        SLURM_HOSTFILE=str(hostfile_path(request)),
    )


def plan_on_host(
    launcher: Launcher, host: str, argv: Sequence[str], request: LaunchRequest
) -> tuple[str, ...]:
    """Run a program once on one host."""
    own = ["--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={host}", "--mem=0"]
    return (launcher.program, *own, "--export=ALL", "--input=none", "--mpi=none", *argv)


def plan_end(launcher: Launcher, run_id: str, attempt: int) -> EndPlan:
    """SIGTERM for every rank of the attempt's step, then its end; both by scancel."""
    beside = os.path.dirname(launcher.program)
    squeue, scancel = os.path.join(beside, "squeue"), os.path.join(beside, "scancel")
    return EndPlan(
        find=(squeue, "--steps", "--me", "--noheader", "--format=%i %j"),
        name=step_name(run_id, attempt),
        ask=(scancel, "--signal=TERM"),
        force=(scancel,),
    )


def step_name(run_id: str, attempt: int) -> str:
    """What the step of an attempt is called, so that it can be found."""
    return f"supervise-{run_id}-{attempt}"
