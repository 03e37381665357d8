from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.errors import RamifyError
from ramify.lab.report.write_report import Page, sections_of, summary, table_latex
from ramify.lab.results.collection import collect_results, with_details
from ramify.lab.results.schema import Result, as_record, read_record
from tests.lab.made_results import FAMILIES, make_folder, planned, put, result, tiny, write, write_plan


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "runs", {"main": (["en"], FAMILIES[2:])}, baselines=("right",))


def told(folder: Path) -> dict[str, tuple[str, str]]:
    return {problem.where: (problem.what, problem.why) for problem in collect_results(folder).problems}


def test_a_whole_experiment_has_no_problems(folder: Path) -> None:
    runs = collect_results(folder)
    assert runs.problems == []
    assert runs.title == "A made-up experiment"
    (group,) = runs.groups
    assert (group.name, group.title) == ("main", "Main")
    assert {data: list(models) for data, models in group.results.items()} == {"en": ["tn-pcfg-60", "tn-pcfg-500"]}
    assert [r.decoder for r in group.results["en"]["tn-pcfg-500"]] == ["mbr", "viterbi-rank"] * 2
    assert runs.by_model["en", "tn-pcfg-500"] == group.results["en"]["tn-pcfg-500"]
    details = with_details(runs.by_model["en", "tn-pcfg-500"])
    assert [(r.seed, r.decoder) for r in details] == [(0, "mbr"), (1, "mbr")]
    assert [r.model for r in runs.baselines("en")] == ["right"]
    first = runs.by_model["en", "tn-pcfg-60"][0]
    assert first.hardware == "Imagined CPU @ 2.00GHz, cores 2, 1 thread"
    assert (first.parameters, first.peak_memory_mb, len(first.epochs)) == (1_300_000, 660.0, 5)


def test_what_is_missing_half_finished_failed_or_broken_is_told(folder: Path) -> None:
    of = folder / "runs" / "en"
    (of / "tn-pcfg-60" / "seed-0" / "results" / "mbr.json").unlink()
    write(of / "tn-pcfg-60" / "seed-0" / "failed.json", {"format": 1, "error": "the dev set has\nprobability zero"})
    (of / "tn-pcfg-60" / "seed-1" / "results" / "mbr.json").write_text('{"format": 1, "evaluation": {"sco')
    (of / "tn-pcfg-500" / "seed-0" / "results" / "viterbi-rank.json").unlink()
    for file in (of / "tn-pcfg-500" / "seed-1" / "results").iterdir():
        file.unlink()
    (of / "tn-pcfg-500" / "seed-1" / "metrics.jsonl").write_text('{"epoch": 1}\n{"epoch": 2}\n')
    (folder / "baselines" / "en" / "right.json").unlink()
    found = told(folder)
    assert {where: what for where, (what, _) in found.items()} == {
        "runs/en/tn-pcfg-60/seed-0": "failed",
        "runs/en/tn-pcfg-60/seed-1/results/mbr.json": "broken",
        "runs/en/tn-pcfg-500/seed-0": "half-finished",
        "runs/en/tn-pcfg-500/seed-1": "half-finished",
        "baselines/en/right.json": "missing",
    }
    assert found["runs/en/tn-pcfg-60/seed-0"][1] == "the dev set has probability zero"
    assert "JSON" in found["runs/en/tn-pcfg-60/seed-1/results/mbr.json"][1]
    assert found["runs/en/tn-pcfg-500/seed-0"][1] == "no results by viterbi-rank yet"
    assert "after 2 epochs" in found["runs/en/tn-pcfg-500/seed-1"][1]
    (of / "tn-pcfg-500" / "seed-1" / "metrics.jsonl").write_text('{"epoch": 1}\n')
    assert "after 1 epoch of" in told(folder)["runs/en/tn-pcfg-500/seed-1"][1]
    assert [r.model for r in collect_results(folder).results] == ["tn-pcfg-500"]


def test_a_run_that_was_not_begun_is_missing(tmp_path: Path) -> None:
    write_plan(tmp_path, {"g": planned("en", "a", 3)})
    assert told(tmp_path) == {"runs/en/a/seed-3": ("missing", "was not begun")}


def test_a_run_of_two_groups_needs_the_decoders_of_both(tmp_path: Path) -> None:
    write_plan(tmp_path, {d: planned("en", "a", 0, decoders=[d]) for d in ("mbr", "viterbi")})
    put(tmp_path, tiny("en", "a", 0, 50.0))
    assert told(tmp_path) == {"runs/en/a/seed-0": ("half-finished", "no results by viterbi yet")}


def test_without_a_plan_results_are_searched(folder: Path) -> None:
    (folder / "experiment.json").unlink()
    before = collect_results(folder)
    assert [group.title for group in before.groups] == ["All runs"]
    assert len(before.results) == 7
    (folder / "experiment.json").write_text("no json")
    after = collect_results(folder)
    assert after.results == before.results
    assert [problem.where for problem in after.problems] == ["experiment.json"]


def test_results_outside_the_plan_stand_in_a_group_of_their_own(folder: Path) -> None:
    put(folder, tiny("en", "stray", 0, 50.0))
    assert [group.title for group in collect_results(folder).groups] == ["Main", "Other runs"]


def test_a_plan_cannot_point_outside_of_its_folder(tmp_path: Path) -> None:
    write_plan(tmp_path, {"g": planned("en", "a", 0)})
    plan = (tmp_path / "experiment.json").read_text()
    for path in ("../elsewhere", "/etc"):
        (tmp_path / "experiment.json").write_text(plan.replace("runs/en/a/seed-0", path))
        (problem,) = collect_results(tmp_path).problems
        assert (problem.what, problem.where) == ("broken", "experiment.json")
        assert path in problem.why


def test_runs_may_be_behind_a_link(tmp_path: Path) -> None:
    put(tmp_path / "disk", tiny("en", "a", 0, 50.0))
    write_plan(tmp_path / "in", {"g": planned("en", "a", 0)})
    (tmp_path / "in" / "runs").symlink_to(tmp_path / "disk" / "runs")
    found = collect_results(tmp_path / "in")
    assert (len(found.results), found.problems) == (1, [])


def test_names_as_long_as_they_may_be_and_seeds_as_large(tmp_path: Path) -> None:
    data, model = "d" * 100, "m" * 100
    seeds = [2**53, 2**53 + 1, 2**63 - 1]
    write_plan(tmp_path, {"g": planned(data, model, *seeds)})
    for seed in seeds:
        put(tmp_path, tiny(data, model, seed, 50.0))
    found = collect_results(tmp_path)
    assert found.problems == []
    assert [r.seed for r in with_details(found.groups[0].results[data][model])] == seeds


def test_a_model_may_be_called_baselines(tmp_path: Path) -> None:
    run = put(tmp_path, tiny("en", "baselines", 0, 50.0)).parent.parent
    write(run / "config.json", {"format": 2})
    assert collect_results(tmp_path).problems == []


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    write_plan(tmp_path, {"g": planned("en", "语" * 90, 0)})
    assert [problem.what for problem in collect_results(tmp_path).problems] == ["missing"]


def test_failed_baselines_are_told_once(tmp_path: Path) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    write_plan(tmp_path, {"g": planned("en", "a", 0)}, baselines=["left", "right"])
    write(tmp_path / "baselines" / "en" / "failed.json", {"format": 1, "error": "no trees"})
    assert [(problem.what, problem.why) for problem in collect_results(tmp_path).problems] == [("failed", "no trees")]


def test_the_same_run_counts_once(tmp_path: Path) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    write(tmp_path / "copy" / "results" / "mbr.json", tiny("en", "a", 0, 60.0))
    runs = collect_results(tmp_path)
    assert len(runs.results) == 1
    assert "copy/results/mbr.json" in runs.problems[0].why


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = put(tmp_path, result("en", FAMILIES[1], 0, "viterbi"))
    found = read_record(path, Result)
    write(tmp_path / "again.json", as_record(found))
    assert read_record(tmp_path / "again.json", Result) == found
    assert found.scores.f1_std is None
    record = json.loads((tmp_path / "again.json").read_text())
    assert record["evaluation"] == json.loads(path.read_text())["evaluation"]


def test_results_without_gold_trees_of_earlier_versions_are_read(tmp_path: Path) -> None:
    agreement = {"columns": ["a"], "sentence_f1": {"a": [100.0]}}
    path = put(tmp_path, tiny("en", "a", 0, 50.0) | {"evaluation": {"agreement": agreement}})
    found = read_record(path, Result)
    assert (found.evaluation, found.agreement) == (None, agreement)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ([], "Result"),
        (tiny("en", "a", 0, 50.0) | {"evaluation": 3}, "$.evaluation"),
        (tiny("en", "a", 0, 50.0) | {"seed": "0"}, "$.seed"),
        (tiny("en", "a", 0, 50.0) | {"evaluation": {}}, "no scores"),
        (tiny("en", "a", 0, 130.0), "130"),
        (tiny("en", "a", 0, float("nan")), "NaN"),
        (tiny("en", "a", 0, 50.0) | {"format": 2}, "format '2'"),
    ],
)
def test_a_file_without_a_score_is_broken(tmp_path: Path, record: Any, why: str) -> None:
    write(tmp_path / "runs/en/a/seed-0/results/mbr.json", record)
    assert why in told(tmp_path)["runs/en/a/seed-0/results/mbr.json"][1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_odd_files_do_not_stop_the_report(tmp_path: Path) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    results = tmp_path / "runs/en/a/seed-0/results"
    os.mkfifo(results / "pipe.json")
    (results / "folder.json").mkdir()
    (results / "deep.json").write_text("[" * 200_000)
    (results / "latin.json").write_bytes(b'"\xe9"')
    (results / ".mbr.json.partial").write_text("{")
    runs = collect_results(tmp_path)
    assert len(runs.results) == 1
    assert len(runs.problems) == 4


def test_nothing_to_report_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RamifyError, match="no results"):
        collect_results(tmp_path)
    with pytest.raises(RamifyError, match="none: "):
        collect_results(tmp_path / "none")


WHOLE = result("en", FAMILIES[0], 0, "mbr")
WHOLE["induced"]["subtypes"] = dict(list(WHOLE["induced"]["subtypes"].items())[:2])


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(place for key, part in inner for place in places(part, (*here, key)))]


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = changed(value[place[0]], place[1:], new)
    return copy


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(places(WHOLE)), json_values), min_size=1, max_size=3))
def test_whatever_stands_in_a_file_the_page_is_made(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    put(folder, tiny("en", "good", 0, 50.0))
    record = WHOLE
    for place, new in changes:
        try:
            record = changed(record, place, new)
        except (AttributeError, KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue
    write(folder / "runs/en/bad/seed-0/results/mbr.json", record)
    study = collect_results(folder)
    sections = sections_of(study)
    page = Page(study.title, summary(study), sections, problems=study.problems)
    assert page.as_html()
    assert page.as_markdown()
    for exhibit in (exhibit for found in sections.values() for exhibit in found if exhibit.table):
        assert exhibit.table.as_csv()
        assert table_latex(exhibit)


@pytest.mark.parametrize("plan", [{"groups": 3}, {"format": 1, "baselines": {"a": 1}}, []])
def test_without_a_plan_that_can_be_read_the_folder_is_searched(tmp_path: Path, plan: object) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    write(tmp_path / "experiment.json", plan)
    found = collect_results(tmp_path)
    assert len(found.results) == 1
    assert [problem.where for problem in found.problems] == ["experiment.json"]
