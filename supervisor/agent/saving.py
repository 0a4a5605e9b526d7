"""One save, from plan to marker, and how many checkpoints are kept.

    CHECKPOINT_DIR/step-00000120.a2.tmp/   every rank writes its shards here and syncs them
                                           rank 0 checks all sizes, writes index and manifest, syncs
    CHECKPOINT_DIR/step-00000120/          the folder gets its name, its parent is synced
    CHECKPOINT_DIR/step-00000120/.complete the marker, synced: from now on it can be chosen

Two rounds of talk, plan and write. Whatever goes wrong in them leaves the folders before as they
were: nothing is written under a final name, and nothing good is renamed.
"""

import contextlib
import logging
import time
from pathlib import Path

import torch
from torch import nn
from torch.distributed.checkpoint.planner import SavePlan

from supervisor import checkpoint_folder as layout
from supervisor.agent.durable import remove_folder, sync_folder, write_synced
from supervisor.agent.exchange import CheckpointError, Exchange
from supervisor.agent.place import attempt_number
from supervisor.agent.rank_state import Extras, pack
from supervisor.agent.shards import INDEX, Draft, Written

_VERIFY_SECONDS = 20.0  # of checksums on rank 0, for a checkpoint found where one is to be saved

_log = logging.getLogger(__name__)


class Save:
    """The save of one step."""

    def __init__(self, exchange: Exchange, parent: Path, step: int, keep: int) -> None:
        self._exchange, self._step, self._keep = exchange, step, keep
        self._draft = Draft()
        self._final = parent / layout.folder_name(step)
        self._unfinished = parent / layout.unfinished_name(step, attempt_number())

    def run(self, model: nn.Module, optimizer: torch.optim.Optimizer, extra: Extras) -> None:
        """Save, or raise on all ranks; do nothing when this step is saved and good already."""
        mine = self._exchange.round(
            "plan",
            lambda: self._draft.plan(model, optimizer, self._exchange.rank, pack(extra)),
            self._begin,
        )
        if mine is None:
            return
        try:
            self._exchange.round("write", lambda: self._write(mine), self._commit)
        except BaseException:
            if self._exchange.rank == 0:
                remove_folder(self._unfinished)
            raise

    def _begin(self, plans: list[SavePlan]) -> list[SavePlan | None]:
        """On rank 0: an empty folder, and who writes what into it."""
        if _is_good(self._final):
            _log.warning("%s is complete already and is kept as it is", self._final)
            return [None] * len(plans)
        if self._final.exists() and not layout.is_ours(self._final):
            raise CheckpointError(f"{self._final} is no checkpoint of ours: move it out of the way")
        self._final.parent.mkdir(parents=True, exist_ok=True)
        remove_folder(self._unfinished)
        self._unfinished.mkdir()
        return list(self._draft.join(plans))

    def _write(self, plan: SavePlan) -> Written:
        if not self._unfinished.is_dir():
            raise CheckpointError(
                f"{self._unfinished}, made by rank 0, is not to be seen from here: "
                "the checkpoint folder must be on a file system that all hosts share"
            )
        return self._draft.write(plan, self._unfinished)

    def _commit(self, written: list[Written]) -> list[None]:
        """On rank 0, with every shard on disk: manifest, name, marker, and the oldest goes."""
        files = {name: one for part in written for name, one in part.files.items()}
        files[INDEX] = self._draft.write_index(self._unfinished, written)
        manifest = layout.Manifest(step=self._step, world_size=len(written), files=files)
        layout.check_sizes(self._unfinished, manifest)
        notes = {"attempt": attempt_number(), "torch": torch.__version__}
        content = layout.dump_manifest(manifest, **notes)
        write_synced(self._unfinished / layout.MANIFEST, content)
        if self._final.exists():
            layout.set_aside(self._final)
        self._unfinished.rename(self._final)
        sync_folder(self._final.parent)
        write_synced(self._final / layout.MARKER, layout.MARKER_TEXT.encode())
        _remove_oldest(self._final.parent, self._step, self._keep)
        return [None] * len(written)


def _is_good(folder: Path) -> bool:
    if not layout.is_complete(folder):
        return False
    try:
        layout.check(folder, until=time.monotonic() + _VERIFY_SECONDS)
    except layout.DamagedError:
        return False
    return True


def _remove_oldest(parent: Path, newest: int, keep: int) -> None:
    """Keep this many complete checkpoints, counted down from the one just saved.

    Higher steps are left alone: they are of a training this one did not resume from.
    """
    complete = [
        folder
        for step, folder in layout.by_step(parent)
        if step <= newest and layout.is_complete(folder) and layout.is_ours(folder)
    ]
    for folder in complete[keep:]:
        with contextlib.suppress(OSError):
            remove_folder(folder)
