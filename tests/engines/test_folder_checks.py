"""The probe's look at a folder, on real file systems that are full or may only be read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from engines.cluster import needed

pytestmark = [pytest.mark.engine, pytest.mark.timeout(60)]

# In a mount namespace of its own, which ends with it.
ON_A_MOUNT = """
set -e
mount -t tmpfs -o size=64k none "$1"
eval "$2"
exec "$3" -c 'import json, sys
from supervisor.host_checks import check_folder
print(json.dumps(check_folder(sys.argv[1])))' "$1"
"""


def answer(folder: Path, prepare: str) -> list[str]:
    needed()
    line = ["unshare", "--mount", "sh", "-c", ON_A_MOUNT, "sh", str(folder), prepare]
    told = subprocess.run(
        [*line, sys.executable], capture_output=True, text=True, check=True, timeout=30
    )
    return list(json.loads(told.stdout.splitlines()[-1]))


def test_a_folder_with_room_passes(tmp_path: Path) -> None:
    assert "pass" == answer(tmp_path, "true")[0]


def test_a_full_file_system_is_storage_and_no_host_s_fault(tmp_path: Path) -> None:
    verdict, why, cause = answer(tmp_path, 'dd if=/dev/zero of="$1/filler" 2>/dev/null || true')

    assert ("fail", "storage") == (verdict, cause)
    assert os.strerror(28) in why
    assert str(tmp_path) in why


def test_a_read_only_mount_fails_with_its_reason(tmp_path: Path) -> None:
    verdict, why, _ = answer(tmp_path, 'mount -o remount,ro "$1"')

    assert "fail" == verdict
    assert os.strerror(30) in why
    assert str(tmp_path) in why
