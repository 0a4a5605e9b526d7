"""The shim: stands between the launcher and the command on each rank.

    python -S -I shim.py COMMAND ARGS...

Translates the launcher's variables to torchrun's, gives the rank its slot, and runs the command:
its output goes out in frames, with reports of start, heartbeats and end (see wire.py); signals go
in (see rank_command.py). When the command ends, so does every process it left behind; the shim then
ends as the command did. It dies with its parent and takes the command along, and the command dies
with it. Inherited descriptors stay open: launchers talk to MPI through them.

$SUPERVISE_LAUNCHER names the launcher's flavour. Exit codes of its own: 2 for no command, 3 for a
missing variable, 126 and 127, as a shell's, for a command that cannot be started.

Standard library only, and little of it: every rank pays for each import at every start. What runs
longer than a start is in modules, which Python keeps compiled; this file it compiles each time.
"""

import os
import sys
from collections.abc import Mapping

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from supervisor import linux, wire
from supervisor.rank_command import run_rank
from supervisor.rank_output import RankOutput
from supervisor.rank_slot import RankSlot, slot_name

_NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_VARIABLES = {  # flavour -> where its ranks find these
    "local": _NAMES,
    "mpich": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "intelmpi": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "openmpi": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "pals": ("PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"),
    "srun": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
}
_SIGNALS_ALL = ("srun",)  # whose signals reach every process of a rank, in any session
_OURS = (wire.LAUNCHER, wire.BEAT_SECONDS)  # nothing to the command
_NO_COMMAND, _NO_RANK = 2, 3
_BEAT_SECONDS = 3.0


def main(argv: list[str]) -> int:
    """Run the command; returns only when the shim ends by an exit code."""
    if not argv:
        return _refuse("no command: shim.py COMMAND ARGS...", _NO_COMMAND)
    try:
        place = _place(os.environ)
    except ValueError as error:
        return _refuse(str(error), _NO_RANK)
    host = _host(os.environ)
    slot = RankSlot(slot_name(place["RANK"]))
    try:
        exit_code, signal = run_rank(
            argv,
            _environment(place, host, slot.path),
            RankOutput(place["RANK"], host),
            slot,
            _beat_seconds(),
            place,
            forwards=os.environ.get(wire.LAUNCHER) not in _SIGNALS_ALL,
        )
    finally:
        slot.remove()
    if signal is not None:
        linux.die_by(signal)
    return exit_code if exit_code is not None else 128 + (signal or 0)


def _host(environ: Mapping[str, str]) -> str:
    """Where we are; several of Slurm's hosts may be one machine."""
    slurms = environ.get("SLURMD_NODENAME") if environ.get(wire.LAUNCHER) == "srun" else None
    return environ.get(wire.HOST) or wire.canonical_host(slurms or os.uname().nodename)


def _place(environ: Mapping[str, str]) -> dict[str, int]:
    """This rank's place in the world. Raises ValueError when the launcher does not tell it."""
    flavour = environ.get(wire.LAUNCHER)
    if flavour not in _VARIABLES:
        known = ", ".join(_VARIABLES)
        raise ValueError(f"${wire.LAUNCHER} is {flavour!r}, not one of {known}")
    found = {}
    for name, source in zip(_NAMES, _VARIABLES[flavour], strict=True):
        value = environ.get(source, "").partition("(")[0]  # Slurm says 2(x4): 2 on each of 4 hosts
        if not (value.isascii() and value.isdigit() and len(value) <= 7):
            what = f"set to {value!r}" if value else "missing"
            raise ValueError(f"${source} is {what}: was this started by a {flavour} launcher?")
        found[name] = int(value)
    return found


def _environment(place: dict[str, int], host: str, slot: str) -> dict[str, str]:
    names = {name: str(number) for name, number in place.items()}
    environment = {**os.environ, **names, wire.HOST: host, wire.SLOT: slot}
    environment[wire.WORLD_SIZE] = names["WORLD_SIZE"]
    return {name: value for name, value in environment.items() if name not in _OURS}


def _beat_seconds() -> float:
    try:
        return max(0.1, float(os.environ.get(wire.BEAT_SECONDS, "")))
    except ValueError:
        return _BEAT_SECONDS


def _refuse(why: str, exit_code: int) -> int:
    os.write(2, os.fsencode(f"supervise: {why}\n"))
    return exit_code


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
