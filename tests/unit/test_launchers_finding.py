"""Finding a launcher: fakes are executables on PATH that answer --version as the real ones do."""

import sys
from pathlib import Path

import pytest

from supervisor.adapters.launchers import find_launcher
from supervisor.errors import PlatformError, UsageError

ANSWERS = {
    "mpich": "HYDRA build details:\n    Version:                                 4.1.2",
    "intel": "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 20250602",
    "openmpi5": "mpiexec (Open MPI) 5.0.11\n\nReport bugs to ...",
    "openmpi4": "mpiexec.openmpi (OpenRTE) 4.1.4",
    "pals": "mpiexec version 1.3.4",
    "slurm": "slurm-wlm 22.05.8",
    "mystery": "welcome",
}
KNOWN = {
    "mpich": ("mpich", 4),
    "intel": ("intelmpi", 2021),
    "openmpi5": ("openmpi", 5),
    "openmpi4": ("openmpi", 4),
    "pals": ("pals", 1),
}


def install(folder: Path, which: str, name: str = "mpiexec") -> Path:
    """An executable that answers --version as one of the real launchers does."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && cat <<'X'\n{ANSWERS[which]}\nX\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No mpiexec beside the interpreter."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    return tmp_path


def test_mpich_is_known_by_its_answer_whatever_its_name(bare: Path) -> None:
    program = install(bare / "bin", "mpich")

    found = find_launcher("auto", False, False, {"PATH": str(bare / "bin")})

    assert (found.flavour, found.program, found.version) == ("mpich", str(program), "4.1.2")


def test_first_on_path_wins_then_the_one_beside_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = install(tmp_path / "venv", "mpich")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    first, second = (install(tmp_path / name, "mpich") for name in ("a", "b"))

    path = {"PATH": f"{tmp_path}/a:{tmp_path}/b"}
    assert find_launcher("auto", False, False, path).program == str(first)
    assert find_launcher("mpich", False, False, {"PATH": f"{tmp_path}/b"}).program == str(second)
    assert find_launcher("auto", False, False, {"PATH": ""}).program == str(beside)


@pytest.mark.parametrize("which", KNOWN)
def test_each_flavour_is_known_by_its_answer_alone(bare: Path, which: str) -> None:
    program = install(bare / "bin", which)

    for wanted in ("auto", KNOWN[which][0], str(program)):
        found = find_launcher(wanted, False, False, {"PATH": str(bare / "bin")})
        assert (found.flavour, found.major, found.program) == (*KNOWN[which], str(program))


def test_auto_is_srun_in_a_slurm_job_and_an_mpiexec_elsewhere(bare: Path) -> None:
    install(bare / "bin", "slurm", "srun")
    install(bare / "bin", "mpich")
    path = {"PATH": str(bare / "bin")}
    job = {**path, "SLURM_JOB_ID": "7"}

    assert find_launcher("auto", False, False, job).flavour == "srun"
    assert find_launcher("auto", False, False, path).flavour == "mpich"
    assert find_launcher("auto", True, False, job).flavour == "mpich"
    assert find_launcher("srun", False, False, path).version == "22.05.8"


def test_named_flavour_that_is_not_there_says_what_is(bare: Path) -> None:
    program = install(bare / "bin", "intel")

    with pytest.raises(PlatformError) as caught:
        find_launcher("openmpi", False, False, {"PATH": str(bare / "bin")})

    assert str(caught.value).startswith(f"no launcher of flavour openmpi on PATH or beside {bare}")
    assert f"; found {program} (intelmpi); " in str(caught.value)


@pytest.mark.parametrize(
    ("which", "flavour", "name"),
    [
        ("openmpi4", "openmpi", "mpirun.openmpi"),
        ("openmpi5", "openmpi", "prterun"),
        ("intel", "intelmpi", "mpiexec.hydra"),
        ("mpich", "mpich", "mpiexec.hydra"),
    ],
)
def test_named_flavour_is_found_by_its_own_names(
    bare: Path, which: str, flavour: str, name: str
) -> None:
    install(bare / "bin", "mystery")
    program = install(bare / "bin", which, name)

    found = find_launcher(flavour, False, False, {"PATH": str(bare / "bin")})

    assert (flavour, str(program)) == (found.flavour, found.program)


def test_mpich_is_found_behind_another_mpi(bare: Path) -> None:
    install(bare / "a", "openmpi4")
    program = install(bare / "b", "mpich", "mpiexec.mpich")

    found = find_launcher("mpich", False, False, {"PATH": f"{bare}/a:{bare}/b"})

    assert found.program == str(program)


@pytest.mark.parametrize("near", [(True, False), (False, True)])
def test_auto_falls_back_to_local_where_local_reaches(bare: Path, near: tuple[bool, bool]) -> None:
    install(bare / "bin", "mystery")

    assert find_launcher("auto", *near, {"PATH": str(bare / "bin")}).flavour == "local"
    assert find_launcher("auto", *near, {"PATH": ""}).flavour == "local"


def test_no_launcher_for_other_hosts_says_what_was_looked_for_and_how_to_get_one(
    bare: Path,
) -> None:
    with pytest.raises(PlatformError, match=r"no mpiexec on PATH .*pip install mpich"):
        find_launcher("auto", False, False, {"PATH": str(bare)})
    with pytest.raises(PlatformError, match="--launcher local starts ranks on this machine"):
        find_launcher("local", False, False, {})


def test_wrong_name_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="--launcher lokal: not a launcher; give auto, mpich, "):
        find_launcher("lokal", True, False, {})


def test_path_that_is_no_program_or_no_launcher(bare: Path) -> None:
    with pytest.raises(PlatformError, match=r"cannot start the launcher .*: No such file"):
        find_launcher(f"{bare}/mpiexec", True, False, {})
    mystery = install(bare / "bin", "mystery")
    with pytest.raises(PlatformError, match="is an unknown launcher"):
        find_launcher(str(mystery), True, False, {})


def test_auto_takes_only_what_reaches_virtual_hosts(bare: Path) -> None:
    install(bare / "bin", "openmpi5")

    assert find_launcher("auto", True, False, {"PATH": str(bare / "bin")}).flavour == "local"
    assert find_launcher("auto", False, True, {"PATH": str(bare / "bin")}).flavour == "openmpi"
