"""Matrix products and sums of products of rows inside compiled loops, so that a whole chart is one call, without the
interpreter's lock.

Some rows by a few vectors of the result stay in registers while the terms are walked through. The second factor of a
matrix product is packed beforehand: panels as wide as these vectors, each row by row. Sums take their terms in order,
whatever the shape of the tile, so that a row of the result does not depend on the rows beside it. Rows are padded to
whole lines of the cache (padding.py) with zeros.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"
# ruff: noqa: ARG001 (numba passes these arguments by name or place, whether or not they are needed)

from __future__ import annotations

import platform

import llvmlite.binding as llvm  # type: ignore[import-untyped]
from llvmlite import ir
from numba import types

from ramify.runtime.blocks import intrinsic
from ramify.runtime.compilation import compiled

_HAS_AVX512 = llvm.get_host_cpu_features().get("avx512f", False)
_IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
VECTOR_BYTES = 64 if _HAS_AVX512 else 32 if _IS_X86 else 16
WIDEST = 4 if _HAS_AVX512 or not _IS_X86 else 2
"""Vectors of the widest tile: with AVX-512, and on ARM, there are 32 registers, else 16"""
TALL_4, TALL_2, TALL_1 = 6, 12 if WIDEST == 4 else 6, 12
"""Rows of the tallest tile of each width, so that all its sums stay in registers"""
DEPTH = 512
"""Panels are at most this deep, so that they stay in the second-level cache"""
_FUSED = ("contract", "nsz")  # no reordering: all tiles must give the same bits


@intrinsic
def vector_size(typing_context, array):
    """How many numbers of the array's type make a vector."""
    size = VECTOR_BYTES * 8 // array.dtype.bitwidth

    def generate(context, builder, signature, arguments):
        return ir.Constant(ir.IntType(64), size)

    return types.int64(array), generate


class _Code:
    """Instructions on vectors of one type of numbers."""

    def __init__(self, context, builder, dtype):
        self.context, self.builder = context, builder
        self.size, self.align = VECTOR_BYTES * 8 // dtype.bitwidth, dtype.bitwidth // 8
        self.vector = ir.VectorType(context.get_value_type(dtype), self.size)

    def data(self, kind, array):
        return self.context.make_array(kind)(self.context, self.builder, array).data

    def number(self, data, index):
        return self.builder.load(self.builder.gep(data, [index]))

    def _place(self, data, index):
        return self.builder.bitcast(self.builder.gep(data, [index]), self.vector.as_pointer())

    def load(self, data, index):
        return self.builder.load(self._place(data, index), align=self.align)

    def store(self, data, index, value):
        self.builder.store(value, self._place(data, index), align=self.align)

    def everywhere(self, number):
        undefined, zero = ir.Constant(self.vector, ir.Undefined), ir.IntType(32)(0)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.size), [0] * self.size)
        return self.builder.shuffle_vector(self.builder.insert_element(undefined, number, zero), undefined, mask)

    def multiplied(self, a, b):
        return self.builder.fmul(a, b, flags=_FUSED)

    def added(self, a, b):
        return self.builder.fadd(a, b, flags=_FUSED)

    def sums(self, count, begin, body):
        """Sums that begin with some vectors and to which body(k, sums) adds, for k below `count`, which is above 0."""
        builder, i64 = self.builder, ir.IntType(64)
        before, loop, end = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("end")
        builder.branch(loop)
        builder.position_at_end(loop)
        k, totals = builder.phi(i64), [builder.phi(self.vector) for _ in begin]
        results = body(k, totals)
        following = builder.add(k, i64(1))
        for phi, first, then in zip([k, *totals], [i64(0), *begin], [following, *results], strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(then, loop)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, end)
        builder.position_at_end(end)
        return results


@intrinsic
def _tile(typing_context, a, b, c, a_at, a_stride, b_at, c_at, c_stride, depth, adds, rows, vectors):
    """c[r, :] = or += sum over k of a[r, k] b[k, :] for a few rows and vectors, given by where they begin."""
    if not isinstance(rows, types.IntegerLiteral) or not isinstance(vectors, types.IntegerLiteral):
        return None
    R, W = rows.literal_value, vectors.literal_value

    def generate(context, builder, signature, arguments):
        code, i64 = _Code(context, builder, signature.args[0].dtype), ir.IntType(64)
        of_a, of_b, of_c = map(code.data, signature.args[:3], arguments[:3])
        a_at, a_stride, b_at, c_at, c_stride, depth, adds = arguments[3:10]
        a_rows = [builder.add(a_at, builder.mul(a_stride, i64(r))) for r in range(R)]
        c_rows = [builder.add(c_at, builder.mul(c_stride, i64(r))) for r in range(R)]
        places = [builder.add(row, i64(w * code.size)) for row in c_rows for w in range(W)]
        nothing = ir.Constant(code.vector, [0.0] * code.size)

        def body(k, totals):
            at = builder.add(b_at, builder.mul(k, i64(W * code.size)))
            row = [code.load(of_b, builder.add(at, i64(w * code.size))) for w in range(W)]
            results = []
            for r in range(R):
                factor = code.everywhere(code.number(of_a, builder.add(a_rows[r], k)))
                results += [code.added(code.multiplied(factor, row[w]), totals[r * W + w]) for w in range(W)]
            return results

        # What was there is loaded in any case: the result of a first panel's depth does not use it.
        begin = [builder.select(adds, code.load(of_c, place), nothing) for place in places]
        for place, result in zip(places, code.sums(depth, begin, body), strict=True):
            code.store(of_c, place, result)
        return context.get_dummy_value()

    given = (a, b, c, a_at, a_stride, b_at, c_at, c_stride, depth, adds, rows, vectors)
    return types.void(*given), generate


@compiled
def _panel(a, b, c, a_at, a_stride, b_at, c_at, c_stride, depth, adds, count, vectors):
    """One panel's columns of `count` rows: tall tiles, then lower ones."""
    r = 0
    while r < count:
        x, y, left = a_at + r * a_stride, c_at + r * c_stride, count - r
        if vectors == 4:
            if left >= TALL_4:
                _tile(a, b, c, x, a_stride, b_at, y, c_stride, depth, adds, TALL_4, 4)
                r += TALL_4
            elif left >= 3:
                _tile(a, b, c, x, a_stride, b_at, y, c_stride, depth, adds, 3, 4)
                r += 3
            else:
                _tile(a, b, c, x, a_stride, b_at, y, c_stride, depth, adds, 1, 4)
                r += 1
        elif vectors == 2:
            if left >= TALL_2:
                _tile(a, b, c, x, a_stride, b_at, y, c_stride, depth, adds, TALL_2, 2)
                r += TALL_2
            elif left >= 4:
                _tile(a, b, c, x, a_stride, b_at, y, c_stride, depth, adds, 4, 2)
                r += 4
            else:
                _tile(a, b, c, x, a_stride, b_at, y, c_stride, depth, adds, 1, 2)
                r += 1
        elif left >= TALL_1:
            _tile(a, b, c, x, a_stride, b_at, y, c_stride, depth, adds, TALL_1, 1)
            r += TALL_1
        elif left >= 4:
            _tile(a, b, c, x, a_stride, b_at, y, c_stride, depth, adds, 4, 1)
            r += 4
        else:
            _tile(a, b, c, x, a_stride, b_at, y, c_stride, depth, adds, 1, 1)
            r += 1


@compiled
def _vectors_at(column, columns, size):
    """How wide a panel is that begins at a column."""
    vectors = WIDEST
    while column + vectors * size > columns:
        vectors //= 2
    return vectors


@compiled
def multiply_rows(a, begin, end, packed, depth, c):
    """c[begin:end] = a[begin:end, :depth] @ the matrix (depth, columns of c) that was packed."""
    a_stride, columns = a.shape[1], c.shape[1]
    size = vector_size(a)
    for deep in range(0, depth, DEPTH):
        some = min(DEPTH, depth - deep)
        x, column = begin * a_stride + deep, 0
        while column < columns:
            vectors = _vectors_at(column, columns, size)
            panel, y = deep * columns + column * some, begin * columns + column
            _panel(a, packed, c, x, a_stride, panel, y, columns, some, deep > 0, end - begin, vectors)
            column += vectors * size


@compiled
def pack(matrix, packed):
    """Lay a matrix (depth, columns) out for `multiply_rows`."""
    depth, columns = matrix.shape
    size, at = vector_size(packed), 0
    for deep in range(0, depth, DEPTH):
        column = 0
        while column < columns:
            width = size * _vectors_at(column, columns, size)
            for k in range(deep, min(deep + DEPTH, depth)):
                for v in range(column, column + width):
                    packed[at] = matrix[k, v]
                    at += 1
            column += width


@intrinsic
def _add_terms(typing_context, weights, a, a_places, b, b_places, c, c_at, column, count, vectors):
    """c[...] = sum over t of weights[t] a[a_places[t] + column ...] b[b_places[t] + column ...] for a few vectors."""
    if not isinstance(vectors, types.IntegerLiteral):
        return None
    W = vectors.literal_value

    def generate(context, builder, signature, arguments):
        code, i64 = _Code(context, builder, signature.args[5].dtype), ir.IntType(64)
        of_weights, of_a, a_places, of_b, b_places, of_c = map(code.data, signature.args[:6], arguments[:6])
        c_at, column, count = arguments[6:9]

        def body(t, totals):
            weight = code.everywhere(code.number(of_weights, t))
            x, y = (builder.add(code.number(places, t), column) for places in (a_places, b_places))
            results = []
            for w, total in enumerate(totals):
                step = i64(w * code.size)
                one = code.multiplied(weight, code.load(of_a, builder.add(x, step)))
                results.append(code.added(code.multiplied(one, code.load(of_b, builder.add(y, step))), total))
            return results

        nothing = [ir.Constant(code.vector, [0.0] * code.size)] * W
        for w, result in enumerate(code.sums(count, nothing, body)):
            code.store(of_c, builder.add(builder.add(c_at, column), i64(w * code.size)), result)
        return context.get_dummy_value()

    return types.void(weights, a, a_places, b, b_places, c, c_at, column, count, vectors), generate


@compiled
def sum_of_products(weights, count, a, a_places, b, b_places, c, c_at, columns):
    """c[c_at :] = sum over `count` terms of weights[t] a[a_places[t] :] * b[b_places[t] :], each as long as `columns`.

    Places count through all dimensions of contiguous arrays.
    """
    size, column = vector_size(c), 0
    while column < columns:
        left = (columns - column) // size
        if left >= 8:
            _add_terms(weights, a, a_places, b, b_places, c, c_at, column, count, 8)
            column += 8 * size
        elif left >= 4:
            _add_terms(weights, a, a_places, b, b_places, c, c_at, column, count, 4)
            column += 4 * size
        else:
            _add_terms(weights, a, a_places, b, b_places, c, c_at, column, count, 1)
            column += size
