"""`supervise explain LOG...`: why a job died, whom to blame, what to do; from any log."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from supervisor.adapters.explaining import Answer, Question, answer
from supervisor.adapters.hostlist import expand
from supervisor.adapters.log_files import find_logs
from supervisor.adapters.run_facts import RunFacts, facts_of
from supervisor.adapters.signature_files import shipped_folder
from supervisor.adapters.signature_folders import own_folders
from supervisor.cli.bar import Bar
from supervisor.cli.parser import parse_with
from supervisor.cli.values import duration, whole
from supervisor.core import words as telling
from supervisor.core.hindsight import advice
from supervisor.core.signature import Cause
from supervisor.errors import UsageError
from supervisor.wire import canonical_host

_HINT = "hint:  --hosts, --ppn and --ip-map tell which host a rank or an address is"
_LAUNCHERS = ("local", "pals", "hydra", "mpich", "intelmpi", "openmpi", "srun", "torchrun", "none")


def main(words: list[str]) -> int:
    """Print the verdict on a log; 0 whatever it is."""
    options = parse_with(_parser(), words)
    _refuse_contradictions(options)
    if not options.logs:
        raise UsageError("no log: write `supervise explain LOG...`: files, folders of them, or -")
    question = _question(options)
    bar = Bar(sum(log.size for log in question.logs))
    found = answer(question, bar.show, bar.warn)
    bar.clear()
    if options.json:
        print(json.dumps(_fields(found), indent=2))
    else:
        print("\n".join(_told(found, bool(question.hosts))))
    return 0


def _question(options: argparse.Namespace) -> Question:
    known = facts_of(Path(options.logs[0])) if len(options.logs) == 1 else RunFacts()
    return Question(
        logs=find_logs(options.logs),
        folders=(shipped_folder(), *own_folders(options.signatures)),
        hosts=options.hosts or known.hosts,
        addresses=options.ip_map,
        exit_code=known.exit_code if options.exit_code is None else options.exit_code,
        ranks=options.ranks or known.ranks,
        ranks_per_host=options.ppn,
        launcher=options.launcher,
        machine=options.machine,
        elapsed=options.elapsed,
        walltime=options.walltime,
    )


def _fields(found: Answer) -> dict[str, Any]:
    verdict = found.verdict
    return {
        "cause": verdict.cause.value,
        "blame": list(verdict.blame),
        "action": advice(verdict).value,
        "confidence": verdict.confidence.value,
        "why": verdict.why,
        "evidence": [asdict(quote) for quote in verdict.lines],
        "set_aside": [asdict(quote) for quote in verdict.set_aside],
        "hosts": list(found.hosts),
    }


def _told(found: Answer, hosts_given: bool) -> tuple[str, ...]:
    told = telling.explanation(found.verdict, advice(found.verdict))
    if found.verdict.blame or found.verdict.cause is Cause.SUCCESS:
        return told
    if not hosts_given:
        return (*told, _HINT)
    outside = ", ".join(found.outside[:3])
    return (*told, f"note:  the log names {outside}, not of these hosts") if outside else told


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="supervise explain",
        description="Why a job died, whom to blame and what to do, from its logs.",
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser.add_argument(
        "logs",
        nargs="*",
        metavar="LOG",
        help="files, .gz, folders, run folders (their newest attempt), or - ",
    )
    parser.add_argument(
        "--hosts",
        type=_names,
        default=(),
        metavar="H1,H2",
        help="all hosts of the allocation, in rank order: n1,n2 or n[1-3]",
    )
    parser.add_argument("--exit-code", type=int, metavar="N", help="what the launcher ended with")
    parser.add_argument("--launcher", choices=_LAUNCHERS, help="what started the ranks")
    parser.add_argument(
        "--machine", metavar="NAME", help="the cluster, if known by name: ranks per host"
    )
    parser.add_argument("--ranks", type=whole(1), metavar="N", help="the world size")
    parser.add_argument("--ppn", type=whole(1), metavar="N", help="ranks per host")
    parser.add_argument(
        "--ip-map", type=_pairs, default={}, metavar="IP=HOST,..", help="the host of an address"
    )
    parser.add_argument("--elapsed", type=duration, metavar="TIME", help="how long it ran")
    parser.add_argument(
        "--walltime", type=duration, metavar="TIME", help="how long it was allowed to"
    )
    parser.add_argument(
        "--signatures",
        action="append",
        default=[],
        metavar="DIR",
        help="further signature files; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser


def _refuse_contradictions(options: argparse.Namespace) -> None:
    """A guess at what was meant would put a rank on a host that never held it."""
    hosts = len(set(map(canonical_host, options.hosts)))
    room = hosts * (options.ppn or 0)
    if room and (options.ranks or 0) > room:
        held = f"{hosts} hosts with --ppn {options.ppn} hold {room}"
        raise UsageError(f"--ranks {options.ranks}: {held}; mend --hosts, --ppn or --ranks")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.replace(",", " ").split())
    if "[" in text:
        names = _ranges(",".join(names))
    first: dict[str, str] = {}
    for name in names:
        same = first.setdefault(canonical_host(name), name)
        if same.lower() != name.lower():
            said = f"{same} and {name} mean one host here; write each host once"
            raise argparse.ArgumentTypeError(said)
    return names


def _ranges(text: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _pairs(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not address or not host for address, _, host in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of IP=HOST")
    return {address.strip(): host.strip() for address, _, host in pairs}
