"""The decoder's bounds, what it does with frames that stay torn, and the slot."""

import os
import stat
import struct
from pathlib import Path

import pytest

from supervisor import wire
from supervisor.frame_decoder import Decoder
from supervisor.wire import Frame, Kind, encode


def test_a_frame_that_never_gets_its_rest_stays_the_ranks_words() -> None:
    """A rank's half line must not pass for the launcher's, whose words may convict a host."""
    raw = encode(Kind.OUTPUT, 3, 10, b"x1: shepherd died from signal 9\n")
    decoder = Decoder()

    assert [] == decoder.feed(raw[:-20])
    assert [Frame(Kind.OUTPUT, 3, 10, b"x1: shepherd died")[:3]] == [
        item[:3] for item in decoder.close() if isinstance(item, Frame)
    ]


def test_frames_whose_rests_never_come_are_held_in_bounded_number() -> None:
    decoder, items = Decoder(), list[Frame | bytes]()
    for rank in range(5000):
        items += decoder.feed(encode(Kind.OUTPUT, rank, 0, b"x" * 2000)[:-5])

    assert decoder.outstanding <= 1024
    assert 5000 == len(items) + len(decoder.close())


def test_a_lost_frame_is_given_up_when_its_rank_goes_on() -> None:
    decoder = Decoder()
    decoder.feed(encode(Kind.OUTPUT, 1, 0, b"lost")[:-2])
    for offset in range(100):
        decoder.feed(encode(Kind.OUTPUT, 1, offset, b"next"))

    assert 0 == decoder.outstanding


def test_text_without_end_streams_through() -> None:
    decoder, size = Decoder(), 0
    for _ in range(100):
        size += sum(len(item) for item in decoder.feed(b"z" * 100_000))
        assert decoder.pending < 10_000

    assert 10_000_000 == size + sum(len(item) for item in decoder.close())


@pytest.mark.parametrize(
    "header",
    [
        b"\x1e12345678.0.o.1.00000000:x\n",
        b"\x1e1.12345678901234567890.o.1.00000000:x\n",
        b"\x1e1.0.o.ffff.00000000:x\n",
        b"\x1e1.0.q.1.00000000:x\n",
        b"\x1e1.0.o.1.000000000:x\n",
    ],
)
def test_a_header_with_numbers_too_long_or_an_unknown_kind_is_no_frame(header: bytes) -> None:
    decoder = Decoder()
    items = decoder.feed(header) + decoder.close()

    assert [] == [item for item in items if isinstance(item, Frame)]


def test_a_changed_byte_anywhere_makes_no_whole_frame() -> None:
    """The CRC covers the header too: two headers cut at once could make a third that fits."""
    raw = encode(Kind.STARTED, 12, 345, b"payload")
    for index in range(1, len(raw) - 1):
        changed = raw[:index] + bytes([raw[index] ^ 1]) + raw[index + 1 :]
        decoder = Decoder()
        items = decoder.feed(changed) + decoder.close()
        assert Frame(Kind.STARTED, 12, 345, b"payload") not in items


def test_a_new_slot_states_no_step_and_only_its_user_may_open_it(tmp_path: Path) -> None:
    path = str(tmp_path / "slot")
    wire.create_slot(path)
    state = wire.read(wire.open_slot(path, writable=False))

    assert state is not None
    assert (None, wire.RankPhase.LAUNCH, 0, 0) == (state.step, state.phase, state.flags, state.pid)
    assert 0o600 == stat.S_IMODE(os.stat(path).st_mode)


def test_what_the_agent_stores_is_read_by_others_and_keeps_the_rest(tmp_path: Path) -> None:
    path = str(tmp_path / "slot")
    wire.create_slot(path)
    ours, theirs = wire.open_slot(path, writable=True), wire.open_slot(path, writable=True)
    wire.introduce(ours, wire.SLOT_FLAG_STACKS)
    wire.ask(theirs, wire.Request.PROFILE, 5)
    wire.store(ours, 2**62, wire.PHASES.index(wire.RankPhase.EVAL))
    state = wire.read(theirs)

    assert state is not None
    assert (2**62, wire.RankPhase.EVAL) == (state.step, state.phase)
    assert (wire.SLOT_FLAG_STACKS, os.getpid()) == (state.flags, state.pid)
    assert (wire.Request.PROFILE, 5) == wire.asked(ours)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, struct.pack("<I", 1)),
        (4, struct.pack("<H", 9)),
        (7, b"\xff"),
        (8, struct.pack("<q", -2)),
    ],
)
def test_what_is_no_slot_of_ours_states_nothing(tmp_path: Path, place: int, value: bytes) -> None:
    path = str(tmp_path / "slot")
    wire.create_slot(path)
    slot = wire.open_slot(path, writable=True)
    slot[place : place + len(value)] = value

    assert wire.read(slot) is None


def test_a_slot_is_made_anew_in_place_of_a_link(tmp_path: Path) -> None:
    """/dev/shm belongs to everybody: a link there must not lead us to another file."""
    other, path = tmp_path / "other", tmp_path / "slot"
    other.write_bytes(b"precious")
    path.symlink_to(other)
    wire.create_slot(str(path))

    assert b"precious" == other.read_bytes()
    assert not path.is_symlink()
