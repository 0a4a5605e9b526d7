"""Plans against golden files: `--dry-run` prints them, so what a launcher is given is on record.

A golden file is written anew when it is deleted; the test then fails once, for a look at the diff.
"""

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from supervisor.adapters.launchers import (
    Launcher,
    LaunchRequest,
    Plan,
    check_plan,
    plan,
    plan_on_host,
)
from supervisor.adapters.launchers.values import program_path
from supervisor.errors import SupervisorError

GOLDEN = Path(__file__).parent / "golden"
LAUNCHERS = {
    "local": Launcher(flavour="local", program=program_path("local_launcher.py"), version="1"),
    "mpich": Launcher(flavour="mpich", program="/opt/mpich/bin/mpiexec", version="5.0.2"),
}
REQUEST = LaunchRequest(
    hosts=("x1001", "x1002", "x1004"),
    ranks_per_host=4,
    command=("python", "train.py", "--layers", "2"),
    run_id="r-20",
    run_dir=Path("/runs/r-20"),
    attempt_dir=Path("/runs/r-20/attempts/002"),
    attempt=2,
    resume_from="/checkpoints/step-00000120",
    virtual=False,
    shim=True,
    beat_seconds=2.5,
    master_port=29511,
)
VIRTUAL = {"virtual": True, "hosts": ("vhost1", "vhost3")}
PLACES: Mapping[str, Mapping[str, object]] = {
    "virtual": VIRTUAL,
    "this-machine": {"hosts": ("localhost",)},
    "no-shim": {**VIRTUAL, "shim": False, "resume_from": ""},
}
CASES = [("mpich", "many-hosts", {})]
CASES += [(flavour, name, dict(place)) for flavour in LAUNCHERS for name, place in PLACES.items()]


def as_text(planned: Plan) -> str:
    """A plan as a person reads it, the same on every machine."""
    words = "\n".join(planned.argv)
    variables = "\n".join(f"{key}={value}" for key, value in sorted(planned.environment.items()))
    text = f"{words}\n\n{variables}\n\n{planned.hostfile_path}:\n{planned.hostfile}"
    package = str(Path(program_path("x")).parent)
    return text.replace(sys.executable, "PYTHON").replace(package, "PACKAGE")


@pytest.mark.parametrize(
    ("flavour", "name", "change"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES]
)
def test_plan_is_the_one_on_record(flavour: str, name: str, change: dict[str, object]) -> None:
    golden = GOLDEN / f"plan-{flavour}-{name}.txt"
    request = dataclasses.replace(REQUEST, **change)

    text = as_text(plan(LAUNCHERS[flavour], request))

    if not golden.exists():
        golden.write_text(text)
        pytest.fail(f"{golden} was missing and has been written")
    assert golden.read_text() == text


@pytest.mark.parametrize("flavour", LAUNCHERS)
def test_command_is_the_end_of_argv_unchanged(flavour: str) -> None:
    request = dataclasses.replace(REQUEST, shim=False, command=("-n", "--", "a b", ""))

    planned = plan(LAUNCHERS[flavour], request)

    assert planned.argv[planned.own_words :] == ("-n", "--", "a b", "")


def test_lone_colon_does_not_begin_another_program_under_hydra() -> None:
    """Hydra read `mpiexec -n 2 echo a : b` as two programs, and started both."""
    request = dataclasses.replace(REQUEST, shim=False, command=("echo", ":", "it's"))

    argv = plan(LAUNCHERS["mpich"], request).argv

    assert argv[-3:] == ("/bin/sh", "-c", "exec echo : 'it'\"'\"'s'")


def test_one_program_on_one_host() -> None:
    probe = ("python", "-m", "probe")
    mpich, local = LAUNCHERS["mpich"], LAUNCHERS["local"]
    virtual = dataclasses.replace(REQUEST, virtual=True)
    words = ("-hosts", "x1002", "-ppn", "1", "-n", "1")

    assert plan_on_host(mpich, "x1002", probe, REQUEST) == (mpich.program, *words, *probe)
    assert plan_on_host(mpich, "localhost", probe, REQUEST) == probe
    assert plan_on_host(local, "localhost", probe, REQUEST) == probe
    for launcher in (mpich, local):
        there = plan_on_host(launcher, "vhost1", probe, virtual)
        assert there[-6:] == ("exec", "/runs/r-20", "vhost1", *probe)


@pytest.mark.parametrize("flavour", LAUNCHERS)
@pytest.mark.parametrize("name", ["x1002", "X1002-hsn0", "x1002.cm.cluster"])
def test_plan_that_names_a_retired_host_is_refused(flavour: str, name: str) -> None:
    planned = plan(LAUNCHERS[flavour], REQUEST)

    with pytest.raises(SupervisorError, match="retired host x1002 in its hostfile"):
        check_plan(planned, [name])


def test_retired_host_as_master_or_as_an_option_is_refused() -> None:
    planned = plan(LAUNCHERS["mpich"], REQUEST)

    first = dataclasses.replace(planned, hostfile="")
    with pytest.raises(SupervisorError, match="x1001 in its environment: MASTER_ADDR"):
        check_plan(first, ["x1001"])
    option = dataclasses.replace(first, argv=("mpiexec", "-hosts", "x7:2,x9"), own_words=3)
    with pytest.raises(SupervisorError, match="x7:2 in its argv"):
        check_plan(option, ["x7"])


def test_host_in_the_users_own_words_or_in_a_path_is_not_the_plans() -> None:
    request = dataclasses.replace(REQUEST, command=("train", "--data-host", "x1003"))
    planned = plan(LAUNCHERS["mpich"], dataclasses.replace(request, run_dir=Path("/x1003/run")))

    assert check_plan(planned, ["x1003", "x1", "x10011"]) is None
