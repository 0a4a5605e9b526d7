"""Which launcher to use: told by its name, found on PATH, known by asking it.

Names lie (`mpiexec` is Open MPI on one host and Hydra on the next), so each candidate is asked for
its version.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from supervisor.adapters.launchers import intelmpi, local, mpich, openmpi, pals, srun
from supervisor.adapters.launchers.values import Launcher
from supervisor.errors import PlatformError, UsageError

_ANSWER_SECONDS = 20.0  # a cold shared file system may hold up the first start
_AUTO = "auto"
_MARKS = {  # what the first lines of --version hold -> who that is; asked in this order
    mpich.FIRST_LINE: mpich.FLAVOUR,
    intelmpi.FIRST_LINE: intelmpi.FLAVOUR,
    **dict.fromkeys(openmpi.MARKS, openmpi.FLAVOUR),
    srun.FIRST_LINE: srun.FLAVOUR,
    **dict.fromkeys(pals.MARKS, pals.FLAVOUR),
}
_PROGRAMS = {
    mpich.FLAVOUR: mpich.PROGRAMS,
    intelmpi.FLAVOUR: intelmpi.PROGRAMS,
    openmpi.FLAVOUR: openmpi.PROGRAMS,
    pals.FLAVOUR: pals.PROGRAMS,
    srun.FLAVOUR: srun.PROGRAMS,
}
_VIRTUAL = (mpich.FLAVOUR, intelmpi.FLAVOUR)
_MPIEXECS = ("mpiexec", "mpiexec.hydra", "mpiexec.mpich", "mpiexec.openmpi")  # what `auto` takes
_FLAVOURS = (*_PROGRAMS, local.FLAVOUR)
_WAYS = "load an MPI module, `pip install mpich`, or name one by --launcher PATH"


def find_launcher(
    wanted: str, virtual: bool, this_machine_only: bool, environ: Mapping[str, str]
) -> Launcher:
    """The launcher by flavour, path, or `auto`: srun in a Slurm job, else the first mpiexec, else
    local.

    `near`: all hosts are this machine or virtual ones, which is as far as `local` reaches.
    """
    near = virtual or this_machine_only
    if wanted == local.FLAVOUR:
        return _local(near)
    if "/" in wanted:
        return _driven(_asked(wanted))
    if wanted == _AUTO:
        return _automatic(virtual, near, environ)
    if wanted not in _PROGRAMS:
        raise UsageError(
            f"--launcher {wanted}: not a launcher; give auto, {', '.join(_FLAVOURS)}, "
            "or a path with a slash"
        )
    return _named(wanted, environ)


def _named(wanted: str, environ: Mapping[str, str]) -> Launcher:
    others: list[Launcher] = []
    for launcher in map(_asked, _candidates(_PROGRAMS[wanted], environ)):
        if launcher.flavour == wanted:
            return launcher
        others.append(launcher)
    raise _nothing_found(wanted, others)


def _automatic(virtual: bool, near: bool, environ: Mapping[str, str]) -> Launcher:
    """A step of Slurm's is accounted, bound and cleaned up by Slurm; elsewhere an MPI program must
    be started by the MPI it was built with, which is the one on PATH.
    """
    if "SLURM_JOB_ID" in environ and not near:
        for program in _candidates(srun.PROGRAMS, environ):
            return _driven(_asked(program))
    others: list[Launcher] = []
    for launcher in map(_asked, _candidates(_MPIEXECS, environ)):
        if launcher.flavour in _PROGRAMS and not (virtual and launcher.flavour not in _VIRTUAL):
            return launcher
        others.append(launcher)
    if near:
        return _local(near)
    raise _nothing_found(_AUTO, others)


def _nothing_found(wanted: str, others: Sequence[Launcher]) -> PlatformError:
    what = "mpiexec" if wanted == _AUTO else f"launcher of flavour {wanted}"
    found = "; found " + ", ".join(f"{each.program} ({each.flavour})" for each in others)
    return PlatformError(
        f"no {what} on PATH or beside {sys.executable}{found if others else ''}; {_WAYS}"
    )


def _local(near: bool) -> Launcher:
    if not near:
        raise PlatformError(
            "--launcher local starts ranks on this machine and on virtual hosts only, "
            f"and there are other hosts; {_WAYS}"
        )
    version = f"python {sys.version.split()[0]}"
    return Launcher(flavour=local.FLAVOUR, program=local.PROGRAM, version=version)


def _driven(launcher: Launcher) -> Launcher:
    if launcher.flavour in _PROGRAMS:
        return launcher
    raise PlatformError(
        f"{launcher.program} is {launcher.flavour}; known are {', '.join(_FLAVOURS)}"
    )


def _candidates(names: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Programs on PATH in its order, then beside this interpreter; each file once."""
    folders = [*environ.get("PATH", os.defpath).split(os.pathsep), os.path.dirname(sys.executable)]
    seen: set[str] = set()
    for folder in folders:
        for name in names:
            path = shutil.which(name, path=folder) if folder else None
            if path and os.path.realpath(path) not in seen:
                seen.add(os.path.realpath(path))
                yield os.path.abspath(path)


def _asked(program: str) -> Launcher:
    """The launcher behind a path, by what it answers to --version."""
    text = _version_text(program)
    head = text[:400]
    flavour = next((who for mark, who in _MARKS.items() if mark in head), "an unknown launcher")
    return Launcher(flavour=flavour, program=os.path.abspath(program), version=_version(text))


def _version_text(program: str) -> str:
    try:
        answer = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except OSError as error:
        raise PlatformError(f"cannot start the launcher {program}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise PlatformError(
            f"{program} --version gave no answer within {_ANSWER_SECONDS:.0f} s"
        ) from error
    return (answer.stdout + answer.stderr).decode(errors="replace")


def _version(text: str) -> str:
    """The first word that begins with a digit."""
    return next((word for word in text.split() if word[0].isdigit()), "unknown")
