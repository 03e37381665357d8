"""Sums in log space compared with exact sums."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from ramify.structures.log_space import log_matmul
from tests.structures.random_rules import random_dense_rules, random_rules


@pytest.mark.parametrize("spread", [1, 300, 2000])
@pytest.mark.parametrize("shape", [((4, 3), (3, 2)), ((2, 4, 3), (3, 2)), ((2, 4, 3), (2, 3, 2))])
def test_products_of_any_range(spread, shape):
    generator = torch.Generator().manual_seed(spread)
    x, matrix = (torch.randn(each, dtype=torch.float64, generator=generator) * spread for each in shape)
    x[..., 0, 1] = -torch.inf
    found = log_matmul(x, matrix)
    exact = torch.logsumexp(x.unsqueeze(-1) + matrix.unsqueeze(-3), -2)
    torch.testing.assert_close(found, exact, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "low rank"])
def test_the_reference_does_not_underflow(kind):
    """Compared with the same grammar with integer powers of two, summed in exact fractions."""
    sizes = (2, 2) if kind == "dense" else (2, 2, 2)
    pcfg = (random_dense_rules if kind == "dense" else random_rules)(*sizes, [4], seed=3)
    log2 = torch.log(torch.tensor(2.0, dtype=torch.float64))
    powers = {name: (tensor.detach() * 700).round() for name, tensor in pcfg.tensors().items()}
    found = pcfg.replace(**{name: power * log2 for name, power in powers.items()}).log_partition("reference")
    weight = {name: power.long().tolist() for name, power in powers.items()}
    total = _total(kind, weight)
    exponent = total.numerator.bit_length() - total.denominator.bit_length()
    mantissa = float(total / Fraction(2) ** exponent)
    expected = exponent * log2 + torch.log(torch.tensor(mantissa, dtype=torch.float64))
    torch.testing.assert_close(found[0].detach(), expected, rtol=1e-12, atol=1e-9)


def _total(kind: str, weight: dict) -> Fraction:
    n, p, N = 2, 2, 4

    def power(exponent: int) -> Fraction:
        return Fraction(2) ** exponent

    def rule(a: int, b: int, c: int) -> Fraction:
        if kind == "dense":
            return power(weight["binary"][a][b][c])
        parts = (weight["head"][a][d] + weight["left"][b][d] + weight["right"][c][d] for d in range(2))
        return sum(map(power, parts), Fraction(0))

    chart: dict[tuple[int, int], dict[int, Fraction]] = {
        (i, i + 1): {n + t: power(weight["words"][0][i][t]) for t in range(p)} for i in range(N)
    }
    for width in range(2, N + 1):
        for i in range(N - width + 1):
            j = i + width
            chart[i, j] = {
                a: sum(
                    rule(a, b, c) * left * right
                    for k in range(i + 1, j)
                    for b, left in chart[i, k].items()
                    for c, right in chart[k, j].items()
                )
                for a in range(n)
            }
    return sum((power(weight["root"][a]) * inside for a, inside in chart[0, N].items()), Fraction(0))
