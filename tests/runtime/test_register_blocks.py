"""Operations on blocks of numbers in registers."""

from __future__ import annotations

import numba
import numpy as np

from ramify.runtime.padding import NARROW_BYTES
from ramify.runtime.register_blocks import load_narrow, power_of_two, store

FLOATS = NARROW_BYTES // 4
"""Numbers in a narrow block"""


@numba.njit  # not cached, because the cache of this file does not depend on what it imports
def _powers(exponents, powers):
    for place in range(0, len(exponents), FLOATS):
        store(powers, place, power_of_two(load_narrow(exponents, place)))


def test_powers_of_two_are_precise_and_vanish_where_no_normal_number_holds_them():
    exponents = np.linspace(-126, 126, 64 * FLOATS, dtype=np.float32)
    too_small = np.linspace(-1000, -126.001, FLOATS, dtype=np.float32)
    too_small[0] = -np.inf
    powers = np.empty(65 * FLOATS, np.float32)
    _powers(np.concatenate([exponents, too_small]), powers)
    np.testing.assert_allclose(powers[: len(exponents)], np.exp2(exponents.astype(np.float64)), rtol=2e-7)
    assert not powers[len(exponents) :].any()
