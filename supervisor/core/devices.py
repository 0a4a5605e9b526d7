"""A host that has fewer accelerators than most: alone it cannot know, beside others it shows."""

from collections import Counter
from collections.abc import Mapping


def short_of_devices(counts: Mapping[str, int]) -> dict[str, int]:
    """Hosts with fewer devices than more than half of all hosts have, and how many those have."""
    if not counts:
        return {}
    usual, hosts = Counter(counts.values()).most_common(1)[0]
    if 2 * hosts <= len(counts) or hosts < 2:
        return {}
    return {host: usual for host, count in counts.items() if count < usual}
