"""Model folders, batches, parsing, evaluation of systems, export."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "parser, ensembles",
        ("test_ensembles.py",),
        (
            Mutant("Ensemble._mean", "weight / total", "1 / len(having)"),
            Mutant("Ensemble._mean", "if not view.failure", ""),
            Mutant("_put_together", "* labels.label_posteriors", ""),
            Mutant("_parts", "weight * own / total", "weight"),
            Mutant("labels_of_trees", "pcfg.forbid(spans_not_in(trees, pcfg.longest))", "pcfg"),
            Mutant("MemberAgreement.collapsed", "with_others[row] < FAR * usual", "with_others[row] > FAR * usual"),
            Mutant("MemberAgreement.add", "length < SHORTEST", "False"),
            Mutant("_inner_spans", "(spans[:, 1] - spans[:, 0] < length)", "True"),
            Mutant("CommonTextRules._agreed", "other.words != sentence.words", "False"),
            Mutant("CommonTextRules.with_tokeniser", "each.with_tokeniser(code)", "each"),
            Mutant("_member", 'checksum(member) != record.get("sha256")', "False"),
            Mutant("best_trees", "chart[:length, length] += branching_prior", "chart[0, :length] += branching_prior"),
        ),
    ),
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
            Mutant("TreeParser._begun", "done += len(window)", "done += 0"),
            Mutant("Parser._analyse_batch", "(how.seed, done + place)", "(0, done + place)"),
            Mutant("TreeParser._windows", "len(window) == WINDOW or isinstance(given, Pause)", "len(window) == WINDOW"),
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
                "len(batch) == most or ",
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
    Group(
        "parser, constraints",
        ("decoding/test_constrained.py", "test_constrained_parsing.py"),
        (
            Mutant(
                "Forbidden.of", "mask[place, : len(table), : len(table)]", "mask[place, -len(table) :, -len(table) :]"
            ),
            Mutant(
                "Forbidden.condition",
                "found.log_partition[places] = of_all.to",
                "found.log_partition[places] += 0 * of_all.to",
            ),
            Mutant(
                "Forbidden.condition", "unconstrained.select(places)", "unconstrained.select(slice(0, len(places)))"
            ),
            Mutant("Forbidden.condition", "if has_trees}", "if True}"),
            Mutant(
                "Forbidden.condition",
                ".clamp(max=0)",
                "",
                equivalent="differs from the exact value by rounding alone",
            ),
            Mutant("without", '{"spans": found.spans.masked_fill(forbidden.mask, -torch.inf)}', "{}"),
            Mutant("without", "found.best_label_posterior.masked_fill(forbidden.mask, -torch.inf)", "found.spans"),
            Mutant("decode", "unconstrained.forbid(forbidden.mask)", "unconstrained"),
            Mutant("only_text", 'stream.kind not in (None, "text")', "False"),
            Mutant("Parser.distributions", "found if forbidden is None else found.forbid(forbidden.mask)", "found"),
            Mutant("Parser._analysis", 'failure = "constraints"', 'failure = "no derivation"'),
            Mutant("Parser._analysis", "replace(flat, log_probability=found.log_probability, ", "replace(flat, "),
            Mutant("TreeParser.analyse", "constraints=Constraints.of(constraints)", "constraints=None"),
            Mutant("TreeParser.parse", "constraints=constraints)", "constraints=None)"),
            Mutant("ConstraintTally.watch", " and log_p > -math.inf", ""),
            Mutant(
                "parser.ensemble:_trees",
                "[torch.from_numpy(forbidden)] = -torch.inf",
                "[torch.from_numpy(forbidden)] = 0",
            ),
            Mutant("compare", "(*first.options, *second.options)", "first.options"),
            Mutant("cli.parse:parse", '"branching-prior": branching_prior or None', '"branching-prior": None'),
            Mutant("cli.parse:_made_of", "return checksum(constraints)", "return None"),
            Mutant("System.predictions", "branching_prior=branching_prior)]", ")]"),
        ),
    ),
    Group(
        "parser, ahead of its results",
        ("test_parsing_ahead.py",),
        (
            Mutant("in_order", "window.is_last or ", ""),
            Mutant("in_order", "len(waiting) > WINDOWS_AHEAD", "len(waiting) > 2 * WINDOWS_AHEAD"),
            Mutant("in_order", "window, failure = None, error", "raise error"),
            Mutant("Budget.__call__", "self._used + needed <= limit", "needed <= limit"),
            Mutant("Budget.__call__", "not self._used or ", ""),
        ),
    ),
)
