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
    "mystery": "welcome",
}
NAMES = {"intel": "Intel MPI", "openmpi5": "Open MPI", "openmpi4": "Open MPI"}


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


@pytest.mark.parametrize("which", NAMES)
def test_launcher_that_is_not_driven_is_named(bare: Path, which: str) -> None:
    program = install(bare / "bin", which)

    with pytest.raises(PlatformError) as caught:
        find_launcher("auto", False, False, {"PATH": str(bare / "bin")})

    assert str(caught.value) == (
        f"{program} is {NAMES[which]}, which this version does not drive yet; "
        "use --launcher mpich or local"
    )
    with pytest.raises(PlatformError, match="does not drive yet"):
        find_launcher(str(program), True, False, {})


def test_mpich_is_found_behind_another_mpi(bare: Path) -> None:
    install(bare / "a", "openmpi4")
    program = install(bare / "b", "mpich", "mpiexec.mpich")

    found = find_launcher("mpich", False, False, {"PATH": f"{bare}/a:{bare}/b"})

    assert found.program == str(program)


@pytest.mark.parametrize("near", [(True, False), (False, True)])
def test_auto_falls_back_to_local_where_local_reaches(bare: Path, near: tuple[bool, bool]) -> None:
    install(bare / "bin", "openmpi5")

    assert find_launcher("auto", *near, {"PATH": str(bare / "bin")}).flavour == "local"
    assert find_launcher("auto", *near, {"PATH": ""}).flavour == "local"


def test_no_launcher_for_other_hosts_says_what_was_looked_for_and_how_to_get_one(
    bare: Path,
) -> None:
    with pytest.raises(PlatformError, match=r"no MPICH mpiexec on PATH .*pip install mpich"):
        find_launcher("auto", False, False, {"PATH": str(bare)})
    with pytest.raises(PlatformError, match="--launcher local starts ranks on this machine"):
        find_launcher("local", False, False, {})


def test_wrong_name_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="--launcher lokal: not a launcher; give auto, mpich"):
        find_launcher("lokal", True, False, {})


def test_path_that_is_no_program_or_no_launcher(bare: Path) -> None:
    with pytest.raises(PlatformError, match=r"cannot start the launcher .*: No such file"):
        find_launcher(f"{bare}/mpiexec", True, False, {})
    mystery = install(bare / "bin", "mystery")
    with pytest.raises(PlatformError, match="is an unknown launcher"):
        find_launcher(str(mystery), True, False, {})
