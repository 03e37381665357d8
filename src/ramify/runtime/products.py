"""Matrix products and sums of products of rows inside compiled loops, which may hold a whole chart in one call.

A torch call for each small product takes the interpreter's lock and some microseconds, and torch's library uses half
of the registers' width on some processors. Here a tile of the result, some rows by a few vectors, stays in registers
while the terms are added to it. A matrix that is multiplied with many times can be packed: cut into panels as wide as
the tiles, each stored row by row. Sums take their terms in order for any shape of the tile, so a row of the result does
not depend on other rows. Rows of results are padded to whole lines of the cache (padding.py).
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"
# ruff: noqa: ARG001 (numba passes these arguments by name or place, whether or not they are needed)

from __future__ import annotations

import platform

import llvmlite.binding as llvm  # type: ignore[import-untyped]
from llvmlite import ir
from numba import types

from ramify.runtime.compilation import compiled
from ramify.runtime.padding import NARROW_BYTES
from ramify.runtime.register_blocks import copy_transposed, everywhere, intrinsic, load_narrow, store

_HAS_AVX512 = llvm.get_host_cpu_features().get("avx512f", False)
_IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
VECTOR_BYTES = 64 if _HAS_AVX512 else 32 if _IS_X86 else 16
_SUMS = 24 if _HAS_AVX512 or not _IS_X86 else 12
"""Vectors of the largest tile: AVX-512 and ARM have 32 registers, others 16"""
_TALLEST = 12
WIDEST = 4 if _SUMS == 24 else 2
"""Vectors of the widest tile"""
_WIDEST_SUM = 8
"""Vectors of one sum of products of rows"""
DEPTH = 256
"""Panels are at most this deep, so that they stay in the cache"""
PACKED = 0
_FUSED = ("contract", "nsz")  # no reordering: all tiles must give the same bits


@intrinsic
def vector_size(typing_context, array):
    """The number of numbers of the array's type in a vector."""
    size = VECTOR_BYTES * 8 // array.dtype.bitwidth

    def generate(context, builder, signature, arguments):
        return ir.Constant(ir.IntType(64), size)

    return types.int64(array), generate


class _Code:
    """Instructions on vectors of one type of numbers."""

    def __init__(self, context, builder, dtype):
        self.context, self.builder = context, builder
        self.size, self.align = VECTOR_BYTES * 8 // dtype.bitwidth, dtype.bitwidth // 8
        self.number = context.get_value_type(dtype)
        self.vector = ir.VectorType(self.number, self.size)
        self.zeros = ir.Constant(self.vector, [0.0] * self.size)

    def data(self, kind, array):
        return self.context.make_array(kind)(self.context, self.builder, array).data

    def element(self, data, index):
        return self.builder.load(self.builder.gep(data, [index]))

    def filled(self, data, index):
        """A vector of one number of an array, which may be of another type."""
        number = self.element(data, index)
        if number.type != self.number:
            number = self.builder.fptrunc(number, self.number)
        return everywhere(self.builder, self.vector, number)

    def _place(self, data, index):
        return self.builder.bitcast(self.builder.gep(data, [index]), self.vector.as_pointer())

    def load(self, data, index):
        return self.builder.load(self._place(data, index), align=self.align)

    def store(self, data, index, value):
        self.builder.store(value, self._place(data, index), align=self.align)

    def add_product(self, total, a, b):
        return self.builder.fadd(self.builder.fmul(a, b, flags=_FUSED), total, flags=_FUSED)

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

    def cases(self, value, bodies):
        """Run one of the bodies, by a value that is among their keys."""
        builder = self.builder
        end = builder.append_basic_block("done")
        choice = builder.switch(value, end)
        for key, body in bodies.items():
            case = builder.append_basic_block(f"case{key}")
            choice.add_case(ir.IntType(64)(key), case)
            builder.position_at_end(case)
            body()
            builder.branch(end)
        builder.position_at_end(end)


@intrinsic
def _tile(typing_context, a, a_at, a_row, a_step, b, b_at, b_row, depth, c, c_at, c_row, adds, rows, vectors):
    """c[r, :] = or += sum over k of a[r, k] b[k, :] for a few rows and vectors, given by where they begin."""

    def generate(context, builder, signature, arguments):
        code, i64 = _Code(context, builder, signature.args[0].dtype), ir.IntType(64)
        of_a, of_b, of_c = (code.data(signature.args[i], arguments[i]) for i in (0, 4, 8))
        a_at, a_row, a_step, _, b_at, b_row, depth, _, c_at, c_row, adds, rows, vectors = arguments[1:]

        def write(R, W):
            a_rows = [builder.add(a_at, builder.mul(a_row, i64(r))) for r in range(R)]
            c_rows = [builder.add(c_at, builder.mul(c_row, i64(r))) for r in range(R)]
            places = [builder.add(row, i64(w * code.size)) for row in c_rows for w in range(W)]

            def body(k, totals):
                at, step = builder.add(b_at, builder.mul(k, b_row)), builder.mul(k, a_step)
                row = [code.load(of_b, builder.add(at, i64(w * code.size))) for w in range(W)]
                results = []
                for r in range(R):
                    factor = code.filled(of_a, builder.add(a_rows[r], step))
                    results += [code.add_product(totals[r * W + w], factor, row[w]) for w in range(W)]
                return results

            # The old values are always loaded, but used only if the result is added to them.
            begin = [builder.select(adds, code.load(of_c, place), code.zeros) for place in places]
            for place, result in zip(places, code.sums(depth, begin, body), strict=True):
                code.store(of_c, place, result)

        def shapes(W):
            return {R: lambda R=R: write(R, W) for R in range(1, min(_TALLEST, _SUMS // W) + 1)}

        widths = [W for W in (1, 2, 4) if W <= WIDEST]
        code.cases(vectors, {W: lambda W=W: code.cases(rows, shapes(W)) for W in widths})
        return context.get_dummy_value()

    given = (a, a_at, a_row, a_step, b, b_at, b_row, depth, c, c_at, c_row, adds, rows, vectors)
    return types.void(*given), generate


@compiled
def _vectors_at(column, columns, size):
    """The width of a panel that begins at a column."""
    vectors = WIDEST
    while column + vectors * size > columns:
        vectors //= 2
    return vectors


@compiled
def multiply(a, a_at, a_row, a_step, b, b_at, b_row, rows, inner, columns, c, c_at, c_row, adds):
    """c = a b, or c += a b if it `adds`, of matrices anywhere in contiguous arrays; places count all dimensions.

    a[i, k] stands at `a_at + i * a_row + k * a_step`, so a transposed matrix is a choice of steps. Rows of b and c are
    contiguous and begin `b_row` and `c_row` apart; where `b_row` is PACKED, b is a whole array laid out by `pack`.
    `columns` is a whole number of vectors; `inner` is not 0.
    """
    size = vector_size(c)
    for deep in range(0, inner, DEPTH):
        depth, column = min(DEPTH, inner - deep), 0
        while column < columns:
            vectors = _vectors_at(column, columns, size)
            at, step = b_at + deep * b_row + column, b_row
            if b_row == PACKED:
                at, step = deep * columns + column * depth, vectors * size
            tallest, row = min(_TALLEST, _SUMS // vectors), 0
            while row < rows:
                tiles = (rows - row + tallest - 1) // tallest
                some = (rows - row + tiles - 1) // tiles  # of similar height, so that none has too few sums
                x, y = a_at + row * a_row + deep * a_step, c_at + row * c_row + column
                _tile(a, x, a_row, a_step, b, at, step, depth, c, y, c_row, adds or deep > 0, some, vectors)
                row += some
            column += vectors * size


@compiled
def multiply_rows(a, begin, end, packed, c):
    """c[begin:end] = a[begin:end] @ the matrix that was packed; what stands after its depth in rows of a is padding."""
    (depth, columns), row = packed.shape, a.shape[1]
    multiply(
        a, begin * row, row, 1, packed, 0, PACKED, end - begin, depth, columns, c, begin * columns, columns, False
    )  # fmt: skip


@compiled
def pack(matrix, transposed, columns, packed):
    """Lay out a matrix for `multiply`, or its transpose, with zeros after its columns.

    `packed` (depth, padded columns) has the shape of the result, `columns` is the number without padding.
    """
    depth, padded = packed.shape
    given, room = matrix.reshape(-1), packed.reshape(-1)
    size, line, at = vector_size(packed), NARROW_BYTES // packed.itemsize, 0
    for deep in range(0, depth, DEPTH):
        rows, column = min(DEPTH, depth - deep), 0
        while column < padded:
            width = size * _vectors_at(column, padded, size)
            filled = max(0, min(width, columns - column))
            whole, squares = filled - filled % line, rows - rows % line if transposed else 0
            for v in range(0, whole, line):
                for k in range(0, squares, line):
                    copy_transposed(given, (column + v) * depth + deep + k, depth, room, at + k * width + v, width)
            for k in range(rows):
                for v in range(0, 0 if transposed else whole, line):
                    store(room, at + k * width + v, load_narrow(given, (deep + k) * columns + column + v))
                for v in range(whole if k < squares or not transposed else 0, width):
                    source = (column + v) * depth + deep + k if transposed else (deep + k) * columns + column + v
                    room[at + k * width + v] = given[source] if v < filled else 0
            at += rows * width
            column += width


@intrinsic
def _add_terms(typing_context, weights, a, a_places, b, b_places, c, c_at, column, count, vectors):
    """c[...] = sum over t of weights[t] a[a_places[t] + column ...] b[b_places[t] + column ...] for a few vectors."""

    def generate(context, builder, signature, arguments):
        code, i64 = _Code(context, builder, signature.args[5].dtype), ir.IntType(64)
        of_weights, of_a, a_places, of_b, b_places, of_c = map(code.data, signature.args[:6], arguments[:6])
        c_at, column, count, vectors = arguments[6:]

        def write(W):
            def body(t, totals):
                weight = code.filled(of_weights, t)
                x, y = (builder.add(code.element(places, t), column) for places in (a_places, b_places))
                results = []
                for w, total in enumerate(totals):
                    step = i64(w * code.size)
                    one = builder.fmul(weight, code.load(of_a, builder.add(x, step)), flags=_FUSED)
                    results.append(code.add_product(total, one, code.load(of_b, builder.add(y, step))))
                return results

            for w, result in enumerate(code.sums(count, [code.zeros] * W, body)):
                code.store(of_c, builder.add(builder.add(c_at, column), i64(w * code.size)), result)

        code.cases(vectors, {W: lambda W=W: write(W) for W in range(1, _WIDEST_SUM + 1)})
        return context.get_dummy_value()

    return types.void(weights, a, a_places, b, b_places, c, c_at, column, count, vectors), generate


@compiled
def sum_of_products(weights, count, a, a_places, b, b_places, c, c_at, columns):
    """c[c_at :] = sum over `count` terms of weights[t] a[a_places[t] :] * b[b_places[t] :], each as long as `columns`.

    Places count through all dimensions of contiguous arrays. Without terms the sum is zero.
    """
    size, column = vector_size(c), 0
    if count == 0:
        c.reshape(-1)[c_at : c_at + columns] = 0
        return
    while column < columns:
        left = (columns - column) // size
        parts = (left + _WIDEST_SUM - 1) // _WIDEST_SUM
        vectors = (left + parts - 1) // parts
        _add_terms(weights, a, a_places, b, b_places, c, c_at, column, count, vectors)
        column += vectors * size
