"""What the values of options mean: whole numbers with a least one, durations, `auto`."""

import argparse
import re
from collections.abc import Callable


def whole(least: int) -> Callable[[str], int]:
    """A converter of whole numbers not under a least one."""

    def convert(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", text, re.ASCII):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text}: must be at least {least}")
        return int(text)

    return convert


def whole_or_auto(text: str) -> int | str:
    """A number of spares, or `auto`."""
    return text if text == "auto" else whole(0)(text)


def duration(text: str) -> float:
    """Seconds of `90`, `90s`, `30m`, `2h`, `1d`, `30:00` or `1:30:00`."""
    if unit := re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]+)?)([smhd]?)", text, re.ASCII):
        return float(unit[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[unit[2]]
    if clock := re.fullmatch(r"(?:([0-9]{1,6}):)?([0-9]{1,2}):([0-9]{2})", text, re.ASCII):
        return int(clock[1] or 0) * 3600.0 + int(clock[2]) * 60 + int(clock[3])
    raise argparse.ArgumentTypeError(f"{text!r} is no duration: write 90, 90s, 30m, 2h or 1:30:00")


def limit(text: str) -> float:
    """A duration that is more than nothing."""
    if not (seconds := duration(text)):
        raise argparse.ArgumentTypeError(f"{text}: must be more than 0")
    return seconds
