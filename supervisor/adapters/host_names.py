"""Which host a name or an address in a log means.

With the hosts of the allocation given, only those count; without, every name that looks like a
host's does, and is remembered. An address that no --ip-map explains is looked up once, and not
waited for longer than a second.
"""

import ipaddress
import re
import socket
import threading
from collections.abc import Mapping, Sequence

from supervisor.wire import canonical_host

_LOOKUP_SECONDS = 1.0
_MOST_LOOKUPS = 16
_HOST_LIKE = re.compile(r"[a-z][a-z0-9-]{0,62}\d[a-z0-9-]{0,62}", re.ASCII)
_NO_HOST = re.compile(  # ranks, devices and interfaces; gpu07 is a host all the same
    r"(?:rank|task|step|epoch|iter|cuda|xpu|hip|v)[-_]?\d+|(?:gpu|mlx|mlx5_|cxi|ib|eth|hsn|nvme)\d"
)


class HostNames:
    """Answers with canonical hosts."""

    def __init__(self, hosts: Sequence[str], addresses: Mapping[str, str]) -> None:
        self._given = frozenset(map(canonical_host, hosts))
        self._addresses = {ip: canonical_host(host) for ip, host in addresses.items()}
        self._lookups = 0
        self._known: dict[str, str | None] = {}
        self.found: dict[str, None] = {}  # without hosts given: those met, in order
        self.outside: dict[str, None] = {}  # with hosts given: others met

    def resolve(self, name: str) -> str | None:
        """The canonical host that a spelled host or an address means; None when it is not ours."""
        if name not in self._known:
            self._known[name] = self._resolved(name)
        host = self._known[name]
        if host is not None and not self._given:
            self.found.setdefault(host)
        return host

    def _resolved(self, name: str) -> str | None:
        if name in self._addresses:
            return self._ours(self._addresses[name])
        if _is_address(name):
            return self._looked_up(name)
        return self._ours(canonical_host(name))

    def _ours(self, host: str) -> str | None:
        like = _HOST_LIKE.fullmatch(host) and not _NO_HOST.fullmatch(host)
        if not self._given:
            return host if like else None
        if host not in self._given and like:
            self.outside.setdefault(host)
        return host if host in self._given else None

    def _looked_up(self, address: str) -> str | None:
        if address in self._given:
            return address
        if self._lookups >= _MOST_LOOKUPS or not self._given:
            return None
        self._lookups += 1
        host = _name_of(address)
        return None if host is None else self._ours(canonical_host(host))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _name_of(address: str) -> str | None:
    """A resolver may take half a minute to say no: ask it beside, and do not wait."""
    answers: list[str] = []

    def ask() -> None:
        try:
            answers.append(socket.gethostbyaddr(address)[0])
        except OSError:
            return

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_LOOKUP_SECONDS)
    return answers[0] if answers else None
