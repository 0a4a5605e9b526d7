"""What a value is here: a frozen, slotted, keyword-only dataclass that is quick to define.

`dataclass(frozen=True)` compiles six methods for each class, 0.7 ms, and what is defined before the
first launch came to a third of the start of `supervise`. Here all values share five of them and
only `__init__` is compiled. The rest of `dataclasses`, replace, fields and asdict, works as ever.
"""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def value(cls: type[_T]) -> type[_T]:
    """Make a class of annotated fields a value."""
    for name, method in _METHODS.items():
        setattr(cls, name, method)
    return dataclass(repr=False, eq=False, slots=True, kw_only=True)(cls)


def _contents(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__slots__])


def _repr(self: Any) -> str:
    told = zip(self.__slots__, _contents(self), strict=True)
    return f"{type(self).__qualname__}({', '.join(f'{name}={text!r}' for name, text in told)})"


def _equal(self: Any, other: object) -> Any:
    return _contents(self) == _contents(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_contents(self))


def _set_once(self: Any, name: str, content: object) -> None:
    """`__init__` sets each field; nobody sets it again."""
    if hasattr(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, content)


def _keep(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_METHODS: dict[str, Callable[..., Any]] = {
    "__repr__": _repr,
    "__eq__": _equal,
    "__hash__": _hash,
    "__setattr__": _set_once,
    "__delattr__": _keep,
}
