"""Clusters known by name: how many ranks a host of theirs takes, one a device.

A device is what a rank drives: a tile of Intel PVC, a die of AMD MI250X, else a GPU. Figures are
those of the centers' own user guides.
"""

from collections.abc import Mapping

RANKS_PER_HOST: Mapping[str, int] = {
    "aurora": 12,
    "sunspot": 12,
    "polaris": 4,
    "perlmutter": 4,
    "frontier": 8,
    "lumi": 8,
    "leonardo": 4,
    "juwels": 4,
    "summit": 6,
}
