"""Reads the training step off the lines that common trainers print. Owns spellings, not progress.

Used where the training does not state its step itself. Understood, with or without escapes:

    step=12   step 12   [step 12]   step: 12   global_step=12   iter 12:   iteration  12/   500 |
    Epoch 3:  12%|#2    | 34/280 [      epochs of known length: 3 x 280 + 34 = 874
    Epoch: [3][ 34/280]                 likewise
    epoch 3 step 34/280                 likewise
    {'loss': 0.3, 'epoch': 0.12}        an epoch alone, in millionths: 120000

A number need only rise with progress, and is compared with its own job's alone. Settings and rates
(timestep, n_steps, max_steps, step_size, steps per second) are not steps. A bar without an epoch is
none either: data sets, downloads and checkpoint shards have bars too.
"""

import re
from collections.abc import Callable

from supervisor.adapters.line_text import without_escapes

_MOST_TRIES = 64  # lines with a step word but no step, looked at from the end of a block
_LONGEST = 4096  # bytes of a line that are read
_STEP_WORDS = (b"step", b"iter", b"Step", b"Iter", b"STEP")
_EPOCH_WORDS = (b"poch",)

_STEP = re.compile(
    rb"(?:^|[\s\[({,|>'\"/:_])(?P<word>[Ss]tep|STEP|[Ii]ter|[Ii]teration)\]?['\"]?"
    rb"(?: {0,12}[=:#] {0,12}| {1,12})['\"]?(?P<step>\d{1,15})(?:/ {0,12}(?P<total>\d{1,15}))?"
    rb"(?!\w|%|\.\d|/)(?! ?(?:ms|sec|seconds|it/s|steps|iters)\b)"
)
_WORD_BEFORE = re.compile(rb"(\w{1,40})[\W_]{0,3}$")
_TRAINS = frozenset((b"global", b"train", b"training", b"trainer", b"optimizer", b"opt"))
_NO_STEP = frozenset(
    b"max min total num n no of per every each last final warmup time stop end until target"
    b" eval val valid validation test".split()
)
_BAR = re.compile(
    rb"[Ee]poch[:=]? {0,4}\[?(\d{1,9})(?:/\d{1,9})?\]?"
    rb"(?:[^|]{0,40}\|[^|]{0,400}\| {0,4}| {0,2}\[ {0,9})(\d{1,9})/ {0,9}(\d{1,9})[ \],]"
)
_EPOCH_BEFORE = re.compile(rb"[Ee]poch[ :=]{0,3}\[?(\d{1,9})\b")
_EPOCH = re.compile(rb"['\"]epoch['\"]: {0,2}['\"]?(\d{1,9})(?:\.(\d{1,20}))?['\"]?\s?[,}]")


def latest_step(block: bytes) -> int | None:
    """The last step stated in a block of lines."""
    step = _last(block, _STEP_WORDS, _stated)
    return step if step is not None else _last(block, _EPOCH_WORDS, _epochs)


def _last(
    block: bytes, words: tuple[bytes, ...], read: Callable[[bytes], int | None]
) -> int | None:
    best, value = 0, None
    for word in words:
        end = len(block)
        for _ in range(_MOST_TRIES):
            position = block.rfind(word, best, end)
            if position < 0:
                break
            start, line = _line(block, position)
            step = read(line)
            if step is not None:
                best, value = start, step
                break
            end = start
    return value


def _line(block: bytes, position: int) -> tuple[int, bytes]:
    """The line around a position; a progress bar's line begins at its last carriage return."""
    start = max(block.rfind(b"\n", 0, position), block.rfind(b"\r", 0, position)) + 1
    ends = (block.find(mark, position, start + _LONGEST) for mark in (b"\n", b"\r"))
    end = min((end for end in ends if end >= 0), default=start + _LONGEST)
    return start, without_escapes(block[start:end])


def _stated(line: bytes) -> int | None:
    for found in _STEP.finditer(line):
        if not _is_setting(line, found.start("word")):
            return _with_epoch(line, found)
    return None


def _is_setting(line: bytes, position: int) -> bool:
    """What stands before the word turns it into a setting or a rate: max step, warmup_step."""
    before = _WORD_BEFORE.search(line[max(0, position - 44) : position])
    if before is None:
        return False
    word = before[1].lower().rstrip(b"_").rsplit(b"_", 1)[-1]
    joined = line[position - 1 : position] == b"_"
    return word in _NO_STEP or (joined and word not in _TRAINS)


def _with_epoch(line: bytes, found: re.Match[bytes]) -> int:
    """`epoch 3 step 34/280` counts within the epoch; `epoch 3 step 874` over all."""
    step, total = int(found["step"]), found["total"]
    epoch = _EPOCH_BEFORE.search(line[: found.start()]) if total else None
    return int(epoch[1]) * int(total) + step if epoch else step


def _epochs(line: bytes) -> int | None:
    bar = _BAR.search(line)
    if bar:
        return int(bar[1]) * int(bar[3]) + int(bar[2])
    epoch = _EPOCH.search(line)
    if epoch:
        return int(epoch[1] + (epoch[2] or b"").ljust(6, b"0")[:6])
    return None
