"""Who wrote a line of a merged log, by what stands before it. Owns spellings, believes nothing.

Where shims report, every line has a known source and this is not asked. Logs of jobs that ran
without them have only their tags: "[rank3]: ", "12: ", "[1,5]<stdout>:", "gn11: ", "[gpu-e-001]
", "gpu-d-001:5101:5544 [1] " (NCCL), "x1 kernel: " (syslog). A name is only a spelling: whoever
asks checks it against the allocation.
"""

import re
from typing import NamedTuple

_LONGEST = 400  # bytes of a line in which tags are looked for

_RANK = re.compile(
    rb"\[(?:default\d{1,6}\]:\[)?[Rr]ank ?(\d{1,7})\]|^ {0,6}\[?(\d{1,7})\]?: |^\[(\d{1,7})\] "
    rb"|^\[(?:[\w.-]{1,99}@)?\d{1,4},(\d{1,7})\](?:\[[\w.-]{1,99}:\d{1,9}\])?<std"
    rb"|\brank=(\d{1,7}) |^\[[A-Za-z][\w.-]{0,98}:(\d{1,7})\]:"
)
_KERNEL = re.compile(rb"(?<![A-Za-z] )(?<![\w.-])([\w.-]{1,99}) kernel: ")  # no "CUDA kernel: "
_STEP_DAEMON = re.compile(rb"^ {0,6}\d{1,7}: slurmstepd(?:-[\w.-]{1,99})?: error: \*\*\* ")
_QUOTED = re.compile(rb"^\s{0,8}(?:(?i:prev|previous|old|earlier|last|quoted?|history) ?[|>:]|>) ?")
_NUMBERS = re.compile(rb":\d{1,9}:\d{1,9} \[\d{1,3}\] ")  # cheap to find, and most lines have none
_BEFORE_NUMBERS = re.compile(rb"(?:^|[\s\]])([A-Za-z][\w.-]{0,98})" + _NUMBERS.pattern)
_HOSTS = (
    re.compile(rb"^\[([A-Za-z][\w.-]{0,98})(?::\d{1,9}(?::[\d:]{1,40})?)?\][ :]"),
    re.compile(rb"^\d[\dT:.,Z+-]{4,40} ([A-Za-z][\w.-]{0,98}) "),
    re.compile(rb"^([A-Za-z][\w.-]{0,98}): "),
    re.compile(rb"^slurmstepd-([\w.-]{1,99}): "),
    re.compile(rb"^\[[^\]]{1,120}\]\[([A-Za-z][\w.-]{0,98}):\d{1,9}\]<std"),
)


class Origin(NamedTuple):
    """What the tags of a line say: names as spelled, in order of trust."""

    hosts: tuple[str, ...] = ()
    rank: int | None = None
    kernel: bool = False
    quoted: bool = False  # another log's line, shown again


def origin(line: bytes) -> Origin:
    """Read the tags before a line's message."""
    head = line[:_LONGEST]
    if _QUOTED.match(head):
        return Origin(quoted=True)
    kernel = _KERNEL.search(head) if b" kernel: " in head else None
    if kernel:
        printed_by = _number(head[: kernel.start()])
        return Origin(hosts=(kernel[1].decode("latin-1"),), rank=printed_by, kernel=True)
    found = [pattern.match(head) for pattern in _HOSTS]
    if _NUMBERS.search(head):
        found.insert(0, _BEFORE_NUMBERS.search(head))
    hosts = tuple(hit[1].decode("latin-1") for hit in found if hit)
    return Origin(hosts=hosts, rank=_number(head))


def _number(head: bytes) -> int | None:
    rank = None if _STEP_DAEMON.match(head) else _RANK.search(head)  # srun --label labels it, too
    return next((int(group) for group in rank.groups() if group), None) if rank else None
