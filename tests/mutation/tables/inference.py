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
                equivalent="all weights become NaN, which is not above zero, so the sum is empty as well",
            ),
            Mutant(
                "compiled_sums:relative_weights",
                "a_rows[kept], b_rows[kept] = weight, ",
                "b_rows[kept], a_rows[kept] = weight, ",
            ),
            Mutant("compiled_sums:exponentials", "math.floor(x + 0.5)", "math.floor(x - 2.5)"),
            Mutant("low_rank.charts:fill_inside", "if width < N:", "if width < N - 1:"),
            Mutant("low_rank.charts:fill_outside", "if common > -np.inf:", "if common > -np.inf or True:"),
            Mutant("low_rank.charts:fill_outside", "common = max(left, right)", "common = left"),
            Mutant("low_rank.charts:fill_outside", "lengths[cell // starts] == width", "N == width"),
            Mutant("low_rank.charts:log_partition", "if lengths[b] > 1:", "if lengths[b] > 2:"),
            Mutant("low_rank.charts:begin_chart", "span_scores[b, i, i + width] if len(span_scores) else 0.0", "0.0"),
            Mutant(
                "low_rank.expectations:_row_weights",
                "min(inside[row] + outside[row] - log_z[b], bound)",
                "inside[row] + outside[row] - log_z[b]",
            ),
            Mutant("low_rank.expectations:_row_weights", "weights[row] * factor[b] if", "weights[row] if"),
            Mutant("low_rank.expectations:_add_gradients", "both, True)\n    if N", "both, False)\n    if N"),
            Mutant("low_rank.expectations:gradients", "rows + first[N + 1]\n", "rows\n"),
            Mutant(
                "low_rank.expectations:_find_best",
                "i + width > lengths[b] or ",
                "",
                equivalent="saves time: a span beyond the end has the scale minus infinity, so its weight is zero",
            ),
            Mutant("low_rank.compiled:_kept_rules", "versions != before_versions or ", ""),
        ),
    ),
    Group(
        "inference, matrix products",
        ("runtime/test_products.py",),
        (
            Mutant("products:multiply", "adds or deep > 0, some", "adds, some"),
            Mutant("products:multiply", "deep * columns + column * depth", "column * depth"),
            Mutant("products:multiply", "a_at + row * a_row + deep * a_step", "a_at + row * a_row + deep"),
            Mutant("products:pack", "filled = max(0, min(width, columns - column))", "filled = width"),
            Mutant("products:sum_of_products", "c_at : c_at + columns] = 0", "c_at : c_at + columns] = 1"),
            Mutant("products:sum_of_products", "column += vectors * size", "column += 8 * size"),
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
            "runtime/test_register_blocks.py",
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
                equivalent="differs only if a random number of 53 bits equals a cumulative sum exactly",
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
