"""One word per thing: words with a better one stand in no name, flag or sentence of ours.

Regular expressions, byte strings and the samples of signatures quote other programs and are free.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

REPO = Path(__file__).parents[2]

# the word that is never used: the word to use
BANNED = {
    "cycle": "attempt",
    "incarnation": "attempt",
    "respawn": "relaunch",
    "global_rank": "rank",
    "procid": "rank",
    "num_procs": "world size",
    "n_gpus": "world size",
    "standby": "spare",
    "swap_in": "promote",
    "blacklist": "retire",
    "blocklist": "retire",
    "quarantine": "retire",
    "cordon": "retire",
    "evict": "retire",
    "root_cause": "first failure",
    "culprit": "first failure, or blame",
    "failure_mode": "cause",
    "bad_node": "blame",
    "offender": "blame",
    "rc": "exit code",
    "keepalive": "heartbeat",
    "iteration": "step",
    "stuck": "hang",
    "freeze": "hang",
    "slow_node": "straggler",
    "laggard": "straggler",
    "ckpt": "checkpoint",
    "snapshot": "checkpoint",
    "wind_down": "drain",
    "quiesce": "drain",
    "cooldown": "backoff",
    "max_retries": "budget",
    "max_restarts": "budget",
    "goodput": "ETTR",
}
# Names that are not ours to choose.
FOREIGN = re.compile(
    r"SLURM_PROCID|[\"'`]iteration[^\"'`]*[\"'`]|iteration +[0-9]+|--ckpt-dir|\bckpt_dir\b"
    r"|lustre-evicted|Lustre server evicted"
)


_WORDS = {
    word: re.compile(rf"(?<![a-z]){word.replace('_', '[-_ ]?')}(?:s|d|ed|ing)?(?![a-z])", re.ASCII)
    for word in BANNED
}
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PREFIX = re.compile(r"[a-zA-Z]*")


def _said(path: Path) -> Iterator[tuple[int, str]]:
    """What of a file is our own wording, with its line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _python(text)
    elif path.suffix in (".yaml", ".yml"):
        yield from _signatures(text)
    else:
        yield from enumerate(text.splitlines(), 1)


def _python(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        prefix = _PREFIX.match(token.string)
        quotes = token.type == tokenize.STRING and prefix is not None
        if quotes and prefix and set("rRbB") & set(prefix[0]):
            continue
        if quotes or token.type in (tokenize.NAME, tokenize.COMMENT):
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def _signatures(text: str) -> Iterator[tuple[int, str]]:
    for entry in yaml.safe_load(text) or ():
        for key in ("id", "title", "description"):
            yield 1, str(entry.get(key, ""))


def _complaints(lines: Iterator[tuple[int, str]], place: str) -> list[str]:
    found = []
    for number, line in lines:
        plain = _CAMEL.sub("_", FOREIGN.sub("", line)).lower()
        found += [
            f"{place}:{number}: {word}: say {BANNED[word]}"
            for word, pattern in _WORDS.items()
            if pattern.search(plain)
        ]
    return found


def _files() -> list[Path]:
    folders = [*REPO.glob("supervisor/**/*.py"), *REPO.glob("signatures/*.y*ml")]
    return [*folders, *REPO.glob("README.md"), *REPO.glob("CHANGELOG.md")]


def test_no_banned_word_is_used() -> None:
    complaints = [
        complaint
        for path in _files()
        for complaint in _complaints(_said(path), str(path.relative_to(REPO)))
    ]

    assert complaints == []


@pytest.mark.parametrize(
    "line",
    [
        "rc = 1",
        "maxRetries = 3",
        "class BadNode: ...",
        "# the node is stuck",
        "def f():\n    'Hosts are quarantined.'",
        "x = 'the root cause is'",
        "parser.add_argument('--max-restarts')",
        "iterations = 1",
    ],
)
def test_banned_word_would_be_found(line: str) -> None:
    assert _complaints(_python(line), "x") != []


@pytest.mark.parametrize(
    "line",
    [
        "lifecycle = 1",
        r"x = re.compile(r'iteration (\d+)')",
        "x = b'stuck'",
        "name = 'SLURM_PROCID'",
        "@dataclass(frozen=True)\nclass X: ...",
    ],
)
def test_quoted_and_longer_words_are_free(line: str) -> None:
    assert _complaints(_python(line), "x") == []
