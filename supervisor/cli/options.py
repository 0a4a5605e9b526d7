"""The options of a run: this table is all there is, and none is ever abbreviated.

Nothing heavy is imported here: `--help` runs on login hosts whose Python lives on a parallel file
system. The defaults of the policy's numbers are those of core.settings; a test compares them.
"""

import argparse
from typing import Any

import supervisor
from supervisor.cli.values import duration, limit, whole, whole_or_auto

Option = tuple[str, dict[str, Any]]  # the flag, and argparse's keywords for it


def _option(flag: str, explained: str, **keywords: Any) -> Option:
    return flag, {"help": explained, **keywords}


GROUPS: dict[str, tuple[Option, ...]] = {
    "where": (
        _option(
            "--nodes",
            "active hosts (default: all but the spares); the rest stays unused, unless "
            "--spare-nodes asks for it",
            type=whole(1),
            metavar="N",
        ),
        _option(
            "--spare-nodes",
            "hosts kept as spares (default: 0); auto: with --nodes all the rest, else 2 %% "
            "of the hosts, at least 1 of 3 or more",
            type=whole_or_auto,
            metavar="N|auto",
        ),
        _option(
            "--min-nodes",
            "when no spare is left, shrink down to N hosts (default: never shrink)",
            type=whole(1),
            metavar="N",
        ),
        _option(
            "--ppn",
            "ranks per host (default: what scheduler or hostfile gives to all hosts alike, else 1)",
            type=whole(1),
            metavar="N",
        ),
        _option(
            "--hostfile",
            "hosts to use, one a line; `slots=N` and `:N` are understood",
            metavar="FILE",
        ),
        _option("--virtual-hosts", "simulate N hosts on this machine", type=whole(1), metavar="N"),
        _option(
            "--launcher",
            "auto, local, mpich, intelmpi, openmpi, pals, srun, or a path (default: auto, which is "
            "srun in a Slurm job, else the mpiexec on PATH or beside us)",
            default="auto",
            metavar="NAME",
        ),
        _option(
            "--launcher-args",
            "further words for the launcher, quoted as for a shell; may be repeated",
            action="append",
            default=[],
            metavar="WORDS",
        ),
        _option(
            "--cpu-bind",
            "how ranks are bound, in the launcher's own spelling (default: Open MPI none; PALS on "
            "Aurora and Polaris a share of the cores each, near its GPU; others as by themselves)",
            metavar="SPEC",
        ),
        _option(
            "--scheduler",
            "whose allocation we are in (default: auto)",
            default="auto",
            choices=("auto", "none", "pbs", "slurm"),
        ),
    ),
    "policy": (
        _option("--preflight", "probe all hosts before the first attempt too", action="store_true"),
        _option(
            "--probe-script",
            "a program of the site's that each probe runs on its host: exit 0 is fit, 75 unknown, "
            "all else unfit, and its last line says why; may be repeated",
            action="append",
            default=[],
            metavar="PATH",
        ),
        _option(
            "--idle-timeout",
            "no output and no step for this long is a hang (default: 30m)",
            type=limit,
            default=1800.0,
            metavar="TIME",
        ),
        _option(
            "--startup-timeout",
            "from launch to the first step at most (default: 30m)",
            type=limit,
            default=1800.0,
            metavar="TIME",
        ),
        _option(
            "--grace",
            "between SIGTERM and SIGKILL (default: 30s)",
            type=duration,
            default=30.0,
            metavar="TIME",
        ),
        _option(
            "--signal-before",
            "before the deadline the ranks get SIGTERM, so that they can save (default: 5m, of a "
            "short allocation a tenth)",
            type=duration,
            default=300.0,
            metavar="TIME",
        ),
        _option(
            "--requeue",
            "have the scheduler queue the job again after walltime, preemption or when spares run "
            "out; the same run folder then goes on",
            action="store_true",
        ),
        _option(
            "--max-relaunches",
            "relaunches in a row without progress that reached a complete checkpoint (default: 5)",
            type=whole(0),
            default=5,
            metavar="N",
        ),
        _option(
            "--walltime",
            "end by then, or by the scheduler's deadline if that is sooner",
            type=limit,
            metavar="TIME",
        ),
    ),
    "files and output": (
        _option(
            "--checkpoint-dir",
            "where the command keeps checkpoints; attempts resume from the newest complete one",
            metavar="DIR",
        ),
        _option(
            "--run-dir",
            "the run folder (default: ./runs/DATE-TIME-ID); one with a journal is continued",
            metavar="DIR",
        ),
        _option(
            "--rank-logs",
            "files in which the command logs by itself, to be read too",
            metavar="GLOB",
        ),
        _option(
            "--console",
            "whose lines are shown (default: all, thinned out above 16 ranks)",
            default="auto",
            choices=("all", "first", "none"),
        ),
        _option(
            "--signatures",
            "further signature files, read after those of ~/.config/supervise/signatures and "
            "$SUPERVISE_SIGNATURES; may be repeated; of two entries with one id the later counts",
            action="append",
            default=[],
            metavar="DIR",
        ),
        _option(
            "--no-shim",
            "start the command bare: no rank variables, no report of each rank",
            action="store_true",
        ),
        _option(
            "--dry-run",
            "print the plan of the first attempt and write nothing",
            action="store_true",
        ),
        _option("--json", "with --dry-run: the plan as JSON", action="store_true"),
        _option("-q", "say less", action="count", default=0),
        _option("-v", "say more; may be repeated", action="count", default=0),
    ),
}

FLAGS = {flag: keywords for group in GROUPS.values() for flag, keywords in group}
VALUED = {flag for flag, given in FLAGS.items() if given.get("action", "append") == "append"}
BARE = {*FLAGS, "--help", "-h", "--version"} - VALUED

SUBCOMMANDS = {
    "status": "where a run stands, from its folder",
    "replay": "why each decision of a run fell, from its journal",
    "explain": "why a job died, from any log",
    "signatures": "list, show, test or try failure signatures",
}

_EPILOG = """\
subcommands (each with its own --help):
{subcommands}

durations: 90, 90s, 30m, 2h, 1:30:00

exit codes: 0 succeeded; the command's own when its failure is the user's; 2 usage; 3 platform;
70 a bug of ours; 75 gave up where another allocation may help; 93 no progress; 124 hang;
130 interrupted; 143 terminated, or walltime
"""


def build() -> argparse.ArgumentParser:
    """The parser of a run's options."""
    width = max(map(len, SUBCOMMANDS))
    lines = "\n".join(f"  {name:{width}}  {text}" for name, text in SUBCOMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="supervise",
        usage="supervise [options] -- COMMAND ...\n"
        f"       supervise {{{','.join(SUBCOMMANDS)}}} ...",
        description="Run a distributed training and keep it running: notice\n"
        "failures, blame with evidence, retire bad hosts, relaunch\nfrom checkpoints.",
        epilog=_EPILOG.format(subcommands=lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"supervise {supervisor.__version__}"
    )
    for title, options in GROUPS.items():
        group = parser.add_argument_group(title)
        for flag, keywords in options:
            group.add_argument(flag, **keywords)
    return parser
