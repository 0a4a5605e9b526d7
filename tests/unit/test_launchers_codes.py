"""What launchers mean by their exit codes; each row was measured on the real one."""

import pytest

from supervisor.adapters.launchers import Launcher, plan_end
from supervisor.adapters.launchers.codes import meaning

HYDRA = "a rank died of a signal, or a host could not be reached or was lost"


@pytest.mark.parametrize(
    ("flavour", "exit_code", "words"),
    [
        ("mpich", 255, HYDRA),
        ("intelmpi", 255, HYDRA),
        ("mpich", 9, "a rank left with 9, or was ended by SIGKILL"),
        ("mpich", 11, "a rank left with 11, or was ended by SIGSEGV"),
        ("openmpi", 137, "a rank was ended by SIGKILL"),
        ("srun", 139, "a rank was ended by SIGSEGV"),
        ("openmpi", 14, "a rank called MPI_Abort, or lost its connection to another"),
        ("openmpi", 205, "the launcher lost its daemon on a host"),
        ("openmpi", 9, ""),
        ("mpich", 1, ""),
        ("srun", 0, ""),
        ("local", 137, ""),
        ("mpich", None, ""),
    ],
)
def test_code_is_told_in_words(flavour: str, exit_code: int | None, words: str) -> None:
    assert words == meaning(flavour, exit_code)


def test_only_slurms_step_is_asked_to_end_by_its_scheduler() -> None:
    srun = Launcher(flavour="srun", program="/opt/slurm/bin/srun", version="23.11.4")
    mpich = Launcher(flavour="mpich", program="/opt/mpich/bin/mpiexec", version="5.0.2")

    planned = plan_end(srun, "r-20", 2)

    assert planned is not None
    assert planned.name == "supervise-r-20-2"
    assert planned.ask == ("/opt/slurm/bin/scancel", "--signal=TERM")
    assert planned.force == ("/opt/slurm/bin/scancel",)
    assert plan_end(mpich, "r-20", 2) is None
