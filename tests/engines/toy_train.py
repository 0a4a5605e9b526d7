"""A training loop without torch: ranks agree on every step over TCP, rank 0 saves checkpoints.

The loss is a function of the step alone, so an undisturbed run and a resumed one can be compared.
A rank whose peer dies says what gloo says; one whose peer stops waits, as in a real collective.
"""

import argparse
import json
import os
import signal
import socket
import sys
import threading
import time
import zlib
from pathlib import Path

from supervisor import checkpoint_folder, virtual_host


def main() -> None:
    options = parse()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    resume_from = os.environ.get("SUPERVISE_RESUME_FROM", "")
    start = int(resume_from.rpartition("-")[2]) if resume_from else 0
    host, attempt = os.environ["SUPERVISE_HOST"], os.environ["SUPERVISE_ATTEMPT"]
    print(f"rank {rank}/{world} on {host} attempt {attempt} from step {start}", flush=True)
    if options.chatter and rank == 0:
        threading.Thread(target=chatter, daemon=True).start()
    if options.save_on_term:
        SaveOnTerm.arm(options, rank, world)
    peers = MpiPeers() if options.mpi else Peers(rank, world)
    for step in range(start + 1, options.steps + 1):
        maybe_fail(options, rank, step)
        peers.agree(step)
        time.sleep(options.step_time)
        SaveOnTerm.step = step
        if rank == 0:
            report(options, step)
            if options.ckpt_dir and step % options.save_interval == 0:
                save(Path(options.ckpt_dir), step, world)
    print(f"rank {rank} done", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpi", action="store_true", help="agree by MPI, not by TCP")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--step-time", type=float, default=0.02)
    parser.add_argument("--save-interval", type=int, default=10)
    parser.add_argument("--ckpt-dir", default="")
    parser.add_argument("--loss-file", default="")
    parser.add_argument("--fault", default="")
    parser.add_argument("--fault-rank", type=int, default=-1)
    parser.add_argument("--fault-step", type=int, default=-1)
    parser.add_argument("--fault-attempt", default="1")
    parser.add_argument("--save-on-term", action="store_true", help="SIGTERM: save, then exit 143")
    parser.add_argument("--chatter", action="store_true")
    parser.add_argument("--say", default="")
    return parser.parse_args()


class SaveOnTerm:
    """Rank 0 saves the last step at once; the others leave it the time to."""

    step = 0

    @classmethod
    def arm(cls, options: argparse.Namespace, rank: int, world: int) -> None:
        def save_and_leave(number: int, frame: object) -> None:
            save(Path(options.ckpt_dir), cls.step, world)
            os._exit(143)

        signal.signal(signal.SIGTERM, save_and_leave if rank == 0 else signal.SIG_IGN)


def chatter() -> None:
    while True:
        print("telemetry: all is well", flush=True)
        time.sleep(0.2)


def report(options: argparse.Namespace, step: int) -> None:
    loss = 1.0 / step
    print(f"step={step} loss={loss!r}", flush=True)
    if options.loss_file:
        with open(options.loss_file, "a") as file:
            file.write(json.dumps({"step": step, "loss": loss}) + "\n")


def maybe_fail(options: argparse.Namespace, rank: int, step: int) -> None:
    if step != options.fault_step or os.environ["SUPERVISE_ATTEMPT"] != options.fault_attempt:
        return
    if options.fault_rank not in (-1, rank):
        return
    if options.say:
        print(options.say, flush=True)
    if options.fault:
        FAULTS[options.fault]()


def lose_host() -> None:
    virtual_host.kill_virtual_host(os.environ["SUPERVISE_RUN_ID"], os.environ["SUPERVISE_HOST"])


def suspend_host() -> None:
    virtual_host.suspend_virtual_host(os.environ["SUPERVISE_RUN_ID"], os.environ["SUPERVISE_HOST"])


FAULTS = {
    "keyerror": lambda: {}["targets"],
    "sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "sigsegv": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "sigstop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "sigabrt": os.abort,
    "exit1": lambda: os._exit(1),
    "exit3": lambda: sys.exit(3),
    "host": lose_host,
    "suspend-host": suspend_host,
}


class Peers:
    """All ranks meet at rank 0 once a step."""

    def __init__(self, rank: int, world: int) -> None:
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self._rank, self._sockets = rank, []
        if rank == 0:
            with socket.create_server(address) as server:
                self._sockets = [server.accept()[0] for _ in range(world - 1)]
        else:
            self._sockets = [connect(address)]

    def agree(self, step: int) -> None:
        word = step.to_bytes(8, "big")
        if self._rank:
            self._sockets[0].sendall(word)
            receive(self._sockets[0])
            return
        for peer in self._sockets:
            receive(peer)
        for peer in self._sockets:
            peer.sendall(word)


class MpiPeers:
    """All ranks meet in a barrier; one that leaves without MPI_Finalize keeps the others there."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._world = MPI.COMM_WORLD

    def agree(self, step: int) -> None:
        self._world.Barrier()


def connect(address: tuple[str, int]) -> socket.socket:
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(address)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def receive(peer: socket.socket) -> None:
    name, port = peer.getpeername()[:2]
    try:
        word = peer.recv(8)
    except ConnectionResetError:
        word = b""
    if not word:
        raise RuntimeError(
            "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] "
            f"Connection closed by peer [{name}]:{port}"
        )


def save(folder: Path, step: int, world: int) -> None:
    fresh = folder / f"step-{step:08d}.a{os.environ['SUPERVISE_ATTEMPT']}.tmp"
    final = folder / f"step-{step:08d}"
    if final.exists():
        return
    fresh.mkdir(parents=True)
    data = json.dumps({"step": step}).encode()
    (fresh / "state.json").write_bytes(data)
    files = {"state.json": {"size": len(data), "crc32": zlib.crc32(data)}}
    manifest = {"version": 1, "step": step, "world_size": world, "files": files}
    (fresh / "manifest.json").write_text(json.dumps(manifest))
    fresh.rename(final)
    (final / ".complete").write_text(checkpoint_folder.MARKER_TEXT)


if __name__ == "__main__":
    main()
