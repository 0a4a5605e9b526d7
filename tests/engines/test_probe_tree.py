"""Many hosts are asked as a tree; who is dead, mute or behind such a branch is asked directly."""

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from supervisor.adapters.probing import ProbeOrder, Way, groups, probe_hosts
from supervisor.core.events import HostProbed

pytestmark = pytest.mark.engine

# In the role of ssh: runs the command here as another host; some are dead, some never answer.
_SSH = """\
#!/bin/sh
host=$1; shift
echo "$host" >> {calls}
case " {dead} " in *" $host "*) echo "ssh: $host: no route" >&2; exit 255;; esac
case " {mute} " in *" $host "*) exec sleep 60;; esac
SUPERVISE_HOST=$host exec sh -c "$*"
"""


def _ask(hosts: Sequence[str], ssh: Path, seconds: float = 30.0) -> dict[str, HostProbed]:
    answers: dict[str, HostProbed] = {}

    async def answered(answer: HostProbed) -> None:
        assert answer.host not in answers
        answers[answer.host] = answer

    def argv_on(host: str, argv: Sequence[str]) -> Sequence[str]:
        return (str(ssh), host, shlex.join(argv))

    order = ProbeOrder(attempt=1, run_id="no-such-run", reap=True, seconds=seconds)
    asyncio.run(probe_hosts(order, hosts, Way(argv_on=argv_on), answered))
    return answers


def _ssh(folder: Path, dead: Sequence[str] = (), mute: Sequence[str] = ()) -> Path:
    path = folder / "ssh"
    words = {"calls": folder / "calls", "dead": " ".join(dead), "mute": " ".join(mute)}
    path.write_text(_SSH.format(**words))
    path.chmod(0o755)
    return path


def test_groups_have_every_host_once() -> None:
    hosts = [f"x{number}" for number in range(1000)]
    parts = groups(hosts)
    assert sorted(hosts) == sorted(host for part in parts for host in part)
    assert 31 == len(parts)
    assert 33 == max(len(part) for part in parts)


@pytest.mark.timeout(240)
def test_two_hundred_hosts_answer_though_branches_are_dead_or_mute(tmp_path: Path) -> None:
    hosts = [f"x{number}" for number in range(200)]
    branches = [part[0] for part in groups(hosts)]
    dead, mute = [branches[0], hosts[-1]], [branches[1], hosts[-20]]
    answers = _ask(hosts, _ssh(tmp_path, dead, mute), seconds=10.0)
    lost = {host for host, answer in answers.items() if answer.answer == "unreachable"}
    assert set(hosts) == set(answers)
    assert {*dead, *mute} == lost
    assert f"ssh: {dead[0]}: no route" == answers[dead[0]].why
    assert "no answer to the probe in 10 s" == answers[mute[0]].why


def test_few_hosts_are_asked_directly_and_once(tmp_path: Path) -> None:
    hosts = ["a", "b", "c"]
    answers = _ask(hosts, _ssh(tmp_path))
    assert dict.fromkeys(hosts, "pass") == {host: its.answer for host, its in answers.items()}
    assert hosts == sorted((tmp_path / "calls").read_text().split())


def test_a_way_that_does_not_exist_is_an_answer(tmp_path: Path) -> None:
    answers = _ask(["a"], tmp_path / "nothing")
    assert "unreachable" == answers["a"].answer
    assert "No such file" in answers["a"].why


def test_a_host_with_fewer_devices_than_its_peers_fails(tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"  # what the probes of three hosts said, one of them a device short
    said = '{"answer": "pass", "devices": %d}'
    ssh.write_text(
        f"#!/bin/sh\ncase $1 in c) echo '{said % 3}';; *) echo '{said % 4}';; esac\nsleep 60\n"
    )
    ssh.chmod(0o755)
    answers = _ask(["a", "b", "c"], ssh)
    assert ["pass", "pass", "fail"] == [answers[host].answer for host in ("a", "b", "c")]
    assert "it has 3 devices, most hosts have 4" == answers["c"].why
