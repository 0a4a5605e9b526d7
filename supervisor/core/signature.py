"""What an entry of the signature database means, and what a hit is. Matching itself is an
adapter.
"""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """The verdict's category."""

    NODE_HARDWARE = "node_hardware"
    GPU_MEMORY_HW = "gpu_memory_hw"
    NODE_LOST = "node_lost"
    NETWORK = "network"
    HOST_OOM = "host_oom"
    USER_ERROR = "user_error"
    USER_OOM = "user_oom"
    STORAGE = "storage"
    WALLTIME = "walltime"
    PREEMPTED = "preempted"
    LAUNCHER = "launcher"
    ENVIRONMENT = "environment"
    HANG = "hang"
    CASCADE_ONLY = "cascade_only"
    UNKNOWN = "unknown"
    SUCCESS = "success"


class Role(StrEnum):
    """How much a hit may decide."""

    PROOF = "proof"  # decides by itself
    VOTE = "vote"  # needs agreement of reporters on two or more hosts, and a silent target
    CASCADE = "cascade"  # a consequence of a peer's death: never blames, never decides
    NOTICE = "notice"  # informs only


class Source(StrEnum):
    """Who wrote a line. A signature says which sources may say it."""

    LAUNCHER = "launcher"
    RANK = "rank"
    KERNEL = "kernel"
    SCHEDULER = "scheduler"


class Blames(StrEnum):
    """Whom a signature holds responsible."""

    NAMED = "named"  # the host its pattern captures
    REPORTER = "reporter"  # the host the line came from
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One database entry: a pattern and what it means."""

    id: str
    title: str
    cause: Cause
    role: Role
    sources: frozenset[Source]
    blames: Blames
    pattern: str
    fallback: bool = False  # counts only on lines that no other signature hits


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One line matched by one signature, with all that judging it needs."""

    signature: str
    title: str
    cause: Cause
    role: Role
    blames: Blames
    source: Source
    host: str | None  # canonical host the line came from, if known
    rank: int | None
    named: tuple[str, ...]  # canonical hosts the line names
    line: str  # printable, at most 300 characters
    line_number: int  # within its source, from 1
    file: str = ""  # the source's file, as seen from the run folder
    facts: tuple[tuple[str, str], ...] = ()  # what else its pattern captures, by group
