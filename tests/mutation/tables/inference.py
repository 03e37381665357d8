"""Inside and outside passes, their kernels, the softmax over words, and decoding."""

from tests.mutation.mutants import Group, Mutant

_KERNELS = ("structures/test_underflow.py", "structures/test_engines.py")
_DENSE = ("structures/test_underflow.py", "structures/test_dense.py")

GROUPS = (
    Group(
        "inference, low-rank kernels",
        _KERNELS,
        (
            Mutant("compiled_sums:normalise_row", "total > _SMALLEST", "total > 0"),
            Mutant(
                "compiled_sums:relative_weights",
                "if peak == -np.inf:",
                "if peak == np.inf:",
                equivalent="all weights become NaN, which is not above zero, so the sum is empty all the same",
            ),
            Mutant(
                "compiled_sums:weighted_sum",
                "while k + block <= size:",
                "while k + 2 * block <= size and k < 0:",
                equivalent="narrow blocks take the place of wide ones",
            ),
            Mutant("compiled_sums:weighted_sum", "k += narrow", "k += 2 * narrow"),
            Mutant("low_rank.loops:gradients", "if lengths[b] > 1:", "if lengths[b] > 2:"),
            Mutant(
                "low_rank.loops:gradients",
                "g_right, n * D, D, True)",
                "g_right, n * D, D, False)",
                equivalent="the rows of the words hold zeros before",
            ),
            Mutant("low_rank.loops:inside", "if width < N:", "if width < N - 1:"),
            Mutant(
                "compiled_sums:relative_weights",
                "a_rows[kept], b_rows[kept] = weight, ",
                "b_rows[kept], a_rows[kept] = weight, ",
            ),
            Mutant("low_rank.kernels:pull_from_parents", "if common > -np.inf:", "if common > -np.inf or True:"),
            Mutant(
                "low_rank.kernels:row_weights",
                "min(inside[row] + outside[row] - log_z[b], bound)",
                "inside[row] + outside[row] - log_z[b]",
            ),
            Mutant("low_rank.kernels:row_weights", "if log_z[b] > -np.inf:", "if log_z[b] > -np.inf or True:"),
        ),
    ),
    Group(
        "inference, whole charts",
        ("runtime/test_matrix_tiles.py", *_KERNELS, "parser/test_parsing_ahead.py"),
        (
            Mutant("matrix_tiles:multiply_rows", "some, deep > 0, end", "some, False, end"),
            Mutant(
                "matrix_tiles:multiply_rows", "panel, y = deep * columns + column * some", "panel, y = column * some"
            ),
            Mutant("matrix_tiles:_panel", "r += 3\n", "r += 4\n"),
            Mutant("matrix_tiles:sum_of_products", "column += 4 * size", "column += 8 * size"),
            Mutant("whole_charts:outside", "g_children[row, :d] = 0", "pass"),
            Mutant("whole_charts:_exponentials", "math.floor(x + 0.5)", "math.floor(x - 2.5)"),
            Mutant("whole_charts:outside", "common = max(left, right)", "common = left"),
            Mutant("whole_charts:outside", "lengths[cell // starts] == width", "N == width"),
            Mutant(
                "whole_charts:posteriors",
                "i + width > lengths[b] or ",
                "",
                equivalent="saves time: a span beyond the end has the scale minus infinity, so its weight is zero",
            ),
            Mutant("whole_charts:posteriors", "scores[row] = span_scores[b, i, i + width]", "scores[row] = 0"),
            Mutant("PackedTables.of", "versions != before_versions or ", ""),
        ),
    ),
    Group(
        "inference, dense kernels",
        _DENSE,
        (
            Mutant("dense.kernels:_normalise", "total <= np.finfo(row.dtype).tiny", "total <= 0"),
            Mutant("dense.kernels:_weights", "peak if peak > -np.inf else 0.0", "peak"),
            Mutant("dense.kernels:weigh_inside", "bound if exponent > bound else exponent", "exponent"),
            Mutant("dense.kernels:weigh_inside", "if log_z[b] > -np.inf:", "if log_z[b] > -np.inf or True:"),
        ),
    ),
    Group(
        "inference, scaled",
        ("structures/test_underflow.py", "structures/test_engines.py", "structures/test_dense.py"),
        (
            Mutant("posterior_weights", "shifted.clamp(max=bound).exp()", "shifted.exp()"),
            Mutant("normalise", "torch.where(peak > 0, peak, 1)", "peak"),
            Mutant("relative", "torch.where(peak == -torch.inf, 0, peak)[..., None]", "peak[..., None]"),
        ),
    ),
    Group(
        "inference, words and decoding",
        (
            "runtime/test_products.py",
            "models/test_emission.py",
            "structures/test_restriction.py",
            "decoding/test_best_trees.py",
            "runtime/test_parallel_autograd.py",
            "structures/test_reference.py",
            "structures/test_derivations.py",
            "structures/test_engines.py",
        ),
        (
            Mutant(
                "Torch.gradients",
                "g_bias[words].addmv_(probabilities.T, counts[rows, 0], beta=beta)",
                "g_bias[words].addmv_(probabilities.T, counts[rows, 0], beta=0)",
            ),
            Mutant("emission_loops:gradients", "total if first == 0 else g_bias[word + r] + total", "total"),
            Mutant("emission_loops:gradients", "e, first > 0", "e, False"),
            Mutant("emission_loops:log_sums", "power_of_two(subtracted(before, peak))", "power_of_two(peak)"),
            Mutant(
                "products:multiply", "more = min(_INNER, inner - k), add or k > 0", "more = min(_INNER, inner - k), add"
            ),
            Mutant("products:_panel", "sixes = rows - rows % 6", "sixes = rows"),
            Mutant("power_of_two", "builder.select(vanishes, constant(0.0), result)", "result"),
            Mutant(
                "Torch.gradients",
                "g_weight[words].addmm_(probabilities.T, counted[rows], beta=beta)",
                "g_weight[words].addmm_(probabilities.T, counted[rows], beta=0)",
            ),
            Mutant("emission:_summed", "first += other", "first = other"),
            Mutant("Torch.__init__", "total[rows] *= (peak[rows] - higher).exp2_()", "total[rows] *= 1"),
            Mutant(
                "Torch.__init__",
                "higher = torch.maximum(peak[rows], logits.amax(1, keepdim=True))",
                "higher = logits.amax(1, keepdim=True) * 0",
            ),
            Mutant("sample_symbols", "kept[chances.argmax()] = True", "pass"),
            Mutant("sample_symbols", "chances >= rate", "chances < rate"),
            Mutant(
                "LowRankRules.restricted_rules",
                "root = renormalised(self.root.index_select(-1, nonterminals), -1)",
                "root = self.root.index_select(-1, nonterminals)",
            ),
            Mutant("DenseRules.restricted_rules", "renormalised(binary, -2, -1)", "renormalised(binary, -1)"),
            Mutant("mbr_labelled", "best_trees(marginals.best_label_posterior", "best_trees(marginals.spans"),
            Mutant("_decode", "if score > highest:", "if score >= highest:"),
            Mutant("_best", "[: k - len(above)]", "[: max(0, k // 2 - len(above))]"),
            Mutant(
                "KBest._add_candidate",
                "- below[rank].log_weight + below[rank + 1].log_weight",
                "+ below[rank + 1].log_weight",
            ),
            Mutant("KBest._neighbours", "if (last.edge, neighbour[2]) not in state.seen", "if True"),
            Mutant(
                "sample_with.choose",
                'side="right"',
                'side="left"',
                equivalent="differs only where a random number of 53 bits equals a running total exactly",
            ),
            Mutant(
                "sample_with.choose",
                "np.exp(log_weights - log_weights.max())",
                "np.exp((log_weights - log_weights.max()) / 2)",
            ),
            Mutant("TreeDistribution.entropy", "log_z[0] - expected", "-expected"),
            Mutant("DenseForest.edges", "kinds[k > i + 1], kinds[k < j - 1]", "kinds[k < j - 1], kinds[k > i + 1]"),
            Mutant("log", "torch.where(positive, torch.where(positive, x, 1).log(), -torch.inf)", "x.log()"),
            Mutant("PCFG.masked_words", "positions >= self.lengths", "positions > self.lengths"),
            Mutant("_RunParts.backward", "gradient if before is None else before + gradient", "gradient"),
            Mutant("worth", "work > SMALLEST_WORK", "work >= 0"),
        ),
    ),
)
