"""Sentences without a parse: the reasons, how many there are, and which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

Failure = Literal["no derivation", "too long", "constraints"]
"""Why a sentence of two words or more has no parse: the grammar cannot derive it, it is longer than the limit or
than the free memory allows, or no tree of the grammar meets its constraints"""

MAX_NAMED = 5
"""Maximum number of sentences listed for each reason"""


def group_by_reason(failures: Iterable[Failure | None], names: Iterable[int]) -> dict[str, tuple[int, ...]]:
    """The names of the sentences without a parse, by reason."""
    found: dict[str, list[int]] = {}
    for failure, name in zip(failures, names, strict=True):
        if failure is not None:
            found.setdefault(failure, []).append(name)
    return {reason: tuple(of) for reason, of in found.items()}


def describe_failures(counts: Mapping[str, int], named: Mapping[str, Sequence[object]], sentences: int) -> str:
    """Lines such as `2 of 100 sentences have no parse: no derivation 2 (line 4; line 9).`"""
    reasons = []
    for reason, count in counts.items():
        names = "; ".join(map(str, named[reason][:MAX_NAMED]))
        more = "; ..." if count > len(named[reason][:MAX_NAMED]) and names else ""
        reasons.append(f"{reason} {count:,}" + (f" ({names}{more})" if names else ""))
    failed = sum(counts.values())
    verb = "has" if failed == 1 else "have"
    return f"{failed:,} of {sentences:,} sentence{'s' * (sentences != 1)} {verb} no parse: {', '.join(reasons)}."


def describe_log_space(sentences: int) -> str:
    """A line that reports underflow."""
    return f"Sentences computed in log space because of underflow in float32: {sentences:,}."
