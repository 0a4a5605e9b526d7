"""A run as the user asked for it: what the command line found out, for the engine and its
adapters.
"""

from pathlib import Path

from supervisor.adapters.launchers import Launcher
from supervisor.adapters.schedulers import Job
from supervisor.core.settings import Settings
from supervisor.core.value import value
from supervisor.wire import canonical_host


@value
class RunSpec:
    """Hosts are spelled here as the allocation spells them."""

    command: tuple[str, ...]
    run_dir: Path
    run_id: str
    active: tuple[str, ...]
    spares: tuple[str, ...]
    virtual: bool
    this_machine: bool
    launcher: Launcher
    deadline: float | None
    settings: Settings
    checkpoint_dir: Path | None
    console: str
    rank_logs: str | None
    signature_folders: tuple[Path, ...]
    shim: bool
    launcher_args: tuple[str, ...] = ()
    cpu_bind: str | None = None
    probe_scripts: tuple[Path, ...] = ()
    verbosity: int
    job: Job | None = None  # of the scheduler's that we are in
    lost: tuple[str, ...] = ()  # canonical names of the job's hosts that are not in it any more

    @property
    def allocation(self) -> str:
        """What names the allocation; empty without a scheduler's job."""
        return self.job.allocation if self.job else ""

    def spelled(self) -> dict[str, str]:
        """Canonical name -> the spelling that launchers are given."""
        return {canonical_host(host): host for host in (*self.active, *self.spares)}
