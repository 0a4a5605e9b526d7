"""Values behave as frozen, slotted, keyword-only dataclasses do."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace
from typing import Any

import pytest

from supervisor.core.value import value


@value
class Ours:
    """A value."""

    name: str
    numbers: tuple[int, ...] = ()
    more: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """What it stands for."""

    name: str
    numbers: tuple[int, ...] = ()
    more: dict[str, int] = field(default_factory=dict)


@value
class Plain:
    """One that can be hashed."""

    name: str
    number: int = 0


def test_it_shows_itself_as_a_dataclass_does() -> None:
    assert repr(Theirs(name="a", numbers=(1, 2))).replace("Theirs", "Ours") == repr(
        Ours(name="a", numbers=(1, 2))
    )


def test_equality_is_of_all_fields_and_of_one_class() -> None:
    ours = Ours(name="a", numbers=(1,))

    assert ours == Ours(name="a", numbers=(1,), more={})
    assert ours != Ours(name="a", numbers=(2,))
    assert ours != Theirs(name="a", numbers=(1,))
    assert {Plain(name="a")} == {Plain(name="a", number=0), Plain(name="a")}


@pytest.mark.parametrize("name", ["name", "numbers", "unknown"])
def test_nothing_of_it_can_be_set_or_deleted(name: str) -> None:
    ours: Any = Ours(name="a")

    with pytest.raises(AttributeError):
        setattr(ours, name, "b")
    with pytest.raises(FrozenInstanceError):
        delattr(ours, name)
    assert ours == Ours(name="a")


def test_fields_go_by_name_and_each_has_its_own_default() -> None:
    with pytest.raises(TypeError):
        Ours("a")  # type: ignore[misc]
    with pytest.raises(TypeError):
        Ours()  # type: ignore[call-arg]
    assert Ours(name="a").more is not Ours(name="b").more
    assert not hasattr(Ours(name="a"), "__dict__")


def test_the_functions_of_dataclasses_take_it() -> None:
    ours = Ours(name="a", more={"x": 1})

    assert {"name": "b", "numbers": (), "more": {"x": 1}} == asdict(replace(ours, name="b"))
    assert ours == copy.deepcopy(ours) == pickle.loads(pickle.dumps(ours))
