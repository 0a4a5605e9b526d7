"""Every way a host or rank can die, on every launcher: the right cause, host, action and step.

Real processes. A few cells of each launcher belong to every test run; `--all-cells` runs them all
and writes the table, one row a cell, to matrix.txt in the folder that pytest names at its end.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from engines.cell_run import Ended, faults_of, run_cell
from engines.cluster import Cluster, needed
from engines.grounds import ACTIVE, SPARES, ClusterGround, Ground, SlurmGround, VirtualGround
from engines.launchers import wanted
from engines.matrix import Cell, cells, is_quick
from engines.slurm import Slurm

pytestmark = [pytest.mark.engine, pytest.mark.timeout(240)]
Grounds = Callable[[str], Ground]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = metafunc.config.getoption("--all-cells")
    chosen = [cell for cell in cells() if every or is_quick(cell)]
    metafunc.parametrize("cell", chosen, ids=[cell.name for cell in chosen])


@pytest.fixture(scope="session")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    """Makes what a launcher runs on when it is first asked for."""
    made: dict[str, Any] = {}
    made_in = tmp_path_factory.mktemp
    with ExitStack() as stack:

        def ground(launcher: str) -> Ground:
            if launcher == "local":
                return VirtualGround()
            if launcher == "slurm":
                return made.get("slurm") or made.setdefault("slurm", slurm_ground(stack, made_in))
            engine = wanted(launcher)
            needed()
            if "cluster" not in made:
                made["cluster"] = Cluster(folder=made_in("cluster") / "files")
                stack.callback(made["cluster"].down)
                made["cluster"].up(ACTIVE + SPARES)
            return ClusterGround(cluster=made["cluster"], engine=engine)

        yield ground


def slurm_ground(stack: ExitStack, made_in: Callable[[str], Path]) -> SlurmGround:
    slurm = Slurm(folder=made_in("slurm"), nodes=ACTIVE + SPARES)
    stack.callback(slurm.down)
    slurm.up()
    return SlurmGround(slurm=slurm, engine=wanted("mpich5"))


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the rows go."""
    return tmp_path_factory.getbasetemp() / "matrix.txt"


def test_cell(cell: Cell, grounds: Grounds, table: Path, tmp_path: Path) -> None:
    if cell.impossible:
        write(table, cell, f"not to be had: {cell.impossible}")
        pytest.skip(cell.impossible)
    ground = grounds(cell.launcher)
    ground.repair()
    started = time.monotonic()

    ended = run_cell(cell, ground, tmp_path)

    wrong = list(faults_of(cell, ended, ground.hosts))
    seconds = f"{time.monotonic() - started:.0f} s in all"
    write(table, cell, *in_words(ended), seconds, "; ".join(wrong) or "as it must be")
    said = (tmp_path / "out").read_text(errors="replace")
    assert wrong == [], said[-3000:]


def in_words(ended: Ended) -> list[str]:
    """What became of the first attempt."""
    verdict, noticed = ended.verdict, ended.noticed
    blame = ", ".join(verdict.get("blame", [])) or "nobody"
    swapped = len({tuple(hosts) for hosts in ended.hostfiles}) > 1
    action = "spare took its place" if swapped else "relaunched in place"
    when = "" if noticed is None else f"noticed after {noticed:.1f} s"
    return [str(verdict.get("cause")), blame, action, when]


def write(table: Path, cell: Cell, *columns: str) -> None:
    """One row, in the file and on the terminal."""
    where = f"rank {cell.rank} on host {cell.victim}"
    row = " | ".join([cell.launcher, cell.kind, cell.fault, where, *filter(None, columns)])
    with table.open("a") as file:
        file.write(row + "\n")
    print(row)
