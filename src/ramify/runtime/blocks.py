"""Blocks of numbers that compiled loops hold in registers.

By default the compiler loads and stores a row of sums again for every few rows that are added to it, checks at each
call whether rows overlap, and processes the numbers after the last full register one by one. A block is an LLVM vector
of 256 bytes: it fills a few registers of any machine, is loaded and stored once, and leaves no remainder where rows are
padded to whole blocks (padding.py).
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"
# ruff: noqa: ARG001 (numba passes these arguments by name or place, whether or not they are needed)

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.extending import models, register_model

from ramify.runtime.padding import BLOCK_BYTES

_FLAGS = ("reassoc", "contract", "nsz", "arcp")  # as in compilation.py


def intrinsic(function: Any) -> Any:
    """A function of compiled code that is defined by its LLVM instructions."""
    return extending.intrinsic(function)


class Block(types.Type):
    """The type of a block in compiled code."""

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.size = dtype, BLOCK_BYTES * 8 // dtype.bitwidth
        super().__init__(name=f"Block({dtype})")


@register_model(Block)
class _BlockModel(models.PrimitiveModel):
    def __init__(self, manager, block):
        number = ir.FloatType() if block.dtype is types.float32 else ir.DoubleType()
        super().__init__(manager, block, ir.VectorType(number, block.size))


def _place(context, builder, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    vector = context.get_value_type(Block(array_type.dtype))
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer()), array_type.dtype.bitwidth // 8


@intrinsic
def block_size(typing_context, array):
    """How many numbers of the array's type make a block."""
    size = Block(array.dtype).size

    def generate(context, builder, signature, arguments):
        return ir.Constant(ir.IntType(64), size)

    return types.int64(array), generate


@intrinsic
def load(typing_context, array, index):
    """The block of a contiguous array that begins at an index, which counts through all dimensions."""

    def generate(context, builder, signature, arguments):
        place, alignment = _place(context, builder, signature.args[0], *arguments)
        return builder.load(place, align=alignment)

    return Block(array.dtype)(array, types.int64), generate


@intrinsic
def store(typing_context, array, index, block):
    """Write a block into a contiguous array."""

    def generate(context, builder, signature, arguments):
        place, alignment = _place(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], place, align=alignment)
        return context.get_dummy_value()

    return types.void(array, types.int64, block), generate


@intrinsic
def filled(typing_context, number):
    """A block of one number."""

    def generate(context, builder, signature, arguments):
        vector = context.get_value_type(signature.return_type)
        undefined = ir.Constant(vector, ir.Undefined)
        zero = ir.IntType(32)(0)
        first = builder.insert_element(undefined, arguments[0], zero)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
        return builder.shuffle_vector(first, undefined, everywhere)

    return Block(number)(number), generate


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
