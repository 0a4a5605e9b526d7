"""Plans against golden files: `--dry-run` prints them, so what a launcher is given is on record.

A golden file is written anew when it is deleted; the test then fails once, for a look at the diff.
"""

import dataclasses
import itertools
import shlex
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
from supervisor.errors import SupervisorError, UsageError

GOLDEN = Path(__file__).parent / "golden"
LAUNCHERS = {
    "local": Launcher(flavour="local", program=program_path("local_launcher.py"), version="1"),
    "mpich": Launcher(flavour="mpich", program="/opt/mpich/bin/mpiexec", version="5.0.2"),
    "intelmpi": Launcher(flavour="intelmpi", program="/opt/intel/mpiexec", version="2021.18"),
    "openmpi": Launcher(flavour="openmpi", program="/opt/openmpi/mpiexec", version="5.0.11"),
    "pals": Launcher(flavour="pals", program="/opt/pals/mpiexec", version="1.3.4"),
    "srun": Launcher(flavour="srun", program="/usr/bin/srun", version="22.05.8"),
}
REMOTE = tuple(flavour for flavour in LAUNCHERS if flavour != "local")
ONLY_REAL = ("openmpi", "pals", "srun")  # no virtual hosts
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
ASKED = {"launcher_args": ("--verbose", "a b"), "cpu_bind": "core", "forwarded": ("HF_HOME",)}
CASES = [(flavour, "many-hosts", {}) for flavour in REMOTE]
CASES += [(flavour, "asked", {**ASKED, "root": True}) for flavour in REMOTE]
CASES += [
    (flavour, name, dict(place))
    for flavour in LAUNCHERS
    for name, place in PLACES.items()
    if flavour not in ONLY_REAL
]


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


@pytest.mark.parametrize("flavour", ONLY_REAL)
def test_virtual_hosts_are_refused_where_the_launcher_does_not_reach_them(flavour: str) -> None:
    with pytest.raises(UsageError, match="--virtual-hosts works with the launchers local, mpich"):
        plan(LAUNCHERS[flavour], dataclasses.replace(REQUEST, **VIRTUAL))


WORDS = {  # each launcher's own; none means anything good to another
    "local": {"--ranks-per-host", "--virtual"},
    "mpich": {"-f", "-ppn", "-bind-to", "-iface", "-launcher", "-launcher-exec"},
    "intelmpi": {"-f", "-ppn", "-iface", "-launcher", "-launcher-exec"},
    "openmpi": {"--map-by", "--bind-to", "-x"},
    "pals": {"--ppn", "--cpu-bind"},
    "srun": {
        "--overlap",
        "--nodes",
        "--ntasks",
        "--distribution",
        "--kill-on-bad-exit",
        "--wait",
        "--no-kill",
        "--export",
    }
    | {"--input", "--cpu-bind", "--job-name"},
}
SHARED = {"-n", "--hostfile"}


@pytest.mark.parametrize("flavour", LAUNCHERS)
@pytest.mark.parametrize("hosts", [REQUEST.hosts, ("localhost",)])
def test_no_word_of_one_launcher_reaches_another(flavour: str, hosts: tuple[str, ...]) -> None:
    request = dataclasses.replace(REQUEST, hosts=hosts, cpu_bind="core", root=True)

    planned = plan(LAUNCHERS[flavour], request)

    own = planned.argv[1 : planned.own_words]
    options = {word.partition("=")[0] for word in own if word.startswith("-")} - {"--", "-S", "-I"}
    assert set() == options - WORDS[flavour] - SHARED
    starts = {"I_MPI_": "intelmpi", "OMPI_": "openmpi", "SLURM_": "srun"}
    for name in planned.environment:
        assert starts.get(next((s for s in starts if name.startswith(s)), ""), flavour) == flavour


@pytest.mark.parametrize("flavour", LAUNCHERS)
def test_users_words_stand_before_the_command(flavour: str) -> None:
    request = dataclasses.replace(REQUEST, launcher_args=("--mine", "a b"), shim=False)

    planned = plan(LAUNCHERS[flavour], request)

    own = [word for word in planned.argv[: planned.own_words] if word != "--"]
    assert own[-2:] == ["--mine", "a b"]


def test_open_mpi_is_told_every_variable_that_ranks_need() -> None:
    request = dataclasses.replace(REQUEST, forwarded=("HF_HOME", "PATH"))

    planned = plan(LAUNCHERS["openmpi"], request)

    named = {b for a, b in itertools.pairwise(planned.argv[: planned.own_words]) if a == "-x"}
    assert {*planned.environment, "HF_HOME", "PATH"} == named


def test_slurms_step_never_lives_on_without_a_host_and_never_waits_for_the_dead() -> None:
    argv = plan(LAUNCHERS["srun"], REQUEST).argv

    kill = [word for word in argv if word.startswith(("--no-kill", "-k"))]
    assert ["--no-kill=off"] == kill
    assert {"--kill-on-bad-exit=1", "--wait=0", "--job-name=supervise-r-20-2"} <= set(argv)
    assert "--overlap" in argv  # a step that lost its daemon holds its processors for good


@pytest.mark.parametrize(
    ("spec", "variables"),
    [
        (None, {}),
        ("none", {"I_MPI_PIN": "off"}),
        ("0-3,8", {"I_MPI_PIN_PROCESSOR_LIST": "0-3,8"}),
        ("numa", {"I_MPI_PIN_DOMAIN": "numa"}),
    ],
)
def test_intel_mpi_binds_by_variables(spec: str | None, variables: dict[str, str]) -> None:
    planned = plan(LAUNCHERS["intelmpi"], dataclasses.replace(REQUEST, cpu_bind=spec))

    told = {k: v for k, v in planned.environment.items() if k.startswith("I_MPI_PIN")}
    assert variables == told


AURORA = ("x4102c5s2b0n0.hsn.cm.aurora.alcf.anl.gov", "x4102c5s3b0n0.hsn.cm.aurora.alcf.anl.gov")
POLARIS = ("x3006c0s13b1n0.hsn.cm.polaris.alcf.anl.gov",)
TWELVE = "list:1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100"


@pytest.mark.parametrize(
    ("hosts", "ranks", "asked", "binding"),
    [
        (AURORA, 12, None, TWELVE),
        (AURORA, 2, None, "list:1-51:53-103"),
        (AURORA, 102, None, f"list:{':'.join(str(core) for core in range(104) if core % 52)}"),
        (AURORA, 104, None, None),  # more ranks than cores
        (AURORA, 1, None, None),
        (AURORA, 12, "none", "none"),
        (POLARIS, 4, None, "list:24-31:16-23:8-15:0-7"),
        ((*AURORA, *POLARIS), 4, None, None),
        (("x1001", "aurora.alcf.anl.gov.example.org"), 12, None, None),
    ],
)
def test_pals_gives_each_rank_its_cores_on_the_machines_it_is_known_from(
    hosts: tuple[str, ...], ranks: int, asked: str | None, binding: str | None
) -> None:
    request = dataclasses.replace(REQUEST, hosts=hosts, ranks_per_host=ranks, cpu_bind=asked)

    argv = plan(LAUNCHERS["pals"], request).argv
    told = argv[argv.index("--cpu-bind") + 1] if "--cpu-bind" in argv else None
    assert told == binding


PROBE = ("python", "-m", "probe")


@pytest.mark.parametrize("flavour", ["mpich", "intelmpi", "openmpi"])
def test_one_program_on_one_host_goes_by_ssh_where_the_launcher_does(flavour: str) -> None:
    there = plan_on_host(LAUNCHERS[flavour], "x1002", PROBE, REQUEST)

    assert there[0] == "ssh"
    assert there[-2] == "x1002"
    shell = shlex.split(there[-1])  # as any login shell parts it
    assert shell[:3] == ["exec", "sh", "-c"]
    assert shell[3].endswith("exec env SUPERVISE_RUN_ID=r-20 SUPERVISE_ROLE=probe python -m probe")
    assert "BatchMode=yes" in there
    assert plan_on_host(LAUNCHERS[flavour], "localhost", PROBE, REQUEST) == PROBE


def test_one_program_on_one_host_of_slurm_starts_beside_what_runs_there() -> None:
    there = plan_on_host(LAUNCHERS["srun"], "x1002", PROBE, REQUEST)

    assert {"--overlap", "--nodes=1", "--ntasks=1", "--nodelist=x1002"} <= set(there)
    assert there[-3:] == PROBE


def test_one_program_on_one_host_by_pals_or_here() -> None:
    pals, local = LAUNCHERS["pals"], LAUNCHERS["local"]
    virtual = dataclasses.replace(REQUEST, virtual=True)
    words = ("--hosts", "x1002", "--ppn", "1", "-n", "1")

    assert plan_on_host(pals, "x1002", PROBE, REQUEST) == (pals.program, *words, *PROBE)
    assert plan_on_host(local, "localhost", PROBE, REQUEST) == PROBE
    for launcher in (LAUNCHERS["mpich"], local):
        there = plan_on_host(launcher, "vhost1", PROBE, virtual)
        assert there[-6:] == ("exec", "/runs/r-20", "vhost1", *PROBE)


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
