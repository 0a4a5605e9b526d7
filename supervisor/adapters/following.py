"""Everything that reads an attempt's output, put together for one attempt.

Imported when an attempt has been launched and not before: what it brings along (matcher, signature
files) takes longer to import than a launcher takes to start, and must not make the command wait.
"""

from collections.abc import Callable, Sequence

from supervisor import linux
from supervisor.adapters import keeping
from supervisor.adapters.console import Console
from supervisor.adapters.database import Database
from supervisor.adapters.host_names import HostNames
from supervisor.adapters.output import Followed, OutputFollower
from supervisor.adapters.run_folder import AttemptFolder
from supervisor.adapters.run_spec import RunSpec
from supervisor.adapters.sightings import Sightings
from supervisor.core.events import Event
from supervisor.wire import canonical_host

_KEPT_BYTES = 16 << 20  # several times what is in hand of a block while it is read


class Following:
    """Makes the followers of one run's attempts; they share its signatures."""

    def __init__(
        self, spec: RunSpec, post: Callable[[Event], object], warn: Callable[[str], None]
    ) -> None:
        linux.keep_freed_memory(_KEPT_BYTES)
        self._spec, self._post = spec, post
        self._names = HostNames(tuple(spec.spelled()), {})
        self._database = Database(spec.signature_folders, warn)

    def follower(
        self, attempt: int, folder: AttemptFolder, hosts: Sequence[str], keeper: int | None
    ) -> OutputFollower:
        """A follower that goes on from wherever the last one of this attempt stopped."""
        folder.create()
        settings = self._spec.settings
        rank_hosts = [host for host in hosts for _ in range(settings.ranks_per_host)]
        shortest = min(settings.idle_timeout, settings.startup_timeout, settings.silence_timeout)
        followed = Followed(
            attempt=attempt,
            folder=folder,
            rank_hosts=rank_hosts,
            beat_seconds=keeping.beat_seconds(settings),
            digest_seconds=min(5.0, max(0.1, shortest / 10)),
            launcher=self._spec.launcher.flavour,
            shims=self._spec.shim,
            rank_logs=self._spec.rank_logs,
            keeper=keeper,
        )
        tags = [f"{rank} {host}" for rank, host in enumerate(rank_hosts)]
        console = Console(self._spec.console, tags)
        canonical = [canonical_host(host) for host in rank_hosts]

        def place(rank: int) -> str | None:
            return canonical[rank] if rank < len(canonical) else None

        sightings = Sightings(attempt, self._database.matcher, self._names.resolve, place)
        return OutputFollower(followed, console, sightings, self._post)
