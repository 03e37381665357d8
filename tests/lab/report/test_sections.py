"""The figures of the tables, counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ramify.lab.report.exhibit import Number
from ramify.lab.report.sections.labels import by_label, by_length, disjoint_ranges, heat_map_values, pure_symbols
from ramify.lab.report.sections.models import (
    cost,
    every_run,
    find_series,
    scores,
    symbols,
    treebank_comparison,
    use_of_symbols,
)
from ramify.lab.report.write_report import Page
from ramify.lab.results.collection import choose_run
from ramify.lab.results.schema import Induced, spread
from tests.lab.made_results import planned, tiny, write_plan
from tests.lab.made_results import scores as scored
from tests.lab.report.looking import baseline, made, rows, table_of


def test_mean_biased_deviation_and_maximum() -> None:
    found = spread([50.0, 56.0, None])
    assert found is not None
    assert (found.mean, found.std, found.best) == (53.0, 3.0, 56.0)
    single = spread([50.0])
    assert single is not None
    assert single.std is None
    assert spread([None]) is None


def test_the_main_table(tmp_path: Path) -> None:
    runs = made(
        tmp_path,
        tiny("en", "a", 0, 50.0, evaluation={"perplexity": 100.0}),
        tiny("en", "a", 1, 56.0, evaluation={"perplexity": 110.0}),
        tiny("en", "a", 0, 40.0, "viterbi"),
        tiny("en", "b", 0, 30.0),
        baseline("en", "random", 18.0, run_f1=[17.5, 18.5]),
        baseline("en", "left", 8.0),
    )
    table = table_of(scores(runs))
    assert rows(table) == [
        {
            "model": "a",
            "seeds": "2 / 1",
            "S-F1 MBR": Number(53.0, 3.0),
            "max MBR": Number(56.0),
            "S-F1 Viterbi": Number(40.0),
            "perplexity": Number(105.0, 5.0),
        },
        dict.fromkeys(("S-F1 Viterbi", "max MBR", "perplexity"))
        | {"model": "b", "seeds": Number(1, digits=0), "S-F1 MBR": Number(30.0)},
        dict.fromkeys(("S-F1 Viterbi", "max MBR", "perplexity", "seeds"))
        | {"model": "left (baseline)", "S-F1 MBR": Number(8.0)},
        dict.fromkeys(("S-F1 Viterbi", "perplexity", "seeds"))
        | {"model": "random (baseline)", "S-F1 MBR": Number(18.0, 0.5), "max MBR": Number(18.5)},
    ]
    assert "2 seeds (0, 1); 1 seed (0) of b" in table.notes[0]
    assert "Signature: signed." in table.notes


def test_the_set_that_was_scored_is_named(tmp_path: Path) -> None:
    for split in ("test", "dev"):
        study = made(tmp_path / split, tiny("en", "a", 0, 50.0, split=split))
        page = Page("A title", "", {"scores": [*scores(study)]}, results=study.results)
        assert f"of the {split} set" in page.as_html()


def test_use_of_symbols(tmp_path: Path) -> None:
    def about(cosine: float, used: int) -> dict[str, Any]:
        return {"rule_cosine": cosine, "nonterminals_used": {"items": 9, "used": used, "carrying": 1, "entropy": 1.0}}

    study = made(
        tmp_path,
        tiny("en", "a", 0, 50.0, evaluation=about(0.25, 20)),
        tiny("en", "a", 1, 50.0, evaluation=about(0.75, 30)),
        tiny("en", "b", 0, 50.0),
    )
    assert rows(table_of(use_of_symbols(study))) == [
        {
            "model": "a",
            "seeds": Number(2, digits=0),
            "nonterminals used": Number(25.0, 5.0),
            "rule cosine": Number(0.5, 0.25, 3),
        }
    ]
    assert not [*use_of_symbols(made(tmp_path / "other", tiny("en", "b", 0, 50.0)))]


def test_scores_with_different_signatures_are_told_apart(tmp_path: Path) -> None:
    runs = made(tmp_path, tiny("en", "a", 0, 50.0), tiny("en", "b", 0, 50.0, evaluation={"signature": "other"}))
    notes = table_of(scores(runs)).notes
    assert "Signature (a): signed." in notes
    assert "Signature (b): other." in notes


def test_sentences_without_a_parse_are_counted_in_a_note(tmp_path: Path) -> None:
    lost = {"failures": {"no parse": [1, 2, 9]}, "scores": scored(50.0, 100)}
    runs = made(tmp_path, tiny("en", "a", 0, 50.0, evaluation=lost), tiny("en", "b", 7, 56.0))
    [note] = [note for note in table_of(scores(runs)).notes if "flat trees" in note]
    assert "3 of 100 sentences" in note
    assert "by a, seed 0" in note


def test_treebanks_by_models(tmp_path: Path) -> None:
    runs = made(
        tmp_path,
        tiny("de", "a", 0, 40.0),
        tiny("de", "a", 1, 42.0),
        tiny("fr", "a", 0, 50.0),
        tiny("de", "b", 0, 30.0),
        tiny("fr", "b", 0, 31.0),
        tiny("fr", "once", 0, 1.0),
        baseline("de", "right", 10.0),
    )
    assert rows(table_of(treebank_comparison(runs))) == [
        {"data": "de", "a": Number(41.0, 1.0), "b": Number(30.0), "right (baseline)": Number(10.0)},
        {"data": "fr", "a": Number(50.0), "b": Number(31.0), "right (baseline)": None},
        {"data": "mean", "a": Number(45.5), "b": Number(30.5), "right (baseline)": None},
    ]
    assert not [*treebank_comparison(made(tmp_path / "one", tiny("de", "a", 0, 40.0)))]


def label(recall: float, share: float) -> dict[str, float]:
    return {"recall": recall, "constituents": 10, "share": share, "mean_length": 3.5}


def test_recall_by_label(tmp_path: Path) -> None:
    first = {"NP": label(70.0, 60.0), "VP": label(20.0, 39.8), "X": label(1.0, 0.2)}
    second = {"NP": label(80.0, 60.0), "VP": label(20.0, 39.8), "X": label(1.0, 0.2)}
    runs = made(
        tmp_path,
        tiny("en", "a", 0, 50.0, evaluation={"recall_by_label": first}),
        tiny("en", "a", 1, 50.0, evaluation={"recall_by_label": second}),
        baseline("en", "right", 10.0, recall_by_label={"NP": label(24.0, 60.0)}),
    )
    table = table_of(by_label(runs))
    assert rows(table) == [
        {
            "label": "NP",
            "share, %": Number(60.0),
            "mean length": Number(3.5),
            "a": Number(75.0, 5.0),
            "right (baseline)": Number(24.0),
        },
        {
            "label": "VP",
            "share, %": Number(39.8),
            "mean length": Number(3.5),
            "a": Number(20.0, 0.0),
            "right (baseline)": None,
        },
    ]
    assert table.notes[0].startswith("1 labels")


def test_f1_by_length(tmp_path: Path) -> None:
    def lengths(short: float, long: float) -> dict[str, Any]:
        return {"by_length": {"2-10": scored(short, 7), "11-20": scored(long, 3), "2-40": scored(1.0, 10)}}

    runs = made(
        tmp_path,
        tiny("en", "a", 0, 50.0, evaluation=lengths(60.0, 40.0)),
        tiny("en", "a", 1, 50.0, evaluation=lengths(70.0, 40.0)),
    )
    assert rows(table_of(by_length(runs)))[:2] == [
        {"words": "2-10", "sentences": Number(7, digits=0), "a": Number(65.0, 5.0)},
        {"words": "11-20", "sentences": Number(3, digits=0), "a": Number(40.0, 0.0)},
    ]
    assert disjoint_ranges(["2-10", "11-20", "41+", "2-40"]) == ["2-10", "11-20", "41+"]
    assert disjoint_ranges(["11-20", "21-30", "2-40"]) == ["11-20", "21-30"]


def sized(name: str, p: int, f1: float, seed: int = 0, **settings: Any) -> dict[str, Any]:
    kind = {"model": "tn-pcfg", "preterminals": p, "activation": "relu", "compound": False, "seed": seed}
    return tiny("en", name, seed, f1, settings=kind | settings, evaluation={"perplexity": 1000.0 / p})


def test_sizes_of_one_family_make_a_series(tmp_path: Path) -> None:
    runs = made(
        tmp_path,
        sized("large", 500, 57.0),
        sized("middle", 125, 55.0),
        sized("small", 60, 50.0),
        sized("small", 60, 52.0, seed=1),
        sized("tanh", 60, 10.0, activation="tanh"),
        sized("dense", 30, 10.0, model="n-pcfg"),
    )
    (series,) = find_series(runs)
    assert (series.name, list(series.runs), series.other_differences()) == ("tn-pcfg", [60, 125, 500], [])
    assert rows(table_of(symbols(runs))) == [
        {
            "preterminals": Number(60, digits=0),
            "seeds": Number(2, digits=0),
            "S-F1": Number(51.0, 1.0),
            "perplexity": Number(1000 / 60, 0.0),
        },
        {
            "preterminals": Number(125, digits=0),
            "seeds": Number(1, digits=0),
            "S-F1": Number(55.0),
            "perplexity": Number(8.0),
        },
        {
            "preterminals": Number(500, digits=0),
            "seeds": Number(1, digits=0),
            "S-F1": Number(57.0),
            "perplexity": Number(2.0),
        },
    ]


def test_a_series_says_what_else_differs_or_is_split_where_sizes_are_twice(tmp_path: Path) -> None:
    loose = made(
        tmp_path / "a",
        sized("s", 30, 50.0, batch_size=4),
        sized("m", 60, 50.0, batch_size=4, rank=50),
        sized("l", 500, 50.0, batch_size=16),
    )
    assert next(find_series(loose)).other_differences() == ["batch_size", "rank"]
    assert any("also differ in batch_size" in note for note in table_of(symbols(loose)).notes)
    split = made(
        tmp_path / "b",
        sized("s4", 60, 50.0, batch_size=4),
        sized("s16", 60, 50.0, batch_size=16),
        sized("m16", 120, 50.0, batch_size=16),
        sized("l16", 500, 50.0, batch_size=16),
    )
    (series,) = find_series(split)
    assert [of[0].model for of in series.runs.values()] == ["s16", "m16", "l16"]


INDUCED = Induced(
    usage={"A": 10, "B": 6, "C": 4},
    alignment={"NP": {"A": 3, "B": 1}, "VP": {"B": 3, "C": 1}},
    subtypes={},
)


def test_pure_symbols() -> None:
    # A stands for NP, B for nothing; C has too few constituents to tell.
    counted = Induced({"A": 9, "B": 9, "C": 9}, {"NP": {"A": 9, "B": 4}, "VP": {"A": 1, "B": 4, "C": 4}}, {})
    assert pure_symbols(counted) == (1, pytest.approx(100 * 10 / 22))


def test_heat_map() -> None:
    labels, nonterminals, values = heat_map_values(INDUCED, {"VP": 100, "NP": 50})
    assert (labels, nonterminals) == (["VP", "NP"], ["A", "B", "C"])
    assert values == [[0.0, 0.75, 0.25], [0.75, 0.25, 0.0]]


def test_heat_map_of_many_labels_and_symbols() -> None:
    many = Induced(
        usage={f"NT-{i}": 100 - i for i in range(40)},
        alignment={f"L{i}": {f"NT-{i}": 2, "NT-39": 2} for i in range(10)},
        subtypes={},
    )
    labels, nonterminals, values = heat_map_values(many, {f"L{i}": 10 - i for i in range(10)})
    assert labels == [*(f"L{i}" for i in range(7)), "OTHER"]
    assert nonterminals == [f"NT-{i}" for i in range(30)]
    # NT-39 is not shown, and half of every label is its own.
    assert [sum(row) for row in values] == [0.5] * 8
    assert values[7][7:10] == [2 / 12] * 3


def test_the_run_with_the_best_dev_likelihood_is_shown(tmp_path: Path) -> None:
    def epochs(*perplexities: float) -> list[dict[str, float]]:
        return [{"epoch": n, "dev_perplexity": value} for n, value in enumerate(perplexities, 1)]

    runs = made(
        tmp_path,
        tiny("en", "a", 0, 90.0, epochs=epochs(50, 40, 45)),
        tiny("en", "a", 1, 10.0, epochs=epochs(60, 39)),
        tiny("en", "a", 2, 10.0),
    )
    assert choose_run(runs.by_model["en", "a"]).seed == 1


def test_cost(tmp_path: Path) -> None:
    more = {"parameters": 3_600_000, "peak_memory_mb": 500.0, "threads": 2}
    runs = made(
        tmp_path,
        tiny("en", "a", 0, 50.0, seconds_per_epoch=10.0, machine={"processor": "CPU"}, **more),
        tiny("en", "a", 1, 50.0, seconds_per_epoch=20.0, machine={"processor": "CPU"}, **more),
    )
    expected = {
        "model": "a",
        "seeds": Number(2, digits=0),
        "parameters, millions": Number(3.6, None, 2),
        "seconds an epoch": Number(15.0, 5.0),
        "epochs": None,
        "peak memory, MB": Number(500.0, 0.0, 0),
    }
    table = table_of(cost(runs))
    assert rows(table) == [expected]
    assert "Hardware: CPU, 2 threads." in table.notes
    other = made(tmp_path, tiny("en", "b", 0, 50.0, machine={"processor": "Other"}, **more))
    assert [row["hardware"] for row in rows(table_of(cost(other)))] == ["CPU, 2 threads", "Other, 2 threads"]


def test_groups_show_the_decoders_of_their_plan(tmp_path: Path) -> None:
    groups = {"one": planned("en", "a", 0), "two": planned("en", "a", 0, decoders=("mbr", "viterbi"))}
    write_plan(tmp_path, groups)
    runs = made(tmp_path, tiny("en", "a", 0, 50.0), tiny("en", "a", 0, 40.0, "viterbi"))
    heads = [list(rows(table_of(scores(runs), place))[0]) for place in (0, 1)]
    assert heads == [["model", "seeds", "S-F1 MBR"], ["model", "seeds", "S-F1 MBR", "S-F1 Viterbi"]]


def test_no_mean_of_perplexities_of_which_one_is_infinite(tmp_path: Path) -> None:
    runs = made(tmp_path, tiny("en", "a", 0, 50.0, evaluation={"perplexity": 100.0}), tiny("en", "a", 1, 50.0))
    (row,) = rows(table_of(scores(runs)))
    assert "perplexity" not in row


def test_a_bound_is_called_one(tmp_path: Path) -> None:
    runs = made(
        tmp_path,
        tiny("en", "plain", 0, 50.0, settings={"model": "n-pcfg"}, evaluation={"perplexity": 100.0}),
        tiny("en", "vae", 0, 50.0, settings={"model": "c-pcfg"}, evaluation={"perplexity": 100.0}),
    )
    (note,) = [note for note in table_of(scores(runs)).notes if "upper bound" in note]
    assert "vae" in note
    assert "plain" not in note


def test_a_model_may_be_called_like_a_baseline(tmp_path: Path) -> None:
    records = [of for data in ("de", "fr") for of in (tiny(data, "random", 0, 70.0), baseline(data, "random", 18.0))]
    expected = {"data": "de", "random": Number(70.0), "random (baseline)": Number(18.0)}
    assert rows(table_of(treebank_comparison(made(tmp_path, *records))))[0] == expected


def test_groups_show_the_seeds_of_their_plan(tmp_path: Path) -> None:
    write_plan(tmp_path, {"both": planned("en", "a", 0, 1), "first": planned("en", "a", 0)})
    section = [*scores(made(tmp_path, tiny("en", "a", 0, 50.0), tiny("en", "a", 1, 60.0)))]
    both, first = (rows(table_of(section, place))[0] for place in range(2))
    assert (both["seeds"], both["S-F1 MBR"]) == (Number(2, digits=0), Number(55.0, 5.0))
    assert (first["seeds"], first["S-F1 MBR"]) == (Number(1, digits=0), Number(50.0))


def test_runs_that_only_a_smaller_group_has_are_drawn(tmp_path: Path) -> None:
    a, b = planned("en", "a", 0), planned("en", "b", 0)
    write_plan(tmp_path, {"large": [*a, *b], "small": planned("en", "a", 1), "part": a})
    runs = made(tmp_path, *(tiny("en", model, seed, 50.0) for model, seed in (("a", 0), ("b", 0), ("a", 1))))
    assert [(unit.group.name, list(unit.models)) for unit in runs.units()] == [("large", ["a", "b"]), ("small", ["a"])]


def test_cost_is_of_all_seeds_whatever_their_decoders(tmp_path: Path) -> None:
    runs = made(
        tmp_path,
        tiny("en", "a", 0, 50.0, "viterbi", seconds_per_epoch=10.0),
        tiny("en", "a", 1, 50.0, seconds_per_epoch=20.0),
    )
    assert [row["seconds an epoch"] for row in rows(table_of(cost(runs)))] == [Number(15.0, 5.0)]


def test_long_names_stay_apart(tmp_path: Path) -> None:
    runs = made(tmp_path, tiny("en", "x" * 99 + "a", 0, 50.0), tiny("en", "x" * 99 + "b", 0, 60.0))
    assert runs.problems == []
    assert [row["S-F1 MBR"] for row in rows(table_of(scores(runs)))] == [Number(50.0), Number(60.0)]


def test_a_model_looks_the_same_in_all_figures_and_unlike_those_beside_it(tmp_path: Path) -> None:
    together = {"sizes": "abcdefg", "kinds": "ahi", "few": "ja"}
    write_plan(tmp_path, {name: [planned("en", m, 0)[0] for m in models] for name, models in together.items()})
    looks = made(tmp_path, *(tiny("en", model, 0, 50.0) for model in "abcdefghij")).style_numbers
    assert set(looks) == set("abcdefghij")
    for models in together.values():
        assert len({looks[model] for model in models}) == len(models)
    assert max(looks.values()) == 6


def test_sections_without_data_are_left_out(tmp_path: Path) -> None:
    runs = made(tmp_path, tiny("en", "a", 0, 50.0))
    assert [*scores(runs)]
    for section in (treebank_comparison, symbols, by_label, by_length, cost):
        assert not [*section(runs)]


def coverage(signature: str, unknown: int = 5, spelt: float = 300.0) -> dict[str, Any]:
    rates = {"vocabulary": 10, "words": 100, "unknown_rate": float(unknown), "perplexity_of_known_words": None}
    return rates | {"perplexity_signature": signature, "unknown": unknown, "perplexity_with_spelling": spelt}


def test_perplexities_of_different_vocabularies_are_told_apart(tmp_path: Path) -> None:
    runs = made(
        tmp_path,
        tiny("en", "a", 0, 50.0, evaluation={"perplexity": 100.0, "coverage": coverage("vocabulary 10", spelt=310.0)}),
        tiny("en", "b", 0, 50.0, evaluation={"perplexity": 50.0, "coverage": coverage("vocabulary 7", spelt=280.0)}),
    )
    table = table_of(scores(runs))
    assert [row["perplexity with spelling"] for row in rows(table)] == [Number(310.0), Number(280.0)]
    [note] = [note for note in table.notes if "different vocabularies" in note]
    assert "a: vocabulary 10" in note
    assert "b: vocabulary 7" in note
    flat = table_of(every_run(runs))
    assert any("different vocabularies" in note for note in flat.notes)
    assert [row["signature"] for row in rows(flat)] == ["signed | vocabulary 10", "signed | vocabulary 7"]


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        ({"coverage": coverage("same")}, {"coverage": coverage("same")}, False),
        ({"coverage": coverage("one", unknown=0)}, {"coverage": coverage("other", unknown=0)}, False),
        ({"coverage": coverage("one")}, {"coverage": coverage("other", unknown=0)}, True),
        ({"coverage": coverage("one")}, {}, True),
        ({}, {}, False),
    ],
)
def test_which_perplexities_can_be_compared(tmp_path: Path, first: Any, second: Any, differ: bool) -> None:
    runs = made(
        tmp_path,
        tiny("en", "a", 0, 50.0, evaluation={"perplexity": 100.0, **first}),
        tiny("en", "b", 0, 50.0, evaluation={"perplexity": 50.0, **second}),
        tiny("fr", "b", 0, 50.0, evaluation={"perplexity": 50.0, "coverage": coverage("another language")}),
    )
    assert any("different vocabularies" in note for note in table_of(scores(runs)).notes) is differ


def test_results_of_before_are_compared_by_their_settings(tmp_path: Path) -> None:
    evaluation = {"perplexity": 100.0}
    runs = made(
        tmp_path,
        tiny("en", "a", 0, 50.0, evaluation=evaluation, settings={"vocabulary": 10_000}),
        tiny("en", "b", 0, 50.0, evaluation=evaluation, settings={"vocabulary": 5_000}),
    )
    assert any("5000" in note for note in table_of(scores(runs)).notes)
