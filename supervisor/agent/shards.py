"""Training state to and from the sharded format of torch.distributed.checkpoint, without its talk.

The planners, the writer and the reader are torch's public ones, so that torch's own tools read what
is written here and resharding to another number of ranks works. Only the conversation between ranks
is ours (supervisor.agent.exchange): torch's is a collective that a dead rank holds for ever.

What a rank alone has (random generators, the user's extras) goes under a key with its rank: torch
keeps one copy of what several ranks hold under the same key, and every rank would resume with it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import SavePlan
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from supervisor.agent.durable import sync_and_sum, sync_folder
from supervisor.checkpoint_folder import FileSum

INDEX = ".metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One rank's shards: their sums, and where in them each tensor lies."""

    files: dict[str, FileSum]
    places: list[Any]


class Draft:
    """The state of one save: planned by each rank, joined by rank 0, written by each rank."""

    def __init__(self) -> None:
        self._planner = DefaultSavePlanner()
        self._metadata: Metadata | None = None

    def plan(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, rank: int, alone: bytes
    ) -> SavePlan:
        """What this rank holds."""
        model_state, optimizer_state = get_state_dict(model, optimizer)
        own = {f"{rank:05d}": torch.frombuffer(bytearray(alone), dtype=torch.uint8)}
        self._planner.set_up_planner(
            {"model": model_state, "optimizer": optimizer_state, "rank": own},
            is_coordinator=rank == 0,
        )
        return self._planner.create_local_plan()

    def join(self, plans: list[SavePlan]) -> list[SavePlan]:
        """On rank 0: who writes what, each thing once."""
        joined, self._metadata = self._planner.create_global_plan(plans)
        return FileSystemWriter("unused").prepare_global_plan(joined)

    def write(self, plan: SavePlan, folder: Path) -> Written:
        """Write this rank's shards, synced, into a folder that exists."""
        writer = FileSystemWriter(folder, sync_files=True, thread_count=1)
        final = self._planner.finish_plan(plan)
        places = writer.write_data(final, self._planner).wait()
        names = sorted({place.storage_data.relative_path for place in places})
        files = {name: sync_and_sum(folder / name) for name in names}
        sync_folder(folder)
        return Written(files=files, places=places)

    def write_index(self, folder: Path, written: list[Written]) -> FileSum:
        """On rank 0: write where everything lies."""
        if self._metadata is None:
            raise AssertionError("only the rank that joined the plans can write the index")
        writer = FileSystemWriter(folder)
        writer.set_up_storage_writer(is_coordinator=True)
        writer.finish(self._metadata, [one.places for one in written])
        return sync_and_sum(folder / INDEX)


def load_shards(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, rank: int
) -> bytes:
    """Fill model and optimizer from shards; returns what the given rank alone had."""
    reader = FileSystemReader(folder)
    metadata = reader.read_metadata()
    key = f"{rank:05d}"
    model_state, optimizer_state = get_state_dict(model, optimizer)
    own = torch.empty(_length(metadata, f"rank.{key}"), dtype=torch.uint8)
    state = {"model": model_state, "optimizer": optimizer_state, "rank": {key: own}}
    _read(reader, metadata, state)
    set_state_dict(model, optimizer, model_state_dict=model_state, optim_state_dict=optimizer_state)
    return own.numpy().tobytes()


def _read(reader: FileSystemReader, metadata: Metadata, state: dict[str, Any]) -> None:
    planner = DefaultLoadPlanner()
    planner.set_up_planner(state, metadata, is_coordinator=True)
    reader.set_up_storage_reader(metadata, is_coordinator=True)
    plan = reader.prepare_local_plan(planner.create_local_plan())
    [joined] = reader.prepare_global_plan(planner.create_global_plan([plan]))
    reader.read_data(planner.finish_plan(joined), planner).wait()


def _length(metadata: Metadata, key: str) -> int:
    entry = metadata.state_dict_metadata.get(key)
    if not isinstance(entry, TensorStorageMetadata):
        raise ValueError(f"no {key} in {INDEX}: not a checkpoint of this package")
    return entry.size[0]
