"""Where a process stands among the ranks, from the environment alone."""

import pytest

from supervisor.agent.place import Place, read_place
from supervisor.errors import UsageError

WHOLE = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "x1",
    "MASTER_PORT": "29500",
}


def test_nothing_in_the_environment_is_a_world_of_one() -> None:
    assert Place() == read_place({"PATH": "/bin"})


def test_whole_set_is_taken_as_it_is() -> None:
    expected = Place(rank=5, world_size=8, local_rank=1, local_world_size=4, launched=True)

    assert expected == read_place(WHOLE)


def test_one_rank_needs_no_meeting_point() -> None:
    place = read_place({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"})

    assert Place() == place


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"])
def test_missing_variable_is_named_with_what_was_seen(name: str) -> None:
    """A rank without a world size is how four processes train four models alone."""
    partial = {key: value for key, value in WHOLE.items() if key != name}

    with pytest.raises(UsageError) as caught:
        read_place(partial)

    assert str(caught.value).startswith(f"{name} not set, with ")
    assert all(f"{key}={value}" in str(caught.value) for key, value in partial.items())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"RANK": "8"}, "rank outside its world, with RANK=8, WORLD_SIZE=8"),
        ({"LOCAL_RANK": "4"}, "rank outside its world, with RANK=5"),
        ({"RANK": "five"}, "RANK='five' is not a number from 0 up"),
        ({"RANK": "-1"}, "RANK='-1' is not a number from 0 up"),
    ],
)
def test_contradictions_are_refused(change: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_place({**WHOLE, **change})

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_ranks_of_a_bare_launcher_do_not_each_believe_to_be_alone(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}=4 says there are several ranks"):
        read_place({name: "4"})


def test_bare_launcher_with_one_rank_is_a_world_of_one() -> None:
    assert Place() == read_place({"PMI_SIZE": "1"})
