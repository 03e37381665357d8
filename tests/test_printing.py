"""Untrusted words are shown with their spelling, without characters that a terminal would interpret."""

from __future__ import annotations

import pytest

from ramify.printing import printable
from tests.command import ramify

PERSIAN, HINDI, HYPHENED = "می\u200cخواهم", "क्\u200dष", "Donau\u00addampf"
SPELLING = f"""
S -> A A [1.0]
A -> '{PERSIAN}' [0.5] | '{HINDI}' [0.3] | '{HYPHENED}' [0.2]
"""


def test_joiners_and_soft_hyphens_are_spelling(tmp_path):
    rules, text = tmp_path / "rules", tmp_path / "text"
    rules.write_text(SPELLING, encoding="utf-8")
    text.write_text(f"{PERSIAN} {HINDI}\n{HYPHENED} {PERSIAN}\n", encoding="utf-8")
    for kind in ("terminal", "markdown", "html"):
        reported = ramify("grammar", "-m", rules, text, "--format", kind)
        assert reported.returncode == 0, reported.stderr
        assert "\ufffd" not in reported.stdout
        assert all(word in reported.stdout for word in (PERSIAN, HINDI, HYPHENED))


@pytest.mark.parametrize("sign", "\0\x1b\n\x9b\ud800\u2028\u2029\u202e\u2066\ufeff\ufff9\ue000\U000e0041\U000e0fff")
def test_control_characters_are_not_printed(sign):
    assert printable(f"a{sign}b") == "a\ufffdb"
    assert printable(f"a{sign}b", instead="") == "ab"


@pytest.mark.parametrize("sign", "é\u00a0\u00ad\u0600\u061c\u200c\u200d\u200f\u3000\U0001f600")
def test_characters_of_words_are_printed(sign):
    assert printable(f"a{sign}b") == f"a{sign}b"
