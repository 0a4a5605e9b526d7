"""Who says a line and whom it names: only sources that a signature trusts, only hosts of ours."""

import pytest
from job_logs import matcher

from supervisor.adapters.sightings import Piece, Sightings
from supervisor.core.signature import Hit, Role, Source

HOSTS = ("gn11", "gn12")
FELL = "kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=71, GPU has fallen off the bus."
LOST = "srun: error: Node failure on {}"


def _hits(text: str, source: Source | None = None, **more: object) -> list[Hit]:
    def resolve(name: str) -> str | None:
        return name if name in HOSTS else None

    def place(rank: int) -> str | None:
        return HOSTS[rank // 2] if rank < 4 else None

    piece = Piece(
        source=source, rank=None, host=None, first_line=1, lines=f"{text}\n".encode()
    )._replace(**more)
    sightings = Sightings(1, matcher, resolve, place)
    return [event.hit for event in sightings.look([piece], 1.0)]


def _proofs(text: str, source: Source | None = None, **more: object) -> list[Hit]:
    return [hit for hit in _hits(text, source, **more) if hit.role is Role.PROOF]


def test_a_kernels_line_in_a_merged_log_is_its_hosts_word() -> None:
    (hit,) = _hits(f"gn11 {FELL}")

    assert (Source.KERNEL, "gn11") == (hit.source, hit.host)


def test_a_kernels_line_of_another_jobs_host_is_none_of_ours() -> None:
    assert [] == _proofs(f"gn99 {FELL}")


def test_a_quoted_line_of_an_earlier_log_says_nothing() -> None:
    assert [] == _hits(f"prev| gn11 {FELL}")


def test_a_rank_that_prints_a_launchers_line_convicts_nobody() -> None:
    line = LOST.format("gn12")

    assert ["gn12"] == [name for hit in _proofs(line) for name in hit.named]
    assert [] == _proofs(f"[rank3]: {line}")
    assert [] == _proofs(line, Source.RANK, rank=3)


def test_a_launcher_that_names_hosts_of_another_job_says_nothing() -> None:
    assert [] == _proofs(LOST.format("gn99"))


def test_a_list_of_hosts_names_those_of_ours() -> None:
    (hit,) = _proofs(LOST.format("gn[11-13]"))

    assert HOSTS == hit.named


@pytest.mark.parametrize(("rank", "host"), [(0, "gn11"), (3, "gn12"), (4, None)])
def test_a_rank_speaks_from_where_it_is_placed(rank: int, host: str | None) -> None:
    (hit,) = _hits(f"[rank{rank}]: KeyError: 'lr'")

    assert (Source.RANK, rank, host) == (hit.source, hit.rank, hit.host)


def test_a_host_that_a_line_is_tagged_with_counts_more_than_the_place_of_its_rank() -> None:
    """Launchers need not place ranks one host after the other."""
    (hit,) = _hits("gn12: [rank0]: KeyError: 'lr'")

    assert (0, "gn12") == (hit.rank, hit.host)


def test_a_line_in_a_box_is_said_by_the_host_of_the_box() -> None:
    rule = "-" * 74
    box = (
        f"{rule}\nOpen MPI detected a lost peer.\n\n  Local host: gn11\n  Remote host: gn12\n{rule}"
    )

    assert {("gn11", ("gn12",))} == {(hit.host, hit.named) for hit in _hits(box)}
