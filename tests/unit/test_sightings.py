"""Hits of an attempt: what decides is never crowded out."""

from job_logs import matcher

from supervisor.adapters.sightings import Piece, Sightings
from supervisor.core.signature import Source

CASCADE = (
    "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:5\n"
)


def piece(text: str, host: str | None = None) -> Piece:
    source = Source.RANK if host else Source.LAUNCHER
    return Piece(source=source, rank=None, host=host, first_line=1, lines=text.encode())


def test_a_storm_of_consequences_does_not_hide_the_proof() -> None:
    """10,000 hosts complain of their peers before the launcher says which host it lost."""
    sightings = Sightings(1, matcher, lambda name: name)
    sightings.look([piece(CASCADE, f"h{number}") for number in range(2500)], 1.0)
    seen = sightings.look([piece("local: lost host v2\n")], 2.0)

    assert [(event.hit.signature, event.hit.named) for event in seen] == [
        ("local-host-lost", ("v2",))
    ]


def test_more_of_the_same_is_left_out() -> None:
    """One line a second for a day is one fact."""
    sightings = Sightings(1, matcher, lambda name: name)
    seen = sightings.look([piece("local: lost host v2\n" * 100)], 1.0)

    assert len(seen) == 3


def test_a_hit_knows_its_source_and_line() -> None:
    """The lines of many sources are matched as one block and told apart again."""
    sightings = Sightings(1, matcher, lambda name: name)
    pieces = [piece("one\ntwo\n", "h1"), piece(f"three\n{CASCADE}", "h2")]
    (seen,) = sightings.look(pieces, 1.0)

    assert (seen.hit.host, seen.hit.line_number) == ("h2", 2)


def test_a_hit_says_when_its_line_was_there() -> None:
    """The journal tells how long the way from a line to its event was."""
    sightings = Sightings(1, matcher, lambda name: name)
    own = piece("local: lost host v2\n")._replace(written_at=3.0)
    seen = sightings.look([own, piece("local: lost host v3\n")], 5.0, 4.0)

    assert [(3.0, 5.0), (4.0, 5.0)] == [(event.written_at, event.at) for event in seen]
