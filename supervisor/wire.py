"""What supervisor, shim and agent share: environment variables, host names, frames, the slot.

Standard library only, and few modules of it: the shim imports this on every rank at every start.

Frames. A shim writes its rank's output, and its own reports, to its standard output as lines

    \\x1e RANK . OFFSET . KIND . LENGTH . CRC : PAYLOAD \\n

RANK and OFFSET are decimal, LENGTH and CRC (CRC-32 of the payload as written) hexadecimal. OFFSET is the position of
the payload's first byte in the rank's own output, so that reading a spool twice writes the same bytes to the same
place. LENGTH counts the payload as written: \\x1e, \\n and \\x10 are escaped in it, so a mark always begins a frame and
a frame is always one line. Launchers tear lines where their read buffers end (facts: MPICH 6 of 8,000, srun at 1,024
bytes), and put another rank's bytes between the halves; length and CRC tell the decoder which rest belongs to which
beginning. A frame is at most MAX_FRAME bytes: writes up to PIPE_BUF are atomic, so ranks may share one pipe.

The slot. 64 bytes of node-local shared memory per rank: the agent stores step and phase there and reads requests.
"""

import struct
from enum import StrEnum

RUN_ID = "SUPERVISE_RUN_ID"
RUN_DIR = "SUPERVISE_RUN_DIR"
ATTEMPT = "SUPERVISE_ATTEMPT"
HOST = "SUPERVISE_HOST"
RESUME_FROM = "SUPERVISE_RESUME_FROM"
SLOT = "SUPERVISE_SLOT"  # path of the rank's slot file, set by the shim
LAUNCHER = (
    "SUPERVISE_LAUNCHER"  # the launcher's flavour: tells the shim which variables name the rank
)
ROLE = "SUPERVISE_ROLE"  # "keeper", "virtual-host" or "probe": a sweep leaves these alone
BEAT_SECONDS = "SUPERVISE_BEAT_SECONDS"  # mean time between two heartbeats of a shim

MAX_FRAME = 4096
MARK = 0x1E


class Kind(StrEnum):
    """What a frame carries."""

    OUTPUT = "o"  # bytes of the rank's output
    STARTED = "s"  # JSON: rank, local_rank, world_size, host, pid, at
    BEAT = "b"  # JSON: host, state, step, phase, at
    EXITED = "x"  # JSON: host, exit_code, signal, step, at, size (bytes of output in all)


class RankPhase(StrEnum):
    """What a rank says it is doing; each has its own limit."""

    LAUNCH = "launch"
    INIT = "init"
    LOAD = "load"
    COMPILE = "compile"
    STEP = "step"
    CHECKPOINT = "checkpoint"
    EVAL = "eval"
    EXIT = "exit"


PHASES = tuple(RankPhase)
NO_STEP = -1

# magic, version, phase (index into PHASES), flags, step, monotonic ns of the last store,
# request, request argument, pid of the process that stores
SLOT_LAYOUT = struct.Struct("<IHBBqqIII")
SLOT_FLAG_STACKS = 1  # the process writes its stacks to a file when it gets SIGUSR1
SLOT_SIZE = 64
SLOT_MAGIC = 0x53555056
SLOT_VERSION = 1

_INTERFACE_SUFFIXES = ("-hsn", "-ib", "-eth", "-opa")


def canonical_host(name: str) -> str:
    """One spelling per host: lower case, no domain, no suffix of a network interface.

    An address is left as it is. An unknown suffix is not guessed at.
    """
    name = name.strip().lower()
    if _is_address(name):
        return name
    short = name.split(".", 1)[0]
    for suffix in _INTERFACE_SUFFIXES:
        stem, found, index = short.rpartition(suffix)
        if found and stem and (index.isdigit() or not index):
            return stem
    return short


def _is_address(name: str) -> bool:
    return ":" in name or name.replace(".", "").isdigit()
