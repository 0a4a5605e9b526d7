"""The decoder against streams that launchers may make of frames."""

from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.frame_decoder import Decoder
from supervisor.wire import MAX_FRAME, MAX_PAYLOAD, Frame, Kind, encode, frames

pytestmark = pytest.mark.timeout(90)  # hundreds of examples on a loaded machine

_NASTY = st.sampled_from(
    [b"\n", b"\x10", b"\x1e", b"\x1f", b"\x10P", b"\x1e1.", b"a", b"\r\0", b"step"]
)
_PAYLOADS = st.lists(_NASTY, min_size=1, max_size=12).map(b"".join) | st.binary(min_size=1)
_TEXTS = st.binary(max_size=40).map(lambda text: text.replace(b"\x1e", b"") + b"\n")
_KINDS = st.sampled_from(list(Kind))


def decode(stream: bytes, chunk_sizes: Iterable[int]) -> list[Frame | bytes]:
    """Feed a stream in chunks of these sizes, the rest at once."""
    decoder, position, items = Decoder(), 0, list[Frame | bytes]()
    for size in chunk_sizes:
        items += decoder.feed(stream[position : position + size])
        position += size
    return items + decoder.feed(stream[position:]) + decoder.close()


def only_frames(items: Sequence[Frame | bytes]) -> list[Frame]:
    return [item for item in items if isinstance(item, Frame)]


def joined(frames: Iterable[Frame]) -> list[Frame]:
    """Output that follows on as one frame: how much of it the decoder joins is its own affair."""
    out: list[Frame] = []
    for frame in frames:
        last = out[-1] if out else None
        if (
            last is not None
            and (frame.kind, frame.rank) == (last.kind, last.rank) == (Kind.OUTPUT, last.rank)
            and frame.offset == last.offset + len(last.payload)
        ):
            out[-1] = last._replace(payload=last.payload + frame.payload)
        else:
            out.append(frame)
    return out


def counted(frames: Iterable[Frame]) -> Counter[Frame]:
    """The same whatever order they came in."""
    return Counter(joined(sorted(frames, key=lambda frame: (frame.rank, frame.offset))))


def only_text(items: Sequence[Frame | bytes]) -> bytes:
    return b"".join(item for item in items if isinstance(item, bytes))


def _ending(rank: int, index: int) -> bytes:
    """Makes the rests of two frames differ: nobody can tell which of two equal ones is whose."""
    return b"%07d%d\n" % (rank, index)


@st.composite
def rank_streams(draw: st.DrawFn, least_ranks: int = 1) -> list[list[Frame]]:
    """What several ranks send, each in its order."""
    ranks = draw(st.lists(st.integers(0, 9_999_999), min_size=least_ranks, max_size=4, unique=True))
    streams = []
    for rank in ranks:
        offset, sent = draw(st.integers(0, 10**15)), []
        for index, start in enumerate(draw(st.lists(_PAYLOADS, min_size=1, max_size=5))):
            payload = start + _ending(rank, index)
            sent.append(Frame(draw(_KINDS), rank, offset, payload))
            offset += len(payload)
        streams.append(sent)
    return streams


@st.composite
def torn(draw: st.DrawFn, sent: list[Frame], *, headers: bool = True) -> list[bytes]:
    """One rank's stream in the pieces a launcher reads: no frame is cut more than once."""
    pieces, held = [], b""
    for frame in sent:
        raw = encode(*frame)
        first = 1 if headers else raw.index(b":") + 1
        last = len(raw) - len(_ending(0, 0)) - 1
        cut = draw(st.none() | st.integers(first, last) | st.just(len(raw) - 1))
        if cut is None or cut < first:
            held += raw
        else:
            pieces.append(held + raw[:cut])
            held = raw[cut:]
    return [*pieces, held]


@st.composite
def merged(draw: st.DrawFn, sequences: list[list[bytes]]) -> bytes:
    """All sequences in one, each in its own order."""
    order = draw(st.permutations([i for i, pieces in enumerate(sequences) for _ in pieces]))
    iterators = [iter(pieces) for pieces in sequences]
    return b"".join(next(iterators[index]) for index in order)


@given(rank_streams(), st.lists(st.integers(0, 40)))
def test_frames_come_back_the_same_in_any_chunking(
    streams: list[list[Frame]], chunk_sizes: list[int]
) -> None:
    sent = [frame for stream in streams for frame in stream]

    items = decode(b"".join(encode(*frame) for frame in sent), chunk_sizes)

    assert b"" == only_text(items)
    assert joined(sent) == joined(only_frames(items))


@given(st.data())
def test_frames_and_the_launchers_own_lines_come_back_in_order(data: st.DataObject) -> None:
    frames_sent = data.draw(rank_streams())[0]
    texts = data.draw(st.lists(_TEXTS, min_size=len(frames_sent), max_size=len(frames_sent)))
    stream = b"".join(text + encode(*frame) for text, frame in zip(texts, frames_sent, strict=True))
    items = decode(stream, data.draw(st.lists(st.integers(0, 40))))

    assert joined(frames_sent) == joined(only_frames(items))
    assert b"".join(texts) == only_text(items)


@settings(max_examples=300, derandomize=True)  # alike bytes around a cut: frame_decoder.py
@given(st.data())
def test_torn_and_interleaved_streams_are_put_together_again(data: st.DataObject) -> None:
    """MPICH cuts lines where its read buffer ends and puts other lines between the halves."""
    streams = data.draw(rank_streams(least_ranks=2))
    stream = data.draw(merged([data.draw(torn(sent)) for sent in streams]))
    items = decode(stream, data.draw(st.lists(st.integers(0, 200))))

    assert counted(frame for sent in streams for frame in sent) == counted(only_frames(items))
    assert b"" == only_text(items)


@settings(max_examples=300, derandomize=True)  # alike bytes around a cut: frame_decoder.py
@given(st.data())
def test_launcher_lines_between_the_halves_are_told_from_them(data: st.DataObject) -> None:
    streams = data.draw(rank_streams(least_ranks=2))
    texts = data.draw(st.lists(_TEXTS, max_size=3))
    pieces = [data.draw(torn(sent, headers=False)) for sent in streams]
    items = decode(data.draw(merged([*pieces, texts])), [])

    assert counted(frame for sent in streams for frame in sent) == counted(only_frames(items))
    assert Counter(b"".join(texts)) == Counter(only_text(items))


@settings(derandomize=True)
@given(st.data())
def test_a_frame_cut_twice_between_whole_frames_is_put_together_again(data: st.DataObject) -> None:
    twice = Frame(
        Kind.OUTPUT, 7, 0, data.draw(st.binary(min_size=3, max_size=3 * MAX_PAYLOAD // 4))
    )
    raw = encode(*twice)
    first, second = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1), min_size=2, max_size=2)))
    others = [encode(Kind.BEAT, rank, 0, b"{}") for rank in (1, 2)]
    stream = raw[:first] + others[0] + raw[first:second] + others[1] + raw[second:]

    assert [twice] == [frame for frame in only_frames(decode(stream, [])) if frame.rank == 7]


@given(st.lists(st.binary() | st.just(b"\x1e") | _NASTY | st.just(encode(Kind.BEAT, 1, 2, b"x"))))
def test_noise_is_decoded_without_raising_and_alike_in_any_chunking(noise: list[bytes]) -> None:
    stream = b"".join(noise)

    assert decode(stream, []) is not None
    whole, bytewise = decode(stream, []), decode(stream, [1] * len(stream))
    assert joined(only_frames(whole)) == joined(only_frames(bytewise))
    assert only_text(decode(stream, [])) == only_text(decode(stream, [1] * len(stream)))


@given(st.binary(max_size=3 * MAX_FRAME) | st.lists(_NASTY).map(lambda parts: b"".join(parts) * 99))
def test_output_is_cut_into_frames_that_fit_and_lose_nothing(output: bytes) -> None:
    written = list(frames(3, 1000, output))
    items = only_frames(decode(b"".join(written), []))

    assert output == b"".join(frame.payload for frame in items)
    assert all(len(raw) <= MAX_FRAME for raw in written)
    assert [1000 + len(output[: item.offset - 1000]) for item in items] == [i.offset for i in items]


@given(st.integers(0, 9_999_999), st.integers(0, 10**19 - 1), st.data())
def test_the_longest_payload_fits_a_frame_whatever_it_is(
    rank: int, offset: int, data: st.DataObject
) -> None:
    payload = data.draw(st.sampled_from([b"\x10", b"\x1e", b"x", b"\n"])) * MAX_PAYLOAD
    raw = encode(Kind.OUTPUT, rank, offset, payload)

    assert len(raw) <= MAX_FRAME
    assert [Frame(Kind.OUTPUT, rank, offset, payload)] == decode(raw, [])
