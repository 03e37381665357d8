"""Networks and tables of every family, generation, lookup of rules."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "grammars, networks",
        ("models/test_linear.py", "models/test_forward.py", "models/test_compound.py", "models/test_families.py"),
        (
            Mutant("linear_loops:forward", "y[i] = bias[i]", "y[i] = 0"),
            Mutant("linear_loops:backward", "rows.shape[0], inner, g_weight", "rows.shape[0] - 1, inner, g_weight"),
            Mutant("Residual.forward", ".relu_()).relu_()", ".relu_())"),
            Mutant("Residual.forward", "return x + update", "return update"),
            Mutant("SNPCFG._parts.states", "return found + symbols[rows]", "return found"),
            Mutant("SNPCFG._parts.children.made", "(network(symbols) + symbols)", "network(symbols)"),
            Mutant(
                "SNPCFG._parts.children.made",
                "self.parent(symbols[:n], z) + symbols[:n]",
                "self.parent(symbols[:n], z)",
            ),
            Mutant("SNPCFG._parts.children.made", "log_softmax(-2)", "log_softmax(-1)"),
            Mutant("BLOCKS", "BLOCKS = 3", "BLOCKS = 2"),
            Mutant("ACTIVATIONS", '"tanh": "Tanh", "sigmoid": "Sigmoid"', '"tanh": "Sigmoid", "sigmoid": "Tanh"'),
            Mutant("ACTIVATIONS", '"gelu": "GELU"', '"gelu": "SiLU"'),
            Mutant("TNPCFG._parts", "slice(len(tags) - p, len(tags))", "slice(0, p)"),
            Mutant("TNPCFG._parts", "rules(self.head, n, -1)", "rules(self.head, n, -2)"),
            Mutant("TNPCFG.__init__", "[*to_rank, self.start[-1], self.word_layer]", "[*to_rank, self.word_layer]"),
            Mutant("TNPCFG.__init__", "Linear(embedding, rank, bias=False)", "Linear(embedding, rank)"),
            Mutant(
                "NPCFG.__init__",
                "[self.start_layer, self.rule_layer, self.word_layer]",
                "[self.rule_layer, self.word_layer]",
            ),
            Mutant(
                "NPCFG.rules",
                "self.start_encoder(self.start_embedding, z)",
                "self.preterminal_encoder(self.start_embedding, z)",
            ),
            Mutant("SymbolLayer.forward", " + linear(z, by_sentence)[:, None]", ""),
            Mutant("SentenceEncoder.forward", "padding_value=-torch.inf", "padding_value=0.0"),
            Mutant("SentenceEncoder.forward", "- log_variance - 1)", "- log_variance)"),
            Mutant("SentenceEncoder.forward", "(0.5 * log_variance).exp() * drawn", "log_variance.exp() * drawn"),
            Mutant("normalised", "left.log_softmax(-2)", "left.log_softmax(-1)"),
            Mutant("initialise", "if parameter.dim() > 1:", "if parameter.dim() > 2:"),
            Mutant("initialise", 'if how == "xavier-normal" else', 'if how == "xavier-uniform" else'),
        ),
    ),
    Group(
        "grammars, tables and generation",
        ("models/test_generation.py", "models/test_families.py", "models/test_lookup.py", "test_counting.py"),
        (
            Mutant(
                "Sampler.draw", "agenda += (-len(labels) - 1, right, left)", "agenda += (-len(labels) - 1, left, right)"
            ),
            Mutant("Sampler.draw", "len(words) + pending > max_length", "len(words) + pending >= max_length"),
            Mutant(
                "draw",
                'side="right"',
                'side="left"',
                equivalent="differs only where a random number of 53 bits equals a running total exactly",
            ),
            Mutant(
                "LowRankRules.child_sampler.children",
                "component = parent if head is None else",
                "component = 0 if head is None else",
            ),
            Mutant(
                "TableGrammar.from_binary_rules",
                "if d > m * m:",
                "if d > m * m or True:",
                equivalent="the same grammar in the other of its two forms",
            ),
            Mutant("TableGrammar.from_binary_rules", "right[rights, component] = 1", "right[lefts, component] = 1"),
            Mutant("EMPCFG.maximise", "words + WORD_COUNT", "words"),
            Mutant("EMPCFG.maximise", "torch.where(total > 0, renewed, parameter)", "renewed"),
            Mutant("EMPCFG.maximise", ".clamp(min=FLOOR)", ""),
            Mutant("LowRankRules.sums", "used = head.amax(0) > 0", "used = head.amax(0) >= 0"),
        ),
    ),
    Group(
        "grammars, DIORA",
        ("models/test_diora.py",),
        (
            Mutant("Chart.__init__", "mean / norms[..., None]", "mean"),
            Mutant("Chart.__init__", "(found.share * found.energy).sum(1)", "found.energy.logsumexp(1)"),
            Mutant("Chart._put", "vectors @ self.weights.score", "vectors @ self.weights.score.T"),
            Mutant("Chart.options", "+ self.energy.index_select(0, j)", ""),
            Mutant("outside_plan", "torch.where(before, outer, i)", "torch.where(before, i, outer)"),
            Mutant("outside_plan", "before = word < i", "before = word <= i"),
            Mutant("outside_plan", "torch.where(before, siblings, parents)", "siblings"),
            Mutant("_FilledChart.backward", "+ d_cell)", ")"),
            Mutant("_FilledChart.backward", "unit * torch.linalg.vecdot(unit, d_unit)[..., None]", "0"),
            Mutant("_FilledChart.backward", "for part in (i, j):", "for part in (i,):"),
            Mutant("_FilledChart.backward", "d_first.sum((0, 1))", "torch.zeros_like(d_layer_bias)"),
            Mutant("best_spans", "+ best[stage.first] + best[stage.second]", "+ best[stage.first]"),
            Mutant("best_spans", "abs(2 * k - K + 1)", "k"),
            Mutant("best_spans", "inside_row(N, torch.zeros_like(lengths), lengths)", "lengths * 0 + len(best) - 1"),
            Mutant("DIORA._of_one_length", "negatives == words[..., None]", "negatives == -1"),
            Mutant("DIORA.negatives", "** -FLATTENING", "** 0"),
            Mutant("DIORA.objective", "torch.cat(places).argsort()", "torch.cat(places)"),
            Mutant(
                "DIORA.objective",
                "torch.Generator().manual_seed(0) if noise is None",
                "torch.Generator().manual_seed(torch.seed()) if noise is None",
            ),
            Mutant("DIORA.draws", "return True", "return False"),
        ),
    ),
)
