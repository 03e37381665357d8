"""Model folders, batches, parsing, evaluation of systems, export."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "parser",
        (
            "structures/test_distributions.py",
            "test_decoders.py",
            "test_parser.py",
            "test_bad_inputs.py",
            "test_whole_sentences.py",
            "test_export.py",
            "test_earlier_models.py",
            "test_systems.py",
            "test_dense_training.py",
            "test_training.py",
        ),
        (
            Mutant("Parser.analyse_many", "done += len(window)", "done += 0"),
            Mutant("Parser.analyse_many", "(seed, done + place)", "(0, done + place)"),
            Mutant("Parser._windows", "len(window) == WINDOW or isinstance(given, Pause)", "len(window) == WINDOW"),
            Mutant("Parser.strongest_rules", "-rule.probability", "rule.probability"),
            Mutant("with_punctuation", "place[words.spans[:, 1] - 1] + 1", "place[words.spans[:, 1] - 1]"),
            Mutant(
                "Analysis.put_together",
                "all_posteriors[place[:, None], place + 1] = posteriors[:-1, 1:]",
                "all_posteriors[place[:, None], place] = posteriors[:-1, :-1]",
            ),
            Mutant("Analysis.put_together", "np.ones(N, np.float32)", "np.zeros(N, np.float32)"),
            Mutant("decode", "found.log_partition.sub_(cost)", "found.log_partition.sub_(0)"),
            Mutant("log_probabilities", "(found - cost)", "found"),
            Mutant("reliable_log_partition", "in lost.nonzero()[:, 0].tolist()", "in ()"),
            Mutant("reliable_marginals", "if bool(suspect.any()):", "if False:"),
            Mutant(
                "_suspect",
                "found.spans.amax((1, 2)) - 1,",
                "found.spans.amax((1, 2)) * 0,",
                equivalent="the sums are off too",
            ),
            Mutant("memory_batches", "(len(batch) + 1) * chart_bytes", "chart_bytes"),
            Mutant(
                "memory_batches",
                "len(batch) == MOST_SENTENCES or ",
                "",
                equivalent="bounds the memory; results do not depend on how sentences are batched",
            ),
            Mutant("Grammar.for_parsing", "self if self.latent or too_large", "self if too_large"),
            Mutant("padded", "row[: len(words)] = words", "row[-len(words) :] = words"),
            Mutant("_covering", "kept[probabilities[kept] > 0]", "kept"),
            Mutant("export", "(probabilities[kept] / share)", "probabilities[kept]"),
            Mutant("export", "1 - share / float(probabilities.sum())", "share / float(probabilities.sum())"),
            Mutant("load_tensors", 'seal.get("sha256") != _checksum(tensors, facts)', 'seal.get("sha256") is None'),
            Mutant("load_tensors", "not bool(tensor.isfinite().all())", "False"),
            Mutant("part", "not path.resolve().is_relative_to(folder.resolve())", "False"),
            Mutant("load_model", "len(vocabulary) != words", "False"),
            Mutant(
                "_settings_but_seed", '("seed", "device", "checkpoint_minutes")', '("device", "checkpoint_minutes")'
            ),
            Mutant("systems:_rows", "likelihood.index(min(likelihood))", "likelihood.index(max(likelihood))"),
            Mutant("predict", "counts = counts + reliability_counts", "counts = reliability_counts"),
        ),
    ),
)
