"""Blocks of numbers that compiled loops hold in registers.

By default the compiler loads and stores a row of sums again for every few rows that are added to it, checks at each
call whether rows overlap, and processes the numbers after the last full register one by one. A block is an LLVM vector
of 256 bytes: it fills a few registers of any machine, is loaded and stored once, and leaves no remainder where rows are
padded to whole blocks (padding.py).
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"
# ruff: noqa: ARG001 (numba passes these arguments by name or place, whether or not they are needed)

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.extending import models, register_model

from ramify.runtime.padding import BLOCK_BYTES, NARROW_BYTES

_FLAGS = ("reassoc", "contract", "nsz", "arcp")  # as in compilation.py


def intrinsic(function: Any) -> Any:
    """A function of compiled code that is defined by its LLVM instructions."""
    return extending.intrinsic(function)


class Block(types.Type):
    """The type of a block in compiled code."""

    def __init__(self, dtype: Any, size_in_bytes: int = BLOCK_BYTES) -> None:
        self.dtype, self.size = dtype, size_in_bytes * 8 // dtype.bitwidth
        super().__init__(name=f"Block({dtype}, {self.size})")


@register_model(Block)
class _BlockModel(models.PrimitiveModel):
    def __init__(self, manager, block):
        number = ir.FloatType() if block.dtype is types.float32 else ir.DoubleType()
        super().__init__(manager, block, ir.VectorType(number, block.size))


def _place(context, builder, block, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    vector = context.get_value_type(block)
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer()), array_type.dtype.bitwidth // 8


@intrinsic
def block_size(typing_context, array):
    """The number of numbers of the array's type in a block."""
    size = Block(array.dtype).size

    def generate(context, builder, signature, arguments):
        return ir.Constant(ir.IntType(64), size)

    return types.int64(array), generate


def _load(block, array):
    def generate(context, builder, signature, arguments):
        place, alignment = _place(context, builder, block, signature.args[0], *arguments)
        return builder.load(place, align=alignment)

    return block(array, types.int64), generate


@intrinsic
def load(typing_context, array, index):
    """The block of a contiguous array that begins at an index, which counts through all dimensions."""
    return _load(Block(array.dtype), array)


@intrinsic
def load_narrow(typing_context, array, index):
    """The same for a block of a quarter of the size."""
    return _load(Block(array.dtype, NARROW_BYTES), array)


@intrinsic
def store(typing_context, array, index, block):
    """Write a block into a contiguous array."""

    def generate(context, builder, signature, arguments):
        place, alignment = _place(context, builder, signature.args[2], signature.args[0], *arguments[:2])
        builder.store(arguments[2], place, align=alignment)
        return context.get_dummy_value()

    return types.void(array, types.int64, block), generate


@intrinsic
def filled(typing_context, number):
    """A block of one number."""

    def generate(context, builder, signature, arguments):
        return everywhere(builder, context.get_value_type(signature.return_type), arguments[0])

    return Block(number)(number), generate


def everywhere(builder, vector, number):
    """A vector of one number, in LLVM's instructions."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.IntType(32)(0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, places)


@intrinsic
def copy_transposed(typing_context, source, at, step, target, to, to_step):
    """Transpose a square whose rows are narrow blocks, `step` apart in one array and `to_step` in the other."""
    block = Block(source.dtype, NARROW_BYTES)

    def generate(context, builder, signature, arguments):
        source, at, step, target, to, to_step = arguments
        size, i64 = block.size, ir.IntType(64)

        def place(kind, array, begin, step, row):
            return _place(context, builder, block, kind, array, builder.add(begin, builder.mul(step, i64(row))))

        rows = []
        for row in range(size):
            where, alignment = place(signature.args[0], source, at, step, row)
            rows.append(builder.load(where, align=alignment))
        half = size // 2
        while half:  # exchange the squares beside the diagonal, of all sizes
            upper = [size + k - half if k & half else k for k in range(size)]
            lower = [size + k if k & half else k + half for k in range(size)]
            masks = [ir.Constant(ir.VectorType(ir.IntType(32), size), mask) for mask in (upper, lower)]
            for row in (row for row in range(size) if not row & half):
                pair = rows[row], rows[row + half]
                rows[row], rows[row + half] = (builder.shuffle_vector(*pair, mask) for mask in masks)
            half //= 2
        for row in range(size):
            where, alignment = place(signature.args[3], target, to, to_step, row)
            builder.store(rows[row], where, align=alignment)
        return context.get_dummy_value()

    return types.void(source, at, step, target, to, to_step), generate


@intrinsic
def number_of_bits(typing_context, bits):
    """The float64 that has the bits of an int64."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def multiplied(typing_context, a, b):
    """a * b"""

    def generate(context, builder, signature, arguments):
        return builder.fmul(*arguments, flags=_FLAGS)

    return a(a, b), generate


@intrinsic
def added(typing_context, a, b):
    """a + b"""

    def generate(context, builder, signature, arguments):
        return builder.fadd(*arguments, flags=_FLAGS)

    return a(a, b), generate


@intrinsic
def subtracted(typing_context, a, b):
    """a - b"""

    def generate(context, builder, signature, arguments):
        return builder.fsub(*arguments, flags=_FLAGS)

    return a(a, b), generate


@intrinsic
def larger(typing_context, a, b):
    """The larger of each two numbers; where a is not a number, b."""

    def generate(context, builder, signature, arguments):
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return a(a, b), generate


@intrinsic
def power_of_two(typing_context, x):
    """2^x of numbers up to 126; zero where a normal number could not hold it. In float32 correct to 2e-7 of itself.

    2^(k + f) with k whole and f between -1/2 and 1/2: k goes into the exponent, and 2^f is a Taylor polynomial.
    """

    def generate(context, builder, signature, arguments):
        (value,) = arguments
        vector = context.get_value_type(signature.return_type)
        module, name = builder.module, f"v{vector.count}f{x.dtype.bitwidth}"
        kind = ir.FunctionType(vector, [vector])
        if x.dtype is not types.float32:  # which only tests need: as exact as the C library
            return builder.call(_function(module, kind, f"llvm.exp2.{name}"), [value])

        def constant(number):
            return ir.Constant(vector, [number] * vector.count)

        vanishes = builder.fcmp_ordered("<", value, constant(-126.0))
        value = builder.select(vanishes, constant(-126.0), value)
        whole = builder.call(_function(module, kind, f"llvm.rint.{name}"), [value])
        rest = builder.fsub(value, whole)
        result = constant(_TAYLOR[-1])
        for coefficient in _TAYLOR[-2::-1]:
            result = builder.fadd(builder.fmul(result, rest, flags=_FLAGS), constant(coefficient), flags=_FLAGS)
        integers = ir.VectorType(ir.IntType(32), vector.count)
        exponent = builder.add(builder.fptosi(whole, integers), ir.Constant(integers, [127] * vector.count))
        bits = builder.shl(exponent, ir.Constant(integers, [23] * vector.count))
        result = builder.fmul(result, builder.bitcast(bits, vector))
        return builder.select(vanishes, constant(0.0), result)

    return x(x), generate


_TAYLOR = [float(np.float32(math.log(2) ** k / math.factorial(k))) for k in range(8)]


def _function(module, kind, name):
    return module.globals.get(name) or ir.Function(module, kind, name)
