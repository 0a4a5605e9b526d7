"""Who wrote a line of a merged log, by the tags that launchers and frameworks put before it."""

import pytest

from supervisor.adapters.line_origin import Origin, origin


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        (b"[rank3]: KeyError: 'lr'", 3),
        (b"[Rank 3] step 12", 3),
        (b"[default3]:[rank11]: KeyError: 'lr'", 11),
        (b"12: KeyError: 'lr'", 12),
        (b"   3: KeyError: 'lr'", 3),
        (b"[3]: KeyError: 'lr'", 3),
        (b"[3] KeyError: 'lr'", 3),
        (b"[1,5]<stdout>:KeyError: 'lr'", 5),
        (b"[1,5]<stderr>: KeyError: 'lr'", 5),
        (b"[prterun-head-991@1,5]<stderr>: KeyError: 'lr'", 5),
        (b"level=error rank=7 msg=lost", 7),
        (b"[gn11:3]: KeyError: 'lr'", 3),
    ],
)
def test_a_tag_tells_the_rank(line: bytes, rank: int) -> None:
    assert rank == origin(line).rank


@pytest.mark.parametrize(
    ("line", "host"),
    [
        (b"gn11: connection lost", "gn11"),
        (b"[gn11] nvidia-smi failed", "gn11"),
        (b"[gn11:5101] *** Process received signal ***", "gn11"),
        (b"gn11:5101:5544 [1] NCCL WARN lost", "gn11"),
        (b"[rank3]: gn11:5101:5544 [1] NCCL WARN lost", "gn11"),
        (b"2026-03-21T02:07:01.4 gn11 [rank3]: KeyError", "gn11"),
        (b"slurmstepd-gn11: error: execve()", "gn11"),
        (b"[prterun-head-991@1,5][gn11:5101]<stderr>: KeyError: 'lr'", "gn11"),
    ],
)
def test_a_tag_tells_the_host(line: bytes, host: str) -> None:
    assert host in origin(line).hosts


def test_tags_of_host_and_rank_are_both_read() -> None:
    found = origin(b"[prterun-head-991@1,5][gn11:5101]<stderr>: KeyError: 'lr'")

    assert (5, True) == (found.rank, "gn11" in found.hosts)


def test_a_kernels_line_is_its_hosts_alone() -> None:
    expected = Origin(hosts=("gn11",), kernel=True)

    assert expected == origin(b"Mar 21 02:07:08 gn11 kernel: NVRM: Xid")
    assert expected._replace(rank=3) == origin(b"[rank3]: gn11 kernel: NVRM: Xid")


@pytest.mark.parametrize(
    "line", [b"> gn11: lost", b"prev| gn11: lost", b"previous: gn11: lost", b"  old> gn11: lost"]
)
def test_a_quoted_line_is_nobodys(line: bytes) -> None:
    assert Origin(quoted=True) == origin(line)


@pytest.mark.parametrize(
    "line", [b"", b"nothing here", b"lr 1e-4: fine", b"10.0.0.1: no", b"previously gn11 was lost"]
)
def test_a_line_without_tags_is_nobodys(line: bytes) -> None:
    assert Origin() == origin(line)


def test_tags_far_out_in_a_line_are_not_read() -> None:
    assert Origin() == origin(b"x" * 500 + b" [rank3]: lost")


def test_a_kernel_of_a_program_is_no_operating_systems() -> None:
    line = b"[rank2]: XlaRuntimeError: INTERNAL: Failed to launch CUDA kernel: fusion_3"

    assert Origin(rank=2) == origin(line)._replace(hosts=())


def test_the_step_daemon_is_no_rank_though_srun_labels_it() -> None:
    line = b"0: slurmstepd: error: *** JOB 9 ON gn11 CANCELLED AT 2026-03-21 DUE TO TIME LIMIT ***"

    assert origin(line).rank is None
    assert 0 == origin(b"0: slurmstepd: error: said the script").rank


def test_an_address_with_a_port_is_no_rank() -> None:
    assert origin(b"slurm_receive_msg [10.0.0.7:51022]: Zero Bytes were transmitted").rank is None
    assert 3 == origin(b"[gn11:3]: step=1").rank
