"""Published figures stand beside what they can be compared with, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ramify.lab.report.exhibit import Number
from ramify.lab.report.published import published
from ramify.lab.report.sections.models import scores
from ramify.lab.results.collection import decoders_of
from tests.lab.made_results import tiny
from tests.lab.report.looking import baseline, made, rows, table_of


@pytest.mark.parametrize(("data", "shown"), [("wsj", True), ("WSJ", True), ("en-wsj-sample", False), ("mine", False)])
def test_published_figures_stand_beside_the_treebanks_of_the_list_alone(tmp_path: Path, data: str, shown: bool) -> None:
    settings = {"model": "tn-pcfg", "preterminals": 500}
    runs = made(tmp_path, tiny(data, "many", 0, 50.0, settings=settings), baseline(data, "right", 39.0))
    table = table_of(scores(runs))
    assert table.table is not None
    faint = [head for place, head in enumerate(table.table.heads) if table.table.is_faint(place)]
    assert faint == (["published MBR", "published max MBR"] if shown else [])
    if shown:
        assert rows(table)[0]["published MBR"] == Number(57.7, 4.2)
        assert rows(table)[0]["published max MBR"] == Number(61.4)
        assert rows(table)[1]["published MBR"] == Number(39.5)
        assert any("2,412 sentences, this one 350" in note for note in table.notes)


def test_another_activation_is_not_the_published_system(tmp_path: Path) -> None:
    settings = {"model": "tn-pcfg", "preterminals": 500, "activation": "tanh"}
    runs = made(tmp_path, tiny("wsj", "tanh", 0, 50.0, settings=settings))
    assert published().f1(runs.results[0]) is None


def test_a_compound_grammar_is_not_the_published_system_of_its_family(tmp_path: Path) -> None:
    settings = {"model": "tn-pcfg", "preterminals": 500, "compound": True}
    runs = made(tmp_path, tiny("wsj", "compound", 0, 50.0, settings=settings))
    assert published().f1(runs.results[0]) is None


@pytest.mark.parametrize("option", ["pre_norm", "unit_rows"])
def test_changed_networks_are_not_the_published_system(tmp_path: Path, option: str) -> None:
    settings = {"model": "tn-pcfg", "preterminals": 500, option: True}
    runs = made(tmp_path, tiny("wsj", "changed", 0, 50.0, settings=settings))
    assert published().f1(runs.results[0]) is None


def test_nothing_is_published_of_dev_sets(tmp_path: Path) -> None:
    settings = {"model": "tn-pcfg", "preterminals": 500}
    runs = made(tmp_path / "test", tiny("wsj", "tn", 0, 50.0, settings=settings, split="test"))
    assert published().f1(runs.results[0]) is not None
    runs = made(tmp_path / "dev", tiny("wsj", "tn", 0, 50.0, settings=settings, split="dev"))
    assert published().f1(runs.results[0]) is None


@pytest.mark.parametrize("name", ["spmrl-german", "SPMRL_German", "de_spmrl"])
def test_a_treebank_is_known_whatever_its_case_and_its_dashes(name: str) -> None:
    assert published().treebank(name) == "german"


def test_decoders_are_shown_in_their_usual_order(tmp_path: Path) -> None:
    names = ("sample", "viterbi", "mbr-labelled", "mbr")
    results = [replace(made(tmp_path, tiny("wsj", "tn", 0, 50.0)).results[0], decoder=name) for name in names]
    assert decoders_of(results) == ["mbr", "viterbi", "mbr-labelled", "sample"]


def test_published_recall_and_means_are_those_of_print() -> None:
    systems = {(s.name, s.preterminals, s.decoder): s for s in published().systems}
    assert len(systems) == len(published().systems)
    spmrl = [t for t in published().treebanks if t != "wsj"]
    # The means that the paper prints beside its table of nine treebanks.
    for name, p, mean in (("n-pcfg", 60, 36.3), ("c-pcfg", 60, 40.1), ("tn-pcfg", 500, 40.9)):
        f1 = systems[name, p, "mbr"].f1
        assert sum(f1[t] for t in spmrl) / len(spmrl) == pytest.approx(mean, abs=0.06)
    for name, mean in (("left", 11.2), ("right", 23.2), ("random", 17.6)):
        f1 = systems[name, None, "mbr"].f1
        assert sum(f1[t] for t in spmrl) / len(spmrl) == pytest.approx(mean, abs=0.06)


SIZES = [({}, True), ({"nonterminals": 30}, True), ({"nonterminals": 2}, False), ({"rank": 10}, False)]


@pytest.mark.parametrize(("sizes", "known"), SIZES)
def test_a_grammar_of_another_size_is_another_system(tmp_path: Path, sizes: dict[str, int], known: bool) -> None:
    runs = made(tmp_path, tiny("wsj", "tn", 0, 50.0, settings={"model": "tn-pcfg", "preterminals": 60, **sizes}))
    assert (published().f1(runs.results[0]) is not None) == known
