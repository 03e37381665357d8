"""Batches, steps, schedules, data, settings and checkpoints."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "training, focusing",
        ("training/test_focusing.py",),
        (
            Mutant("Settings.focus_in", "self.focus_decay ** (epoch - 1)", "self.focus_decay**epoch"),
            Mutant("Settings.focus_in", "1.0 if self.focus is None", "0.0 if self.focus is None"),
            Mutant("train_epoch", "chosen = [places[each] for each in batch]", "chosen = batch"),
            Mutant("Guidance.span_scores", "strength * self.teachers.of", "self.teachers.of"),
            Mutant("SpanScores.starts", "N * (N - 1) // 2", "N * (N + 1) // 2"),
            Mutant("scores_of_teachers", "] += table", "] = table"),
            Mutant("_found_by", 'focus_on == "trees"', 'focus_on != "trees"'),
            Mutant("scores_of_teachers", 'focus_on != "average"', "True"),
            Mutant("scores_of_teachers", "number * len(sentences) + place + 1", "place + 1"),
            Mutant("ensemble_members:without_collapsed", "if len(collapsed) == len(models)", "if collapsed"),
            Mutant("ensemble_members:without_collapsed", "if member not in left_out", ""),
            Mutant("_Run._finish_epoch", "and not self._teacher_names", ""),
            Mutant("check_same", "before.get(TEACHERS) != now.get(TEACHERS)", "False"),
            Mutant("TreeLookup.spans_of", "min(self._used[key], len(trees) - 1)", "0"),
        ),
    ),
    Group(
        "training, loop",
        ("training/test_schedule.py", "models/test_em_pcfg.py", "training/test_training.py"),
        (
            Mutant(
                "_Run._finish_epoch",
                "dev_measure(record) < dev_measure(each) for each in earlier",
                "dev_measure(record) < dev_measure(each) for each in earlier[-1:]",
            ),
            Mutant(
                "_Run._finish_epoch",
                "dev_measure(record) < dev_measure(each) for each in earlier",
                "dev_measure(record) <= dev_measure(each) for each in earlier",
            ),
            Mutant(
                "is_finished",
                'last["epoch"] - last["best_epoch"] >= settings.patience',
                'last["epoch"] - last["best_epoch"] > settings.patience',
            ),
            Mutant(
                "train_epoch",
                "np.random.default_rng([settings.seed, position.epoch])",
                "np.random.default_rng([settings.seed, 1])",
            ),
            Mutant(
                "train_epoch",
                "np.random.default_rng([settings.seed, position.epoch])",
                "np.random.default_rng([0, position.epoch])",
            ),
            Mutant("train_epoch", "** (position.epoch - 1)", "** position.epoch"),
            Mutant("train_epoch", "len(batch) * (word_ids.shape[1] + 1)", "len(batch) * word_ids.shape[1]"),
            Mutant(
                "train_epoch",
                "numbers = settings.seed, position.epoch, position.batches",
                "numbers = settings.seed, position.epoch, 0",
            ),
            Mutant("train_epoch", "len(sentences[place]) <= longest", "len(sentences[place]) < longest"),
            Mutant("train_epoch", "batches[position.batches :]", "batches"),
            Mutant("equal_length_batches", "[batches[i] for i in rng.permutation(len(batches))]", "batches"),
            Mutant("equal_length_batches", "rng.permutation(len(sentences)).tolist()", "range(len(sentences))"),
            Mutant("equal_length_batches", "max(1, batch_tokens // length)", "batch_tokens // length + 1"),
            Mutant("noise_for", "[seed, epoch, batch, *group]", "[seed, batch, *group]"),
            Mutant("Learner.loss", "objective.sum() / sentences", "objective.sum()"),
            Mutant("GenerativeModel.objective", "dropout, span_scores) - cost", "dropout, span_scores)"),
            Mutant("models.base:Model", "= (0.75, 0.999)", "= (0.9, 0.999)"),
            Mutant("Settings.longest_in", "self.curriculum + epoch - 1", "self.curriculum + epoch"),
        ),
    ),
    Group(
        "training, Adam",
        ("training/test_training.py",),
        (
            Mutant("AdamLearner.step", "min(1.0, self.clip / (norm + 1e-6))", "self.clip / (norm + 1e-6)"),
            Mutant("AdamLearner.step", 'group["lr"] / (1 - beta1**steps)', 'group["lr"]'),
            Mutant("AdamLearner.step", "1 / math.sqrt(1 - beta2**steps)", "1.0"),
            Mutant("update", "(g * g - square[k]) * square_rate", "(g - square[k]) * square_rate"),
            Mutant("_shares", "total * (k + 1) // count - before", "total * (k + 1) // count"),
        ),
    ),
    Group(
        "training, groups",
        ("training/test_groups.py",),
        (
            Mutant("grouped_step", "learner.loss(found, B)", "learner.loss(found, len(found))"),
            Mutant("grouped_step", "threads.in_fixed_pieces(groups)", "threads.torch_on_one_core()"),
            Mutant(
                "grouped_step",
                "for k in filled if begin <= k < end",
                "for k in filled if begin <= k <= end",
                equivalent="what a process computes for a group of another one is not used",
            ),
            Mutant("grouped_step", "learner.zero_grad(set_to_none=True)", "pass"),
            Mutant(
                "Batch.scores_of", "self.span_scores[sentences]", "self.span_scores[: sentences.stop - sentences.start]"
            ),
            Mutant("_of_all_processes", "row[begin:end]", "row[: end - begin]"),
            Mutant("summed_over_groups", "received[rank, row]", "received[rank, 0]"),
            Mutant("_nodes_to_send", "any(first <= k < last for k in filled)", "True"),
            Mutant("tree_sum", "middle = (first + last) // 2", "middle = first + 1"),
            Mutant(
                "largest_within", "if begin <= first and last <= end:", "if last - first == 1 and begin <= first < end:"
            ),
            Mutant("in_groups", "if groups < world.size:", "if groups < world.size - 1:"),
            Mutant("check_groups", "is not Learner.update", "is None"),
            Mutant("World.share", "items * (rank + 1) // self.size", "items // self.size * (rank + 1)"),
            Mutant("_noise_of_group", "group + 1", "group"),
            Mutant("_noise_of_group", "noise_for(*numbers, group + 1)", "noise_for(*numbers, 1)"),
            Mutant("in_pieces", "with _divided_into(1):", "with _divided_into(available()):"),
            Mutant("on_one_core", "torch_on_one_core(), _divided_into(1)", "torch_on_one_core()"),
            Mutant("in_groups", "if is_launched() else 1", "if is_launched() else 2"),
            Mutant("check_same", 'and now["settings"]["gradient_groups"] == 1', ""),
        ),
        slow=True,
    ),
    Group(
        "training, processes",
        ("training/test_torchrun.py",),
        (
            Mutant("World.is_first", "self.rank == 0", "True"),
            Mutant("in_groups", "DEFAULT_GROUPS if is_launched()", "1 if is_launched()"),
            Mutant("is_first_failure", '", 1) == 1', '", 1) > 0'),
            Mutant("run", "_silence() if launched_rank()", "nullcontext() if launched_rank()"),
            Mutant("check_same_run", "if mine[name] != of_first.get(name):", "if not mine:"),
            Mutant("check_restarts", "if world.restarts and not resume:", "if False:"),
            Mutant("LeadingFolder.position", "self._send(CHECKPOINT)", "self._world.bytes_of_first(b'')"),
        ),
        slow=True,
    ),
    Group(
        "training, data and runs",
        ("training/test_schedule.py", "training/test_training.py", "corpus/test_text.py", "training/test_resume.py"),
        (
            Mutant("prepare", "dev_set.of_lengths(2)", "dev_set.of_lengths(2, settings.max_length)"),
            Mutant(
                "prepare",
                "(p.words for p in train.parses)",
                "(p.words for p in train.of_lengths(2, settings.max_length).parses)",
            ),
            Mutant("prepare", "if i % every", "if i"),
            Mutant("evaluate_dev", "round(result.scores.sentence_f1, 2)", "round(result.scores.corpus_f1, 2)"),
            Mutant("Position.next_epoch", "records=self.records", "records=[]"),
            Mutant("FREE_TO_CHANGE", '"epochs", "patience"', '"epochs", "patience", "seed"'),
            Mutant("check_same", 'for name in ("grammar", "words", "text")', 'for name in ("grammar", "words")'),
            Mutant(
                "_converted",
                "if expected is float and type(value) is int:",
                "if expected is float and isinstance(value, int):",
            ),
            Mutant("Settings.sizes", "p if p > 200 else 200", "p if p >= 200 else 200", equivalent="200 either way"),
            Mutant("Settings.sizes", "max(1, p // 2)", "p // 2"),
        ),
        slow=True,
    ),
)
