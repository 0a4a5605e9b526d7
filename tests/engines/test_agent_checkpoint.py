"""Checkpoints of one process without a launcher: what is saved, chosen, kept and refused."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
# loading torch's checkpoint package warns about its own use of its own deprecated parts
pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

from supervisor import agent, wire  # noqa: E402
from supervisor.adapters.checkpoints import choose_checkpoint  # noqa: E402
from supervisor.errors import UsageError  # noqa: E402


class Schedule:
    """An extra with a state of its own."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"seen": 0}

    def state_dict(self) -> dict[str, Any]:
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = state


class Training:
    """A model small enough to train in a test, with noise so that generators matter."""

    def __init__(self, folder: Path, *, width: int = 8, keep: int = 3) -> None:
        torch.manual_seed(1)
        self.schedule = Schedule()
        self.model = torch.nn.Sequential(
            torch.nn.Linear(4, width), torch.nn.Dropout(0.5), torch.nn.Linear(width, 1)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.checkpointer = agent.Checkpointer(
            folder, self.model, self.optimizer, extra={"schedule": self.schedule}, keep=keep
        )

    def train(self, steps: int) -> list[float]:
        return [self._step() for _ in range(steps)]

    def _step(self) -> float:
        loss = (self.model(torch.rand(16, 4)) * random.random()).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.optimizer.param_groups[0]["lr"] *= 0.9
        self.schedule.state = {"seen": self.schedule.state["seen"] + 16}
        return loss.item()


def save(folder: Path, *steps: int, keep: int = 3) -> Training:
    training = Training(folder, keep=keep)
    for step in steps:
        training.train(1)
        training.checkpointer.save(step)
    return training


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def flip_byte(folder: Path) -> None:
    shard = folder / "__0_0.distcp"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)


def truncate_shard(folder: Path) -> None:
    shard = folder / "__0_0.distcp"
    shard.write_bytes(shard.read_bytes()[:-1])


def remove_shard(folder: Path) -> None:
    (folder / "__0_0.distcp").unlink()


def remove_index(folder: Path) -> None:
    (folder / ".metadata").unlink()


def remove_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


DAMAGES = [flip_byte, truncate_shard, remove_shard, remove_index, remove_manifest]


@pytest.fixture(autouse=True)
def _no_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (wire.RESUME_FROM, wire.ATTEMPT, wire.SLOT):
        monkeypatch.delenv(name, raising=False)


def test_resumed_training_goes_on_bit_by_bit(tmp_path: Path) -> None:
    """Weights, moments, learning rate, generators, extras: leaving one out bends the curve."""
    undisturbed = save(tmp_path, 3)
    expected = undisturbed.train(4)

    resumed = Training(tmp_path)
    random.seed(99)
    step = resumed.checkpointer.resume()

    assert (3, expected, undisturbed.schedule.state) == (
        step,
        resumed.train(4),
        resumed.schedule.state,
    )


def test_nothing_saved_is_step_0(tmp_path: Path) -> None:
    assert Training(tmp_path / "none").checkpointer.resume() == 0


def test_supervisor_chooses_what_the_agent_saved(tmp_path: Path) -> None:
    """Both sides read the same folder by their own code paths."""
    save(tmp_path, 5, 10)

    chosen = choose_checkpoint(tmp_path)

    assert (10, str(tmp_path / "step-00000010"), ()) == (
        chosen.step,
        chosen.path,
        chosen.set_aside,
    )


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_is_set_aside_by_both_sides(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """torch itself loads a flipped byte without a word."""
    for folder in (tmp_path / "agent", tmp_path / "supervisor"):
        save(folder, 5, 10)
        damage(folder / "step-00000010")

    resumed = Training(tmp_path / "agent").checkpointer.resume()
    chosen = choose_checkpoint(tmp_path / "supervisor")

    left = ["step-00000005", "step-00000010.bad"]
    assert (5, 5) == (resumed, chosen.step)
    assert [left, left] == [names(tmp_path / "agent"), names(tmp_path / "supervisor")]


def test_supervisors_choice_is_law(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 5, 10)

    monkeypatch.setenv(wire.RESUME_FROM, str(tmp_path / "step-00000005"))
    ordered = Training(tmp_path).checkpointer.resume()
    monkeypatch.setenv(wire.RESUME_FROM, "")
    from_nothing = Training(tmp_path).checkpointer.resume()

    assert (5, 0) == (ordered, from_nothing)


def test_damaged_choice_of_the_supervisor_fails_and_is_never_chosen_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor's time for checksums is bounded; what it overlooks must not come back."""
    save(tmp_path, 5, 10)
    flip_byte(tmp_path / "step-00000010")
    monkeypatch.setenv(wire.RESUME_FROM, str(tmp_path / "step-00000010"))

    with pytest.raises(agent.CheckpointError, match=r"__0_0.distcp does not match its checksum"):
        Training(tmp_path).checkpointer.resume()

    assert choose_checkpoint(tmp_path).step == 5


def test_ordered_folder_that_is_no_checkpoint_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(wire.RESUME_FROM, str(tmp_path / "nowhere"))

    with pytest.raises(agent.CheckpointError, match=r"nowhere is damaged .manifest.json is miss"):
        Training(tmp_path).checkpointer.resume()


def test_newest_are_kept_and_higher_steps_are_not_touched(tmp_path: Path) -> None:
    """Higher ones belong to a training this one did not resume from."""
    save(tmp_path, 100)
    save(tmp_path, 1, 2, 3, 4, keep=2)

    assert ["step-00000003", "step-00000004", "step-00000100"] == names(tmp_path)


def test_good_checkpoint_is_never_written_again(tmp_path: Path) -> None:
    save(tmp_path, 5)
    shard = tmp_path / "step-00000005" / "__0_0.distcp"
    before = (shard.stat().st_ino, shard.stat().st_mtime_ns)

    save(tmp_path, 5)

    assert (before, ["step-00000005"]) == (
        (shard.stat().st_ino, shard.stat().st_mtime_ns),
        names(tmp_path),
    )


def test_damaged_checkpoint_of_the_same_step_makes_room(tmp_path: Path) -> None:
    save(tmp_path, 5)
    flip_byte(tmp_path / "step-00000005")

    save(tmp_path, 5)

    assert ["step-00000005", "step-00000005.bad"] == names(tmp_path)
    assert choose_checkpoint(tmp_path).step == 5


def test_save_that_fails_leaves_the_ones_before_and_no_litter(tmp_path: Path) -> None:
    training = save(tmp_path, 5)
    training.schedule.state = {"seen": object()}

    with pytest.raises(agent.CheckpointError, match=r"step 6 .* not saved: .*extra 'schedule'"):
        training.checkpointer.save(6)

    assert ["step-00000005"] == names(tmp_path)


def test_model_of_another_shape_is_one_line(tmp_path: Path) -> None:
    save(tmp_path, 5)

    with pytest.raises(agent.CheckpointError) as caught:
        Training(tmp_path, width=9).checkpointer.resume()

    assert "\n" not in str(caught.value)


def test_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(agent.CheckpointError, match=r"checkpoint of step 5 .* NotADirectoryError"):
        save(tmp_path / "file" / "folder", 5)


def test_optimizer_of_another_model_is_refused(tmp_path: Path) -> None:
    model, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    with pytest.raises(UsageError, match="not the model's"):
        agent.Checkpointer(tmp_path, model, torch.optim.SGD(other.parameters()))


def test_blocks_are_found_by_structure(tmp_path: Path) -> None:
    """Names differ between libraries; a stack of like, composite children does not."""
    from supervisor.agent.parallel import find_blocks
    from supervisor.examples.gpt import Block, Gpt

    gpt = Gpt(vocabulary=8, length=8, layers=3, dim=16)
    plain = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))

    assert ([Block] * 3, []) == ([type(one) for one in find_blocks(gpt)], find_blocks(plain))


def test_a_foreign_folder_of_the_name_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Somebody else's step-00000005 must not become .bad."""
    foreign = tmp_path / "step-00000005"
    foreign.mkdir()
    (foreign / "model.pt").write_bytes(b"theirs")

    with pytest.raises(agent.CheckpointError, match="no checkpoint of ours"):
        save(tmp_path, 5)

    assert (foreign / "model.pt").read_bytes() == b"theirs"
