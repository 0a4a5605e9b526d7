"""Who may import whom, and what must not be loaded at all."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import supervisor

REPO = Path(__file__).parents[2]
HEAVY = (
    "torch",
    "numpy",
    "mpi4py",
    "hyperscan",
    "structlog",
    "yaml",
    "psutil",
    "watchdog",
    "aiofiles",
)


def _loaded(program: str) -> set[str]:
    """The modules a fresh interpreter has loaded after a program."""
    code = f"import sys\n{program}\nsys.stderr.write(' '.join(sys.modules))"
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | {"PYTHONPATH": str(Path(supervisor.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    return set(ended.stderr.split())


def _of(modules: set[str], *names: str) -> set[str]:
    return {module for module in modules if module.split(".")[0] in names or module in names}


def test_import_contracts_hold() -> None:
    """The floors, the pure core and the independent families, as pyproject.toml states them."""
    ended = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "program",
    [
        "import supervisor.cli.main",
        "from supervisor.cli.main import main; main(['--help'])",
        "from supervisor.cli.main import main; main(['--version'])",
        "from supervisor.cli.main import main; main(['--bogus'])",
    ],
)
def test_help_and_mistakes_load_nothing_heavy(program: str) -> None:
    """Environments are loaded from a parallel file system, where each file opened may cost 1 ms."""
    modules = _loaded(program)

    heavy = (*HEAVY, "asyncio", "dataclasses", "subprocess", "importlib.metadata")
    assert _of(modules, *heavy) == set()
    assert {name for name in modules if name.startswith("supervisor.")} <= {
        "supervisor.cli",
        "supervisor.cli.main",
        "supervisor.cli.options",
        "supervisor.cli.parser",
        "supervisor.cli.values",
        "supervisor.errors",
    }


def test_agent_loads_nothing_of_the_supervisor() -> None:
    """It lives in the training process, and must not drag a supervisor's libraries into it."""
    modules = _loaded("import supervisor.agent")

    supervisors = ("core", "adapters", "engine", "cli", "report", "keeper", "shim")
    assert {
        name for name in modules if name.split(".")[:2] in [["supervisor", s] for s in supervisors]
    } == set()
    assert _of(modules, "structlog", "yaml", "psutil", "watchdog", "aiofiles", "hyperscan") == set()


def _programs_beside_the_training() -> list[str]:
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["importlinter"]
    name = "programs beside the training use the standard library and wire only"
    return next(
        contract["source_modules"]
        for contract in contracts["contracts"]
        if contract["name"] == name
    )


@pytest.mark.parametrize("name", _programs_beside_the_training())
def test_programs_beside_the_training_load_the_standard_library_only(name: str) -> None:
    """The shim starts on every rank of every attempt: 10,000 times at once from one file system."""
    modules = _loaded(f"import {name}")

    assert _of(modules, *HEAVY, "asyncio") == set()
