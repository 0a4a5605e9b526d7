"""The matrix of faults: which cells there are, which cannot be, and what each must end with.

The expectations follow from evidence: a host is retired when it is proven lost, and nobody is when
only a rank failed, whatever the launcher says. The victim is another one in each cell, and never
the first host, which a guess would name.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

LAUNCHERS = ("mpich5", "openmpi5", "openmpi4", "intelmpi", "mpich4", "slurm", "local")
KINDS = ("plain", "mpi")
IN_RANK = {  # fault -> what the training does to itself
    "rank raises": "keyerror",
    "rank SIGKILL": "sigkill",
    "rank SIGSEGV": "sigsegv",
    "rank SIGSTOP": "sigstop",
    "rank exits 3": "exit3",
}
TO_HOST = ("daemon killed", "host killed", "host frozen", "power loss", "link cut")
AT_LAUNCH = ("host unreachable at launch", "command missing on one host")
FAULTS = (*IN_RANK, *TO_HOST, *AT_LAUNCH)
NAMES_LOST_DAEMON = ("openmpi5", "openmpi4")  # a launcher's word about its daemon is believed
HOST_IS_DAEMON = ("local",)  # a virtual host is down without its first process
SILENT = ("host frozen", "power loss", "link cut")  # what no launcher notices

ONE_NETWORK = "its nodes share this machine's network"
ONE_FILE_SYSTEM = "its hosts share this machine's files"
IMPOSSIBLE = {
    ("slurm", "power loss"): ONE_NETWORK,
    ("slurm", "link cut"): ONE_NETWORK,
    ("slurm", "command missing on one host"): ONE_FILE_SYSTEM,
    ("local", "power loss"): ONE_NETWORK,
    ("local", "link cut"): ONE_NETWORK,
    ("local", "command missing on one host"): ONE_FILE_SYSTEM,
    ("local", "host unreachable at launch"): "its hosts are made by the run itself",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One launcher, one kind of training, one fault."""

    launcher: str
    kind: str
    fault: str

    @property
    def name(self) -> str:
        return f"{self.launcher}-{self.kind}-{self.fault.replace(' ', '_')}"

    @property
    def impossible(self) -> str:
        """Why there can be no such cell; empty when there is."""
        if self.launcher == "local" and self.kind == "mpi":
            return "it starts no MPI programs"
        return IMPOSSIBLE.get((self.launcher, self.fault), "")

    @property
    def victim(self) -> int:
        """The number of the host that suffers: 2, 3 or 4 of 4."""
        return 2 + zlib.crc32(self.name.encode()) % 3

    @property
    def rank(self) -> int:
        """The rank that suffers, of two on the host."""
        return 2 * (self.victim - 1) + zlib.crc32(self.name[::-1].encode()) % 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the first attempt is judged to have died of, and whether its victim is retired; None:
    where it is a race whether a peer confirms the launcher's word before all are torn down.
    """

    causes: tuple[str, ...]
    retired: bool | None = False


_HOST_LOST = Expected(causes=("node_lost",), retired=True)
_NOBODY = Expected(causes=("unknown",))
# The host is well, and its launcher does not say that it lost it: a strike.
_DAEMON_DEAD = Expected(causes=("launcher", "node_lost", "unknown", "cascade_only"))


def expected(cell: Cell) -> Expected:
    """What this cell must end with."""
    match cell.fault:
        case "rank SIGSTOP":
            return Expected(causes=("hang",))
        case "rank exits 3" if cell.kind == "mpi":  # it waits for the others, silent, in its exit
            return Expected(causes=("hang", "unknown"))
        case "daemon killed":
            proven = (*NAMES_LOST_DAEMON, *HOST_IS_DAEMON)
            return _HOST_LOST if cell.launcher in proven else _DAEMON_DEAD
        case "command missing on one host":
            return Expected(causes=("environment",), retired=True)
        case fault if fault in IN_RANK:
            return _NOBODY
        case _:
            return _HOST_LOST


def _daemon_killed(launcher: str) -> Expected:
    if launcher == "intelmpi":  # it names the branch of its tree in which something was lost
        return Expected(causes=("node_lost",), retired=None)
    return _HOST_LOST if launcher in NAMES_LOST_DAEMON else _DAEMON_DEAD


def cells() -> Iterator[Cell]:
    """All cells, the impossible ones too."""
    for launcher in LAUNCHERS:
        for kind in KINDS:
            for fault in FAULTS:
                yield Cell(launcher=launcher, kind=kind, fault=fault)


QUICK = {  # launcher -> the cells that every test run has: all faults, all launchers, both kinds
    ("mpich5", "mpi", "rank SIGKILL"),
    ("mpich5", "plain", "link cut"),
    ("mpich5", "mpi", "command missing on one host"),
    ("openmpi5", "mpi", "rank raises"),
    ("openmpi5", "plain", "power loss"),
    ("openmpi4", "plain", "rank SIGSEGV"),
    ("openmpi4", "mpi", "host killed"),
    ("intelmpi", "mpi", "host frozen"),
    ("intelmpi", "plain", "daemon killed"),
    ("mpich4", "plain", "host unreachable at launch"),
    ("slurm", "mpi", "rank SIGKILL"),
    ("slurm", "plain", "host killed"),
    ("local", "plain", "rank SIGSTOP"),
    ("local", "plain", "host killed"),
    ("mpich5", "plain", "rank exits 3"),
}


def is_quick(cell: Cell) -> bool:
    """Whether the cell is part of every test run."""
    return (cell.launcher, cell.kind, cell.fault) in QUICK
