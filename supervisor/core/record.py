"""Events and actions as plain JSON values and back, for the journal.

Owns the form of a record, derived from the dataclasses themselves, so that a new field needs no
code here. Fields that are not known are ignored and missing ones take their defaults: a journal
may be read by an older or a newer supervisor than wrote it. It reads and writes no file.

    {"v": 1, "event": "RankFailed", "at": 12.5, "attempt": 3, ...}
"""

from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from supervisor.core.actions import Action
from supervisor.core.events import Event
from supervisor.errors import UsageError

VERSION = 1
EVENTS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}
ACTIONS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Action)}


def event_to_json(event: Event) -> dict[str, Any]:
    """An event as a dictionary of plain values."""
    return {"v": VERSION, "event": type(event).__name__, **_plain_fields(event)}


def event_from_json(record: Mapping[str, Any]) -> Event:
    """The event of a record."""
    event: Event = _read(EVENTS, "event", record)
    return event


def action_to_json(action: Action) -> dict[str, Any]:
    """An action as a dictionary of plain values."""
    return {"v": VERSION, "action": type(action).__name__, **_plain_fields(action)}


def action_from_json(record: Mapping[str, Any]) -> Action:
    """The action of a record."""
    action: Action = _read(ACTIONS, "action", record)
    return action


def _read(kinds: Mapping[str, type[Any]], key: str, record: Mapping[str, Any]) -> Any:
    name = record.get(key)
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise UsageError(f"journal record with unknown {key} {name!r}: written by another version?")
    return _build(kind, record, str(name))


def _plain_fields(value: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _plain_fields(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _build(kind: type[Any], record: Any, where: str) -> Any:
    if not isinstance(record, Mapping):
        raise UsageError(f"journal record: {where} is not an object but {record!r:.80}")
    shape = _shape(cast("Hashable", kind))
    given = {
        field.name: _typed(hint, record[field.name], f"{where}.{field.name}")
        for field, hint in shape
        if field.name in record
    }
    missing = [field.name for field, _ in shape if field.name not in given and _required(field)]
    if missing:
        raise UsageError(f"journal record: {where} lacks {', '.join(missing)}")
    return kind(**given)


@cache
def _shape(kind: Hashable) -> tuple[tuple[Field[Any], Any], ...]:
    assert isinstance(kind, type)
    hints = get_type_hints(kind)
    return tuple((field, hints[field.name]) for field in fields(kind))


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _typed(hint: Any, value: Any, where: str) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return None if value is None else _typed(_not_none(hint), value, where)
    if get_origin(hint) is tuple:
        return _typed_tuple(get_args(hint), value, where)
    if is_dataclass(hint) and isinstance(hint, type):
        return _build(hint, value, where)
    return _scalar(hint, value, where)


def _not_none(hint: Any) -> Any:
    return next(kind for kind in get_args(hint) if kind is not type(None))


def _typed_tuple(hints: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise UsageError(f"journal record: {where} is not a list but {value!r:.80}")
    if hints[-1] is Ellipsis:
        hints = (hints[0],) * len(value)
    if len(hints) != len(value):
        raise UsageError(f"journal record: {where} has {len(value)} items instead of {len(hints)}")
    return tuple(_typed(hint, item, where) for hint, item in zip(hints, value, strict=True))


def _scalar(hint: Any, value: Any, where: str) -> Any:
    """Words become members of their enumeration; a whole number may stand for a float, and
    nothing else bends.
    """
    try:
        if issubclass(hint, Enum):
            return hint(value)
    except ValueError:
        raise UsageError(f"journal record: {where} has the unknown word {value!r:.80}") from None
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise UsageError(f"journal record: {where} is not {hint.__name__} but {value!r:.80}")
    return value
