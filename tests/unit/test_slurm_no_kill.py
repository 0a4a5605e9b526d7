"""Whether a Slurm job outlives a lost host: Slurm does not say, its script and command line do."""

from pathlib import Path

import pytest

from supervisor.adapters.schedulers.slurm_no_kill import advice, outlives_lost_host

# Recorded from 22.05, shortened; newer ones tell the command line as well.
_SHOWN = """JobId=7 JobName=train
   JobState=RUNNING Reason=None Dependency=(null)
   NodeList=node[1-2]
   Command={command}
{submit}   WorkDir=/data
"""
_SCRIPT = "#!/bin/bash\n# it's mine\n#SBATCH -N2{no_kill}   # don't\n\nexec supervise\n#SBATCH -k\n"


def _slurm(folder: Path, *, script: str | None = None, submit: str | None = None) -> dict[str, str]:
    """A scontrol that says this of job 7."""
    line = "" if submit is None else f"   SubmitLine={submit}\n"
    command = "(null)" if script is None else "/data/train.sbatch"
    (folder / "job.txt").write_text(_SHOWN.format(command=command, submit=line))
    if script is not None:
        (folder / "script.txt").write_text(script)
    program = folder / "scontrol"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in\n"show job 7") exec /bin/cat {folder}/job.txt ;;\n'
        f'"write batch_script 7 -") exec /bin/cat {folder}/script.txt ;;\nesac\nexit 1\n'
    )
    program.chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize("no_kill", [" -k", " --no-kill", " --no-kill=", " -k --time=5"])
def test_script_that_asks_for_it_is_believed(tmp_path: Path, no_kill: str) -> None:
    environ = _slurm(tmp_path, script=_SCRIPT.format(no_kill=no_kill))

    assert outlives_lost_host("7", environ) is True
    assert advice("7", environ) == ()


def test_nothing_is_claimed_where_the_command_line_is_unknown(tmp_path: Path) -> None:
    """22.05 does not tell it, and -k may have been given there."""
    environ = _slurm(tmp_path, script=_SCRIPT.format(no_kill=""))

    assert outlives_lost_host("7", environ) is None
    assert "if this job was not submitted with --no-kill" in advice("7", environ)[0]


def test_neither_script_nor_command_line_asks_for_it(tmp_path: Path) -> None:
    submit = "sbatch -N 4 train.sbatch -k"
    environ = _slurm(tmp_path, script=_SCRIPT.format(no_kill=""), submit=submit)

    assert outlives_lost_host("7", environ) is False
    assert "submit it with --no-kill" in advice("7", environ)[0]


@pytest.mark.parametrize(
    ("submit", "variables", "no_kill", "expected"),
    [
        ("sbatch -k train.sbatch", {}, "", True),
        ("sbatch --no-kill=off train.sbatch", {"SBATCH_NO_KILL": ""}, " -k", False),
        ("sbatch train.sbatch", {"SBATCH_NO_KILL": "off"}, " -k", False),
        ("sbatch train.sbatch", {"SBATCH_NO_KILL": ""}, "", True),
    ],
)
def test_command_line_wins_over_variables_and_those_over_the_script(
    tmp_path: Path, submit: str, variables: dict[str, str], no_kill: str, expected: bool
) -> None:
    environ = _slurm(tmp_path, script=_SCRIPT.format(no_kill=no_kill), submit=submit)

    assert expected is outlives_lost_host("7", environ | variables)


@pytest.mark.parametrize(("submit", "expected"), [("salloc -k -N2", True), ("salloc -N2", False)])
def test_salloc_has_no_script(tmp_path: Path, submit: str, expected: bool) -> None:
    assert expected is outlives_lost_host("7", _slurm(tmp_path, submit=submit))


def test_without_scontrol_nobody_can_say(tmp_path: Path) -> None:
    assert outlives_lost_host("7", {"PATH": str(tmp_path)}) is None
