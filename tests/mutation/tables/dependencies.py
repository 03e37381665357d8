"""CoNLL-U, heads from arc posteriors, and their scores."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "dependencies, decoding",
        ("decoding/test_dependencies.py",),
        (
            Mutant("projective_heads", "weights[0] + scores[0, 0]", "scores[0, 0]"),
            Mutant("projective_heads", "(s if side else t) + 1", "(t if side else s) + 1"),
            Mutant("heads:_fill", "highest + arcs[t, s]", "highest + arcs[s, t]"),
            Mutant("heads:_fill", "for k in range(s + 2, t + 1)", "for k in range(s + 2, t)"),
            Mutant("heads:_weights", "* longest - lengths", "* longest"),
            Mutant("heads:_weights", "lengths[0] = 0", "lengths[0] += 0"),
            Mutant("_nearest_middle", ".argmin()", ".argmax()"),
            Mutant("heads_within", "arcs[k:j, i:k] + left", "arcs[k:j, i:k]"),
            Mutant("heads_within", "weights[0] + best[0, N]", "best[0, N]"),
            Mutant("heads:_splits", "if len(found) != len(pairs)", "if False"),
        ),
    ),
    Group(
        "dependencies, CoNLL-U and scores",
        ("corpus/test_conllu.py", "parser/test_dependencies.py"),
        (
            Mutant("ConlluSentence.with_words", "punctuation.keep or ", ""),
            Mutant("ConlluSentence.head_numbers", "if len(roots) > 1", "if len(roots) > 2"),
            Mutant("ConlluSentence._head", "if head > len(self.heads)", "if head > len(self.heads) + 1"),
            Mutant("_Builder._add_range", "first <= self.range_end", "first < self.range_end"),
            Mutant("_Builder._add_word", "self.empty_nodes = 0", "pass"),
            Mutant("_Builder.finish", "if self.range_end > len(self.forms)", "if False"),
            Mutant("conllu:_cycle", "reaches_root[each] = True", "pass", "only saves time"),
            Mutant("write_conllu", "following[place] == sentence.offsets[place][1]", "True"),
            Mutant("_looks_like_conllu", "len(columns) == 10", "False"),
            Mutant("_first_word_is_cut", "rest[:1].isdigit() or ", ""),
            Mutant("heads_with_punctuation", "places - token).argmin()", "places - token).argmax()"),
            Mutant("without_punctuation", "while head and", "if head and"),
            Mutant("right_chain", "np.arange(2, n + 1)", "np.arange(1, n)"),
            Mutant("HeadScores.of", "(guess > 0) & ", ""),
            Mutant("load_gold_heads", "UNSPECIFIED not in sentence.upos", "True"),
            Mutant("read_head_prediction", "compress(is_word, present)", "is_word"),
            Mutant("data:prepare", " and not rules.punctuation.keep", ""),
            Mutant("possible_readings", 'kind == "conllu"', "False"),
            Mutant("Parser._analyse_batch", "how.heads,\n", '"projective",\n'),
            Mutant("predict_heads", "branching=branching, ", ""),
            Mutant("score_heads", "gold.signature(prediction.options)", "gold.signature()"),
        ),
    ),
)
