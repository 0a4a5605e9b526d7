"""What a launcher means by the code it leaves with, in words; measured on the real ones.

A launcher's code proves nothing about the ranks: these words go beside the verdict, never into it.
"""

import signal
from collections.abc import Mapping

from supervisor.adapters.launchers import intelmpi, mpich, openmpi, pals, srun

_SIGNALS_FROM = 128  # as shells count: 137 is signal 9
_HYDRA = {255: "a rank died of a signal, or a host could not be reached or was lost"}
_WORDS: Mapping[str, Mapping[int, str]] = {
    mpich.FLAVOUR: _HYDRA,
    intelmpi.FLAVOUR: _HYDRA,
    openmpi.FLAVOUR: {
        14: "a rank called MPI_Abort, or lost its connection to another",
        110: "the time limit given to the launcher is over",
        131: "the command cannot be executed on a host",
        132: "the command was not found on a host",
        183: "the command was not found on a host",
        205: "the launcher lost its daemon on a host",
        213: "the launcher found no network interface to use",
        241: "the time limit given to the launcher is over",
        255: "the launcher lost a host, or could not reach one",
    },
    pals.FLAVOUR: {},
    srun.FLAVOUR: {2: "the command was not found on a host, or it left with 2"},
}
_BARE_SIGNALS = (mpich.FLAVOUR, intelmpi.FLAVOUR)  # on one host Hydra leaves with the bare number
_DEADLY = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGTERM)


def meaning(flavour: str, exit_code: int | None) -> str:
    """What this code of this launcher says, or nothing when it is any command's own."""
    if exit_code is None or flavour not in _WORDS:
        return ""
    said = _WORDS[flavour].get(exit_code)
    if said is not None:
        return said
    name = _signal_name(exit_code - _SIGNALS_FROM)
    if name:
        return f"a rank was ended by {name}"
    if flavour in _BARE_SIGNALS and exit_code in _DEADLY:
        return f"a rank left with {exit_code}, or was ended by {_signal_name(exit_code)}"
    return ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
