"""Both engines give the same hits: on real logs, and on text made of what signatures look for."""

import importlib.util

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from job_logs import jobs

from supervisor.adapters.matcher import Matcher
from supervisor.adapters.signature_files import SignatureSet, load_signatures, shipped_folder

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hyperscan") is None, reason="hyperscan is not installed"
)


@pytest.fixture(scope="module")
def matchers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Matcher, Matcher]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        shipped = load_signatures([shipped_folder()])
        return Matcher(shipped, engine="plain"), Matcher(shipped, engine="fast")


def hits(matcher: Matcher, block: bytes) -> list[tuple[int, int, str, int, dict[str, bytes]]]:
    found = matcher.match(block)
    return [(one.start, one.end, one.signature.id, one.at, one.captures) for one in found]


def shifted(line_and_shift: tuple[bytes, int]) -> bytes:
    """The line with other digits: the plain engine remembers lines without theirs."""
    line, shift = line_and_shift
    digits = b"0123456789"
    return line.translate(bytes.maketrans(digits, digits[shift:] + digits[:shift]))


def pieces(shipped: SignatureSet) -> st.SearchStrategy[bytes]:
    samples = [sample.line.encode() for entry in shipped.entries for sample in entry.samples]
    misses = [line.encode() for entry in shipped.entries for line in entry.near_misses]
    literals = [entry.literal for entry in shipped.entries]
    glue = [b"\n", b"\n", b"\n", b"\r", b"\r\n", b" ", b"\x1b[31m", b"\x1b[0m", b"[rank3]: ", b"]"]
    return st.one_of(
        st.sampled_from(samples),
        st.tuples(st.sampled_from(samples), st.integers(0, 9)).map(shifted),
        st.sampled_from(misses),
        st.sampled_from(literals),
        st.sampled_from(glue),
        st.binary(max_size=6),
        st.integers(1, 9000).map(lambda length: b"x" * length),
    )


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_engines_agree(matchers: tuple[Matcher, Matcher], data: st.DataObject) -> None:
    plain, fast = matchers
    shipped = SignatureSet(entries=plain._entries, digest="")
    block = b"".join(data.draw(st.lists(pieces(shipped), max_size=25)))

    assert hits(plain, block) == hits(fast, block)


def test_engines_agree_on_every_log_of_a_job(matchers: tuple[Matcher, Matcher]) -> None:
    plain, fast = matchers

    differing = [job.name for job in jobs() if hits(plain, job.text) != hits(fast, job.text)]

    assert len(jobs()) > 400
    assert differing == []


@settings(max_examples=100, deadline=None)
@given(text=st.binary(max_size=400))
def test_no_bytes_raise(matchers: tuple[Matcher, Matcher], text: bytes) -> None:
    for matcher in matchers:
        matcher.match(text)
