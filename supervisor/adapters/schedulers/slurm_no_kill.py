"""Whether a Slurm job outlives the loss of a host, and what to say to one that does not.

Without --no-kill (-k) Slurm ends the whole job with its first lost node, and no spare can help.
Slurm keeps that to itself: neither scontrol nor squeue prints it (22.05). What can be had
are the places where it is asked for: the #SBATCH lines of the script, the variables that sbatch and
salloc read, and the command line, which `scontrol show job` tells in newer versions only. So there
are three answers, and nothing is claimed where the command line is unknown.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from supervisor.adapters.schedulers import ask

_VARIABLES = ("SBATCH_NO_KILL", "SALLOC_NO_KILL")  # empty, or "off"
_OPTION = re.compile(r"--no-k(?:i(?:ll?)?)?(?:=(?P<value>.*))?|-k")
_MAX_DIRECTIVES = 500


def advice(job_id: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """For a job with spares: one line, unless it is known to go on."""
    match outlives_lost_host(job_id, environ):
        case True:
            return ()
        case False:
            return (
                "Slurm ends this whole job when it loses one node, and spares are of no use then: "
                "submit it with --no-kill",
            )
        case _:
            return (
                "if this job was not submitted with --no-kill, Slurm ends it when it loses one "
                "node, and spares are of no use then",
            )


def outlives_lost_host(job_id: str, environ: Mapping[str, str]) -> bool | None:
    """Yes, no, or None where nobody can say. As for sbatch itself, the command line wins over the
    variables, and those over the script.
    """
    job = ask(("scontrol", "show", "job", job_id), environ) or ""
    line = re.search(r"^\s*SubmitLine=(.+)$", job, re.MULTILINE)
    command_line = None if line is None else _options(line[1], _field(job, "Command"))
    script = ask(("scontrol", "write", "batch_script", job_id, "-"), environ) or ""
    variables = ["=".join(("--no-kill", environ[v])) for v in _VARIABLES if v in environ]
    for words in (command_line or (), variables, _directives(script)):
        said = [_OPTION.fullmatch(word) for word in words]
        last = next((found for found in reversed(said) if found is not None), None)
        if last is not None:
            return last["value"] != "off"
    return None if command_line is None else False


def _field(job: str, name: str) -> str | None:
    found = re.search(rf"^\s*{name}=(.+)$", job, re.MULTILINE)
    return found[1] if found else None


def _options(line: str, script: str | None) -> Sequence[str]:
    """The words before the script's name: what follows belongs to the script."""
    words = _split(line)[1:]
    name = os.path.basename(script or "")
    places = [place for place, word in enumerate(words) if os.path.basename(word) == name]
    return words[: places[0]] if places else words


def _directives(script: str) -> Sequence[str]:
    return [word for line in _directive_lines(script) for word in _split(line)]


def _directive_lines(script: str) -> Iterator[str]:
    """sbatch reads no further than the first command."""
    for line in script.splitlines()[:_MAX_DIRECTIVES]:
        if line.startswith("#SBATCH "):
            yield line.removeprefix("#SBATCH ")
        elif line.strip() and not line.lstrip().startswith("#"):
            return


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # an apostrophe in a comment of the user's
        return line.split()
