"""Which checkpoint all ranks load: chosen by rank 0, verified by all, told to all.

Under the supervisor its choice is law: the folder named in the environment, or none when that is
empty. Otherwise the newest complete one. Every rank then reads its share of the files against
their checksums, so that the whole checkpoint is verified in the time of one share. A damaged one is
set aside, for good: on the next attempt the supervisor sees the one before.
"""

import logging
import os
from pathlib import Path
from typing import NamedTuple

from supervisor import checkpoint_folder as layout
from supervisor import wire
from supervisor.agent.exchange import CheckpointError, Exchange
from supervisor.checkpoint_folder import DamagedError, Manifest

_log = logging.getLogger(__name__)


class Share(NamedTuple):
    """The checkpoint to load, with the files of it that one rank verifies."""

    folder: Path
    manifest: Manifest


def choose_verified(exchange: Exchange, parent: Path) -> Share | None:
    """The checkpoint all ranks load, or None; CheckpointError when the ordered one is no good."""
    while True:
        share = exchange.round("choose", lambda: None, lambda parts: _choose(parent, len(parts)))
        if share is None or _is_good(exchange, share):
            return share


def _choose(parent: Path, world_size: int) -> list[Share | None]:
    """On rank 0: each rank's share of the first candidate whose manifest can be read."""
    for folder in _candidates(parent):
        try:
            manifest = layout.read_manifest(folder)
        except DamagedError as error:
            _reject(folder, str(error))
            continue
        return [Share(folder, _part(manifest, rank, world_size)) for rank in range(world_size)]
    return [None] * world_size


def _candidates(parent: Path) -> list[Path]:
    ordered = os.environ.get(wire.RESUME_FROM)
    if ordered is not None:
        return [Path(ordered)] if ordered else []
    found = [folder for _, folder in layout.by_step(parent)]
    return [one for one in found if layout.is_complete(one) and layout.is_ours(one)]


def _part(manifest: Manifest, rank: int, world_size: int) -> Manifest:
    names = sorted(manifest.files)[rank::world_size]
    return Manifest(
        step=manifest.step,
        world_size=manifest.world_size,
        files={name: manifest.files[name] for name in names},
    )


def _is_good(exchange: Exchange, share: Share) -> bool:
    return exchange.round(
        "verify",
        lambda: _flaw(share),
        lambda flaws: [_settle(share.folder, flaws)] * len(flaws),
    )


def _flaw(share: Share) -> str | None:
    try:
        layout.check_sums(
            share.folder, share.manifest, list(share.manifest.files), until=float("inf")
        )
    except DamagedError as error:
        return str(error)
    return None


def _settle(folder: Path, flaws: list[str | None]) -> bool:
    flaw = next((flaw for flaw in flaws if flaw), None)
    if flaw is not None:
        _reject(folder, flaw)
    return flaw is None


def _reject(folder: Path, flaw: str) -> None:
    """Set a damaged checkpoint aside; raise when it was the supervisor's choice."""
    said = f"{folder} is damaged ({flaw})"
    if layout.is_ours(folder):
        said += f" and was set aside as {layout.set_aside(folder).name}"
    if wire.RESUME_FROM in os.environ:
        raise CheckpointError(said)
    _log.warning("%s", said)
