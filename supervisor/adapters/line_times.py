"""When a line of a log was written, by the time stamp it begins with. Owns spellings of time.

Only differences count, so years and time zones are left out: a stamp is seconds within a year, or
within a day where no date is given. Understood, after at most a few tags:

    2026-03-21T02:07:08.41   2026-03-21 02:07:08,410   2026/03/21 02:07:08   [2026-03-21 02:07:08]
    E0321 02:07:14.100000 (glog)   [E321 02:07:14.100000 (c10)   Mar 21 02:07:14 (syslog)
    02:07:14.100   [02:07:14]
"""

import re
from dataclasses import dataclass

_HEAD = 160  # bytes of a line in which its stamp is looked for
_LOOK_BACK = 16 * 1024  # a line without a stamp takes that of a line before it
_MONTHS = b"JanFebMarAprMayJunJulAugSepOctNovDec"
_DAYS_A_MONTH = 31  # order is all that matters
_DAY = 86400.0

_CLOCK = rb"(?P<clock>[0-2]\d:[0-5]\d:[0-6]\d(?:[.,]\d{1,9})?)"
_STAMP = re.compile(
    rb"(?:^|[\s\[(|]|\]:)(?:"
    rb"\d{4}[-/](?P<month>[01]\d)[-/](?P<day>[0-3]\d)[T _]"
    rb"|[IWEFD](?P<glog>[01]?\d[0-3]\d) "
    rb"|(?P<name>[A-Z][a-z]{2}) {1,2}(?P<date>\d{1,2}) (?:\d{4} )?"
    rb"|)" + _CLOCK
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Seconds since the year's or (dated False) the day's begin."""

    seconds: float
    dated: bool


def stamp_of(line: bytes) -> Stamp | None:
    """The time a line begins with."""
    found = _STAMP.search(line[:_HEAD])
    if found is None:
        return None
    hour, minute, second = found["clock"].replace(b",", b".").split(b":")
    seconds = int(hour) * 3600 + int(minute) * 60 + float(second)
    day = _day(found)
    return Stamp(seconds=seconds + (day or 0) * _DAY, dated=day is not None)


def stamp_near(block: bytes, start: int, end: int) -> Stamp | None:
    """The time of the line block[start:end], or of the nearest line before it that has one."""
    floor = max(0, start - _LOOK_BACK)
    while True:
        stamp = stamp_of(block[start : min(end, start + _HEAD)])
        if stamp is not None or start <= floor:
            return stamp
        end = start - 1
        ends = (block.rfind(mark, floor, end) + 1 for mark in (b"\n", b"\r"))
        start = max(floor, *ends)


def _day(found: re.Match[bytes]) -> int | None:
    if found["month"]:
        return int(found["month"]) * _DAYS_A_MONTH + int(found["day"])
    if found["glog"]:
        return int(found["glog"][:-2]) * _DAYS_A_MONTH + int(found["glog"][-2:])
    if found["name"] and (month := _MONTHS.find(found["name"])) >= 0:
        return (month // 3 + 1) * _DAYS_A_MONTH + int(found["date"])
    return None
