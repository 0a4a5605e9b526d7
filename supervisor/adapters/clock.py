"""The one place that reads the time: seconds since 1970 that never run backwards.

Wall time, so that a journal means something to a person and to the supervisor that comes after;
carried forward by the monotonic clock, so that a step of the wall clock (NTP, an operator) neither
fires nor hides a timeout.
"""

import time

_BASE = time.time() - time.monotonic()


def now() -> float:
    """Seconds since 1970."""
    return _BASE + time.monotonic()


def wall_offset() -> float:
    """What to add to a time of the wall clock, such as a file's, to have it on this clock."""
    return now() - time.time()
