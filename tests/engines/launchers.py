"""Real launchers for the tests: where each lies, and what an MPI program under it needs.

`install-engines` beside this installs them. One that is not there skips the test that wants it, by
name; where CI is set it fails it, so that nothing is skipped unseen.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("SUPERVISE_ENGINES", REPO / ".engines"))
_SBIN = "/usr/sbin:/sbin"  # not on everyone's PATH


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A launcher, the Python whose mpi4py speaks to it, and its daemon's name on each host."""

    name: str
    launcher: Path
    python: Path
    daemon: str
    environment: Mapping[str, str] = field(default_factory=dict)  # of its MPI programs

    @property
    def missing(self) -> str:
        """Why it cannot be used; empty when it can."""
        return ", ".join(
            f"{path} is missing" for path in (self.launcher, self.python) if not found(path)
        )


def found(program: Path | str) -> str | None:
    """The path of a program, also of those in sbin."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{_SBIN}")


def _of_wheel(name: str, daemon: str, **environment: str) -> Engine:
    programs = FOLDER / name / "bin"
    return Engine(
        name=name,
        launcher=programs / "mpiexec",
        python=programs / "python",
        daemon=daemon,
        environment=environment,
    )


def _of_debian(name: str, program: str, daemon: str, **environment: str) -> Engine:
    return Engine(
        name=name,
        launcher=Path(program),
        python=FOLDER / "debian" / "bin" / "python",
        daemon=daemon,
        environment=environment,
    )


# Hosts in namespaces of one machine share its memory's identity, which UCX takes for a short cut.
_TCP = {"UCX_TLS": "tcp,self"}
_MPICH4 = {"LD_LIBRARY_PATH": str(FOLDER / "debian" / "mpich4"), "MPI4PY_MPIABI": "mpich"}
ENGINES = {
    engine.name: engine
    for engine in (
        _of_wheel("mpich5", "hydra_pmi_proxy", **_TCP),
        _of_wheel("openmpi5", "prted", **_TCP),
        _of_wheel("intelmpi", "hydra_pmi_proxy", FI_PROVIDER="tcp"),
        _of_debian("openmpi4", "/usr/bin/mpiexec.openmpi", "orted", **_TCP),
        _of_debian("mpich4", "/usr/bin/mpiexec.mpich", "hydra_pmi_proxy", **_TCP, **_MPICH4),
    )
}


def wanted(name: str) -> Engine:
    """This engine, if it is there."""
    engine = ENGINES[name]
    if engine.missing:
        missing(f"{name}: {engine.missing}")
    return engine


def missing(what: str) -> None:
    """Skip a test for want of something; in CI, where all must be there, fail it."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}; tests/engines/install-engines installs it")
    pytest.skip(f"{what}; tests/engines/install-engines installs it")
