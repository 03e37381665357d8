"""Experiments, reports, the book of a grammar, files, the command line."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "experiments",
        (
            "experiments/test_plan.py",
            "experiments/test_table.py",
            "experiments/test_stopping.py",
            "experiments/test_running.py",
        ),
        (
            Mutant("Plan.runs", "(*earlier.decoders, *run.decoders) if earlier else run.decoders", "run.decoders"),
            Mutant(
                "Plan._in_order",
                "group.seeds[place : place + 1]",
                "group.seeds[: place + 1]",
                equivalent="runs come again, and whoever asks for them merges those of one name into the first",
            ),
            Mutant("Plan._in_order", "group.seeds[place : place + 1]", "group.seeds"),
            Mutant("DataSet.as_record", "Path(self.source).name", "self.source"),
            Mutant("Status.finish", '["best_epoch"] - 1', '["best_epoch"] - 2'),
            Mutant("Status.at_work", '"finished", "stopped", "failed"', '"finished", "stopped"'),
            Mutant("_urgency", '{"failed": 1, "stopped": 2', '{"failed": 3, "stopped": 2'),
            Mutant("_sentence_f1", "100 * np.mean(f1, axis=0)", "100 * f1[0]"),
            Mutant("explain", "-code == signal.SIGKILL", "-code == signal.SIGTERM"),
            Mutant("gold_of", "data.split(SPLIT)", 'data.split("dev")'),
        ),
    ),
    Group(
        "report",
        (
            "report/test_published.py",
            "report/test_contents.py",
            "report/test_reading.py",
            "report/test_page.py",
            "report/test_render.py",
        ),
        (
            Mutant("spread", "pstdev(known) if len(known) > 1 else None", "0.0"),
            Mutant(
                "perplexity_of",
                "None if None in by_seed.values() else spread(by_seed.values())",
                "spread(by_seed.values())",
            ),
            Mutant("chosen_run", "min(runs,", "max(runs,"),
            Mutant(
                "decoders_of",
                "[*(d for d in DECODERS if d in names), *sorted(names.difference(DECODERS))]",
                "sorted(names)",
            ),
            Mutant("Runs.units", "larger = any(results < others for _, _, others in found)", "larger = False"),
            Mutant("Runs.looks", "next(number for number in count() if number not in taken)", "0"),
            Mutant("System.has_size_of", 'self.preterminals in (None, settings.get("preterminals"))', "True"),
            Mutant("Published._system", 'settings.get("compound") is True or ', ""),
            Mutant("Published.treebank", 'data.lower().replace("_", "-")', "data.lower()"),
            Mutant("run_folder", '".." in relative.parts', "False"),
            Mutant("_state", "'s' * (epochs != 1)", "'s'"),
        ),
    ),
    Group(
        "book",
        ("test_book.py", "models/test_lookup.py"),
        (
            Mutant("percent", "0 < share < 0.0005", "0 < share < 0"),
            Mutant("count_text", "analysis.failure is not None", "False"),
            Mutant("_chosen", "(-shares[name], place[name])", "(shares[name], place[name])"),
            Mutant("_Writer._pairs", "found.setdefault(phrase, rule.probability)", "found[phrase] = rule.probability"),
            Mutant("_Writer.__init__", "p >= NEGLIGIBLE * pairs[0][1]", "True"),
            Mutant("LowRankRules.strongest", "float(bounds[0]) < least", "float(bounds[0]) < 2 * least"),
            Mutant("LowRankRules._components", "head > 0", "head > 0.5"),
        ),
    ),
    Group(
        "files and command line",
        (
            "experiments/test_stopping.py",
            "test_whole_sentences.py",
            "test_cli.py",
            "test_bad_inputs.py",
            "test_bench.py",
            "test_resume.py",
        ),
        (
            Mutant("LineOutput._resume_lines", "self._file.truncate(end)", "self._file.seek(end)"),
            Mutant("LineOutput._check_same", "if then.get(name) != value:", "if False:"),
            Mutant("LineOutput._resume_lines", "self._file.seek(end)", "self._file.seek(0)"),
            Mutant("_remaining", "if there < done:", "if there > done:"),
            Mutant("place_for", "place.exists() and not overwrite", "False"),
            Mutant("write_atomically", "temporary.unlink(missing_ok=True)", "pass"),
            Mutant("StopRequest.is_repeated", "number == self.signal and ", ""),
            Mutant("stop_requests.on_signal", "elif not request.is_repeated(number):", "else:"),
        ),
    ),
    Group(
        "starting up",
        ("runtime/test_compilation.py", "test_startup.py"),
        (
            Mutant("expect_words", "_words_to_spare - count", "_words_to_spare"),
            Mutant("spare_loops", "finally:\n        _words_to_spare = 0", "finally:\n        pass"),
            Mutant("chosen_engine", "if loops_are_spared():", "if False:"),
            Mutant("Loop._built", "names[name] = called._built()", "called._built()"),
            Mutant("_few_without_loops", "FEW_WORDS if out is None else 0", "FEW_WORDS"),
            Mutant("check_loadable", "read_config(path)", "pass"),
            Mutant("_readable", "or path.is_dir() or not path.exists()", ""),
            Mutant("only_shapes", ", _WithoutDecompositions()", ""),
        ),
    ),
)
