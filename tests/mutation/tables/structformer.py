"""StructFormer: the parser network, soft dependencies, attention, masks."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "structformer",
        ("models/test_structformer.py",),
        (
            Mutant("StructFormer.distances", "pad(tau[:, :-1], (1, 0))", "tau"),
            Mutant("StructFormer.objective", "found * lengths / masked.sum(1)", "found / MASKED"),
            Mutant("StructFormer.objective", "found * lengths / masked.sum(1)", "found"),
            Mutant("StructFormer.masked_log_probability", "masked_fill(masked, self.words)", "masked_fill(masked, 0)"),
            Mutant("StructFormer.masked_log_probability", "places.clamp(max=POSITIONS - 1)", "places"),
            Mutant("StructFormer.distances_and_heights", ">= lengths[:, None]", "> lengths[:, None]"),
            Mutant("StructFormer.distances_and_heights", "[x, following]", "[following, x]"),
            Mutant("StructFormer.head_probabilities", ">= lengths[:, None] - 1", ">= lengths[:, None]"),
            Mutant("StructFormer.head_probabilities", "tau - margin(tau, delta, lengths)[:, None]", "tau"),
            Mutant(
                "StructFormer.head_probabilities",
                "margin(tau, delta, lengths)[:, None]",
                "margin(tau, delta, lengths).max()",
            ),
            Mutant("StructFormer.head_probabilities", "of_crossing, of_heights =", "of_heights, of_crossing ="),
            Mutant("DependencyLayer.attention", "to_head, to_dependents =", "to_dependents, to_head ="),
            Mutant("DependencyLayer.attention", "math.sqrt(query.shape[-1])", "query.shape[-1]"),
            Mutant("DependencyLayer.forward", "x + apply_dropout(self.attention(", "apply_dropout(self.attention("),
            Mutant("DependencyLayer.forward", "x + apply_dropout(self.outer(", "apply_dropout(self.outer("),
            Mutant("draw_masked", " | (drawn == drawn.amin(1, keepdim=True))", ""),
            Mutant("draw_masked", "masked_fill(~inside, 2)", "masked_fill(~inside, 0)"),
            Mutant("structformer:margin", "torch.minimum", "torch.maximum"),
            Mutant("structformer:margin", " | ((place[:, None] == 0) & (place == last))", ""),
            Mutant("structformer:margin", "cummax(-1)", "cummin(-1)"),
            Mutant("boundaries", "place >= place[:, None], 1", "place > place[:, None], 1"),
            Mutant("boundaries", "place < place[:, None], 1", "place <= place[:, None], 1"),
            Mutant("structformer:head_probabilities", "triu(1)", "triu(2)"),
            Mutant("structformer:head_probabilities", "left[:, i:, i, None]", "left[:, i:, :1]"),
        ),
        slow=True,
    ),
)
