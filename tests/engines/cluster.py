"""A cluster on this machine: a head and nodes in namespaces of their own, joined by a bridge.

Each node has its own host name, network, process tree and shared memory; its first process is a
real sshd. So a host can die as hosts do, and nothing of the machine itself is changed. The bridge
lies in the head's namespace: clusters never meet. All ends with the process that made it.
"""

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from engines.launchers import found, missing

_NET = "10.99.0"
_HEAD = 100  # its number in the network
_WAIT_SECONDS = 20.0
_NEEDED = ("ip", "sshd", "ssh", "ssh-keygen", "nsenter", "unshare", "setpriv")
_SCRIPT = """
set -eu
hostname "$1"; mkdir -p /run/sshd "$3/.ssh"
mount --bind "$2/hosts" /etc/hosts; mount --bind "$2/ssh" "$3/.ssh"
ip link set lo up
"""
_HEAD_SCRIPT = f"""{_SCRIPT}
ip link add br0 type bridge; ip addr add {_NET}.{_HEAD}/24 dev br0; ip link set br0 up
echo up; exec sleep infinity
"""
_NODE_SCRIPT = f"""{_SCRIPT}
mount -t tmpfs tmpfs /dev/shm
echo up; read -r _
exec "$4" -D -e -f "$2/sshd_config" >/dev/null
"""
_SSH = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
_SSHD = """Port 22
HostKey {folder}/hostkey
AuthorizedKeysFile {folder}/ssh/authorized_keys
PermitRootLogin yes
UsePAM no
StrictModes no
PidFile none
PrintMotd no
UseDNS no
MaxStartups 100
SetEnv TMPDIR=/dev/shm
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One that runs on a host."""

    pid: int  # as this machine counts
    environ: Mapping[str, str]
    command: Sequence[str]


@dataclass(kw_only=True)
class _Host:
    outer: "subprocess.Popen[bytes]"  # ends with us, and its namespaces with it
    pid: int  # the first process inside
    space: str  # the namespace that tells what runs there


@dataclass(kw_only=True)
class Cluster:
    """A head and its nodes `node1`, `node2`, ...; faults are methods."""

    folder: Path
    nodes: tuple[str, ...] = ()
    _hosts: dict[str, _Host] = field(default_factory=dict)
    _hurt: set[str] = field(default_factory=set)

    def up(self, count: int) -> None:
        """Make the head, and as many nodes."""
        self.nodes = tuple(f"node{number}" for number in range(1, count + 1))
        self._write_files()
        self._hosts["head"] = self._started("head", ["--net", "--uts", "--mount"], _HEAD_SCRIPT)
        for node in self.nodes:
            self.boot(node)

    def down(self) -> None:
        """End everything, whatever state it is in."""
        for process in [each for host in self._hosts for each in self.processes(host)]:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        for host in self._hosts.values():
            host.outer.kill()
            host.outer.wait()
        self._hosts.clear()

    def head(self, argv: Sequence[str], **popen: Any) -> "subprocess.Popen[bytes]":
        """Start a program on the head."""
        return self._enter("head", [], argv, popen)

    def on(self, node: str, argv: Sequence[str], **popen: Any) -> "subprocess.Popen[bytes]":
        """Start a program on a node."""
        return self._enter(node, ["-p"], argv, popen)

    def boot(self, node: str) -> None:
        """Bring a node up, if it is down, with nothing running on it but sshd."""
        if node in self._hosts:
            return
        self._hosts[node] = host = self._started(node, ["--net", "--uts", "--mount", "--pid"])
        number, here = int(node.removeprefix("node")), str(self._hosts["head"].pid)
        # A dead node's link lives on, as long as its unsent last words are tried again.
        with suppress(subprocess.CalledProcessError):
            self._ip("head", f"link del v{number}")
        _run("ip", "link", "add", f"v{number}", "netns", here, "type", "veth",
             "peer", "name", "eth0", "netns", str(host.pid))  # fmt: skip
        self._ip(
            "head", f"link set v{number} master br0", f"link set v{number} up", "neigh flush all"
        )
        mac = f"02:00:00:00:00:{number:02x}"  # as before, or the others' ARP is stale
        address = f"addr add {_NET}.{number}/24 dev eth0"
        self._ip(node, f"link set eth0 address {mac}", address, "link set eth0 up")
        assert host.outer.stdin is not None
        host.outer.stdin.write(b"go\n")
        host.outer.stdin.close()
        _wait(lambda: b"listening on" in self._log(node).read_bytes(), f"sshd of {node}")

    def kill(self, node: str) -> None:
        """All its processes die at once; the kernel still closes their connections."""
        host = self._hosts.pop(node)
        os.kill(host.pid, signal.SIGKILL)
        host.outer.wait()

    def lose_power(self, node: str) -> None:
        """It is gone without a word to anybody."""
        self.cut(node)
        self.kill(node)

    def cut(self, node: str) -> None:
        """Nothing reaches it, and it reaches nobody."""
        self._hurt.add(node)
        self._ip("head", f"link set {node.replace('node', 'v')} down")

    def join(self, node: str) -> None:
        """Undo the cut."""
        self._ip("head", f"link set {node.replace('node', 'v')} up", "neigh flush all")

    def stop(self, node: str) -> None:
        """Freeze all that runs there, as a kernel in trouble does; TCP still answers."""
        self._hurt.add(node)
        seen: set[int] = set()
        while fresh := {process.pid for process in self.processes(node)} - seen:
            seen |= fresh
            self._signal(fresh, signal.SIGSTOP)

    def cont(self, node: str) -> None:
        """Let it go on."""
        self._signal({process.pid for process in self.processes(node)}, signal.SIGCONT)

    def processes(self, host: str) -> list[Process]:
        """What runs on a host, its sshd included."""
        return list(self._running_on(self._hosts[host])) if host in self._hosts else []

    def left_of(self, run_id: str) -> dict[str, list[Sequence[str]]]:
        """What still runs of a run on the nodes, by node."""
        left = {
            node: [
                process.command
                for process in self.processes(node)
                if process.environ.get("SUPERVISE_RUN_ID") == run_id
            ]
            for node in self.nodes
        }
        return {node: commands for node, commands in left.items() if commands}

    def hide(self, node: str, folder: Path) -> None:
        """A folder of the shared file system is empty on this node."""
        self._hurt.add(node)
        where = ("nsenter", "-t", str(self._hosts[node].pid), "-m")
        _run(*where, "mount", "-t", "tmpfs", "tmpfs", str(folder))

    def repair(self) -> None:
        """Make every node as after its boot."""
        for node in self.nodes:
            if node in self._hosts and (node in self._hurt or len(self.processes(node)) > 1):
                self.kill(node)
            self.boot(node)
        self._hurt.clear()

    def _write_files(self) -> None:
        ssh = self.folder / "ssh"
        ssh.mkdir(parents=True, mode=0o700)
        for path in (ssh / "id_ed25519", self.folder / "hostkey"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))
        (ssh / "authorized_keys").write_bytes((ssh / "id_ed25519.pub").read_bytes())
        (ssh / "config").write_text(_SSH)
        (self.folder / "sshd_config").write_text(_SSHD.format(folder=self.folder))
        names = [(_HEAD, "head"), *enumerate(self.nodes, 1)]
        lines = [f"{_NET}.{number} {name}\n" for number, name in names]
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))

    def _started(self, name: str, spaces: list[str], script: str = _NODE_SCRIPT) -> _Host:
        inside = ["--fork", "--kill-child", "--mount-proc"] if "--pid" in spaces else []
        argv = ["setpriv", "--pdeathsig", "KILL", "unshare", *spaces, *inside]
        argv += ["--propagation", "private", "bash", "-c", script, "_", name, str(self.folder)]
        argv += [pwd.getpwuid(os.getuid()).pw_dir, str(found("sshd"))]
        with self._log(name).open("wb") as log:
            outer = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if inside else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert outer.stdout is not None
        with outer.stdout as said:
            assert said.readline() == b"up\n", self._log(name).read_text()
        pid = psutil.Process(outer.pid).children()[0].pid if inside else outer.pid
        return _Host(outer=outer, pid=pid, space="pid" if inside else "net")

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _enter(
        self, host: str, more: list[str], argv: Sequence[str], popen: dict[str, Any]
    ) -> "subprocess.Popen[bytes]":
        folder = popen.pop("cwd", os.getcwd())
        words = ["nsenter", "-t", str(self._hosts[host].pid), "-n", "-u", "-m", *more]
        return subprocess.Popen([*words, f"--wd={folder}", *argv], **popen)

    def _ip(self, host: str, *commands: str) -> str:
        entered = ("nsenter", "-t", str(self._hosts[host].pid), "-n", "ip")
        return "".join(_run(*entered, *command.split()) for command in commands)

    def _running_on(self, host: _Host) -> Iterator[Process]:
        with suppress(OSError):
            space = os.readlink(f"/proc/{host.pid}/ns/{host.space}")
            for pid in psutil.pids():
                with suppress(OSError, psutil.Error):
                    if os.readlink(f"/proc/{pid}/ns/{host.space}") == space:
                        process = psutil.Process(pid)
                        environ, command = process.environ(), process.cmdline()
                        yield Process(pid=pid, environ=environ, command=command)

    @staticmethod
    def _signal(pids: set[int], number: signal.Signals) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def needed() -> None:
    """Skip a test where no cluster can be had, or fail it in CI."""
    if os.getuid() != 0:
        missing("a cluster of namespaces takes root")
    absent = [program for program in _NEEDED if found(program) is None]
    if absent:
        missing(f"a cluster of namespaces needs {', '.join(absent)}")


def _run(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, check=True, text=True, timeout=20).stdout


def _wait(condition: Any, what: str) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come up"
        time.sleep(0.02)
