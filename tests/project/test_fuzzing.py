"""Every reader with arbitrary bytes; `fuzz/fuzz_readers.py` does the same without a time limit."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.cases import ENCODINGS, HUGE, PIECES
from fuzz.checks import CHECKS

pytestmark = pytest.mark.slow
pieces = st.tuples(st.sampled_from(PIECES) | st.text(max_size=3), st.sampled_from(ENCODINGS))
mixed = st.lists(pieces, max_size=20).map(lambda parts: b"".join(text.encode(to, "replace") for text, to in parts))
plain = st.lists(st.sampled_from(PIECES), max_size=30).map(lambda parts: "".join(parts).encode())
anything = st.binary(max_size=60) | mixed | plain


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzing")


@pytest.mark.parametrize("check", CHECKS)
def test_any_bytes_are_read_or_refused(scratch: Path, check: str) -> None:
    @settings(max_examples=150)
    @given(anything)
    def run(data: bytes) -> None:
        CHECKS[check](data, scratch)

    run()


@pytest.mark.parametrize("case", HUGE)
def test_huge_inputs_are_read_or_refused(scratch: Path, case: str) -> None:
    data = HUGE[case]()
    for check in CHECKS.values():
        check(data, scratch)
