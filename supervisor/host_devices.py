"""A host's accelerators: how many its kernel shows, and what it says of them.

Counting reads the kernel's own files and starts nothing. NVIDIA's tool is asked where its driver
is: a device that has left the bus still has its file. Standard library only.
"""

import os
import time

Answer = tuple[str, str, str]

_PASS: Answer = ("pass", "", "")
_DEAD = ("gpu is lost", "unable to determine the device handle", "fallen off the bus")
_FATAL_XIDS = (79, 95, 119, 120)  # off the bus, uncontained ECC, its processor mute: need a reset
_HOUR_US = 3600 * 1_000_000
_AMD = "/sys/class/kfd/kfd/topology/nodes"
_DRM = "/sys/class/drm"


def count_devices() -> int:
    """Accelerators that the kernel shows on this host."""
    nvidia = [name for name in _names("/dev") if name[:6] == "nvidia" and name[6:].isdigit()]
    amd = [node for node in _names(_AMD) if _text(f"{_AMD}/{node}/gpu_id") not in ("", "0")]
    intel = [
        name
        for name in _names(_DRM)
        if name.startswith("renderD") and _text(f"{_DRM}/{name}/device/vendor") == "0x8086"
    ]
    return len(nvidia) or len(amd) or len(intel)


def check_devices() -> Answer:
    """Whether every NVIDIA device answers its driver; other makes are only counted."""
    if not os.path.exists("/dev/nvidiactl"):
        return _PASS
    import subprocess  # only where there is something to ask

    try:
        asked = subprocess.run(
            ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        return "unknown", f"nvidia-smi: {error.strerror}", ""
    return judge_devices(asked.returncode, asked.stdout.decode(errors="replace"))


def judge_devices(exit_code: int, said: str) -> Answer:
    """What the words and the exit code of nvidia-smi mean."""
    for line in said.splitlines():
        if any(words in line.lower() for words in _DEAD):
            return "fail", f"nvidia-smi: {line.strip()[:200]}", ""
    if exit_code:
        return "unknown", f"nvidia-smi left with exit code {exit_code}", ""
    return _PASS


def check_kernel_log() -> Answer:
    """A device that the kernel gave up in the last hour needs a reset; often it may not be read."""
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return _PASS
    now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    try:
        while record := _next_record(descriptor):
            if is_fatal(record, now_us):
                return "fail", f"its kernel says: {record.partition(';')[2].strip()[:200]}", ""
    finally:
        os.close(descriptor)
    return _PASS


def _next_record(descriptor: int) -> str:
    while True:
        try:
            return os.read(descriptor, 8192).decode(errors="replace")
        except BrokenPipeError:  # a record that was overwritten while we read: the next one
            continue
        except OSError:
            return ""


def is_fatal(record: str, now_us: int) -> bool:
    """Whether a record of the kernel log is a device's end, in the last hour."""
    head, _, text = record.partition(";")
    fields = head.split(",")
    if len(fields) < 3 or not fields[2].isdigit() or now_us - int(fields[2]) > _HOUR_US:
        return False
    if not text.startswith("NVRM: Xid ("):
        return False
    number = text.partition("): ")[2].partition(",")[0]
    return number.isdigit() and int(number) in _FATAL_XIDS


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""
