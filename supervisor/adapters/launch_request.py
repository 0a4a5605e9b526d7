"""From a run to what its launcher is asked for: the one place that makes a LaunchRequest."""

import os
from collections.abc import Iterable, Sequence

from supervisor.adapters.keeping import beat_seconds
from supervisor.adapters.launchers import LaunchRequest
from supervisor.adapters.run_folder import RunFolder
from supervisor.adapters.run_spec import RunSpec

# A variable of this host, login or launcher is nothing to another host.
_OWN = frozenset(
    [
        "HOME",
        "HOSTNAME",
        "LOGNAME",
        "MAIL",
        "OLDPWD",
        "PWD",
        "SHELL",
        "SHLVL",
        "TERM",
        "TMPDIR",
        "USER",
        "_",
        "DISPLAY",
        "XAUTHORITY",
    ]
)
_OWN_BEGINNINGS = ("BASH_FUNC_", "DBUS_", "OMPI_", "PBS_", "PMI", "PRTE_", "SLURM", "SSH_", "XDG_")


def request_of(
    spec: RunSpec,
    *,
    run_id: str,
    attempt: int,
    hosts: Sequence[str],
    resume_from: str,
    master_port: int,
) -> LaunchRequest:
    """What one attempt asks of the launcher; hosts are spelled as the allocation spells them."""
    spelled = spec.spelled()
    return LaunchRequest(
        hosts=tuple(spelled.get(host, host) for host in hosts),
        ranks_per_host=spec.settings.ranks_per_host,
        command=spec.command,
        run_id=run_id,
        run_dir=spec.run_dir,
        attempt_dir=RunFolder(path=spec.run_dir).attempt(attempt).path,
        attempt=attempt,
        resume_from=resume_from if spec.checkpoint_dir else None,
        virtual=spec.virtual,
        shim=spec.shim,
        beat_seconds=beat_seconds(spec.settings),
        master_port=master_port,
        launcher_args=spec.launcher_args,
        cpu_bind=spec.cpu_bind,
        forwarded=_forwarded(os.environ),
        root=os.geteuid() == 0,
    )


def _forwarded(names: Iterable[str]) -> tuple[str, ...]:
    """The user's variables that ranks on other hosts need as well."""
    return tuple(
        sorted(
            name
            for name in names
            if name.isidentifier() and name not in _OWN and not name.startswith(_OWN_BEGINNINGS)
        )
    )
