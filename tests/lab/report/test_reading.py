from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.errors import RamifyError
from ramify.lab.report.html_page import page_html
from ramify.lab.report.markdown_page import page_markdown
from ramify.lab.report.render.csv import table_csv
from ramify.lab.report.render.latex import table_latex
from ramify.lab.report.report_table import Table
from ramify.lab.report.write_report import sections_of
from ramify.lab.results.find_results import read_runs
from tests.lab.report.made_up import FAMILIES, make_folder, put, result, tiny, write


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "runs", {"main": (["en"], FAMILIES[2:])}, baselines=("right",))


def told(folder: Path) -> dict[str, tuple[str, str]]:
    return {problem.where: (problem.what, problem.why) for problem in read_runs(folder).problems}


def test_a_whole_experiment_has_no_problems(folder: Path) -> None:
    runs = read_runs(folder)
    assert runs.problems == []
    assert runs.title == "A made-up experiment"
    assert [(group.name, group.title, group.models) for group in runs.groups] == [
        ("main", "Main", {"en": ["tn-pcfg-60", "tn-pcfg-500"]})
    ]
    assert [r.seed for r in runs.of("en", "tn-pcfg-500")] == [0, 1]
    assert {r.decoder for r in runs.of("en", "tn-pcfg-500")} == {"mbr"}
    assert [r.decoder for r in runs.all_of("en", "tn-pcfg-500")] == ["mbr", "viterbi-rank"] * 2
    assert [r.model for r in runs.baselines("en")] == ["right"]
    first = runs.of("en", "tn-pcfg-60")[0]
    assert first.machine == "Imagined CPU @ 2.00GHz, cores 2, 1 thread"
    assert (first.parameters, first.memory_mb, len(first.epochs)) == (1_300_000, 660.0, 5)


def test_what_is_missing_half_finished_failed_or_broken_is_told(folder: Path) -> None:
    of = folder / "runs" / "en"
    (of / "tn-pcfg-60" / "seed-0" / "results" / "mbr.json").unlink()
    write(of / "tn-pcfg-60" / "seed-0" / "failed.json", {"error": "the dev set has\nprobability zero"})
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
    assert "is no JSON" in found["runs/en/tn-pcfg-60/seed-1/results/mbr.json"][1]
    assert found["runs/en/tn-pcfg-500/seed-0"][1] == "no results by viterbi-rank yet"
    assert "after 2 epochs" in found["runs/en/tn-pcfg-500/seed-1"][1]
    (of / "tn-pcfg-500" / "seed-1" / "metrics.jsonl").write_text('{"epoch": 1}\n')
    assert "after 1 epoch of" in told(folder)["runs/en/tn-pcfg-500/seed-1"][1]
    assert [r.model for r in read_runs(folder).results] == ["tn-pcfg-500"]


def test_a_run_that_was_not_begun_is_missing(tmp_path: Path) -> None:
    run = {"data": "en", "model": "a", "seed": 3, "decoders": ["mbr"]}
    write(tmp_path / "experiment.json", {"format": 1, "name": "x", "groups": [{"name": "g", "runs": [run]}]})
    assert told(tmp_path) == {"runs/en/a/seed-3": ("missing", "was not begun")}


def test_a_run_of_two_groups_needs_the_decoders_of_both(tmp_path: Path) -> None:
    run = {"data": "en", "model": "a", "seed": 0, "path": "runs/en/a/seed-0"}
    groups = [{"name": d, "runs": [{**run, "decoders": [d]}]} for d in ("mbr", "viterbi")]
    write(tmp_path / "experiment.json", {"groups": groups})
    put(tmp_path, tiny("en", "a", 0, 50.0))
    assert told(tmp_path) == {"runs/en/a/seed-0": ("half-finished", "no results by viterbi yet")}


def test_without_a_plan_results_are_searched(folder: Path) -> None:
    (folder / "experiment.json").unlink()
    before = read_runs(folder)
    assert [group.title for group in before.groups] == ["All runs"]
    assert len(before.results) == 7
    (folder / "experiment.json").write_text("no json")
    after = read_runs(folder)
    assert after.results == before.results
    assert [problem.where for problem in after.problems] == ["experiment.json"]


def test_results_outside_the_plan_stand_in_a_group_of_their_own(folder: Path) -> None:
    put(folder, tiny("en", "stray", 0, 50.0))
    assert [group.title for group in read_runs(folder).groups] == ["Main", "Other runs"]


def test_a_plan_cannot_point_outside_of_its_folder(tmp_path: Path) -> None:
    runs = [{"data": "en", "model": "a", "seed": 0, "path": path} for path in ("../elsewhere", "/etc", "a\0b")]
    write(tmp_path / "in" / "experiment.json", {"groups": [{"name": "g", "runs": runs}]})
    problems = read_runs(tmp_path / "in").problems
    assert len(problems) == 3
    assert all("outside" in problem.why for problem in problems)


def test_runs_may_be_behind_a_link(tmp_path: Path) -> None:
    put(tmp_path / "disk", tiny("en", "a", 0, 50.0))
    run = {"data": "en", "model": "a", "seed": 0, "decoders": ["mbr"], "path": "runs/en/a/seed-0"}
    write(tmp_path / "in" / "experiment.json", {"groups": [{"name": "g", "runs": [run]}]})
    (tmp_path / "in" / "runs").symlink_to(tmp_path / "disk" / "runs")
    found = read_runs(tmp_path / "in")
    assert (len(found.results), found.problems) == (1, [])


def test_names_as_long_as_they_may_be_and_seeds_as_large(tmp_path: Path) -> None:
    data, model = "d" * 100, "m" * 100
    seeds = [2**53, 2**53 + 1, 2**63 - 1]
    runs = [{"data": data, "model": model, "seed": seed, "decoders": ["mbr"]} for seed in seeds]
    write(tmp_path / "experiment.json", {"groups": [{"name": "g", "runs": runs}]})
    for seed in seeds:
        put(tmp_path, tiny(data, model, seed, 50.0))
    found = read_runs(tmp_path)
    assert found.problems == []
    assert [r.seed for r in found.of(data, model, found.groups[0])] == seeds


def test_a_model_may_be_called_baselines(tmp_path: Path) -> None:
    run = put(tmp_path, tiny("en", "baselines", 0, 50.0)).parent.parent
    write(run / "config.json", {"format": 2})
    assert read_runs(tmp_path).problems == []


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    runs = [{"data": "en", "model": "语" * 90, "seed": 0, "decoders": ["mbr"]}]
    write(tmp_path / "experiment.json", {"groups": [{"name": "g", "runs": runs}]})
    assert [problem.what for problem in read_runs(tmp_path).problems] == ["missing"]


def test_failed_baselines_are_told_once(tmp_path: Path) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    runs = [{"data": "en", "model": "a", "seed": 0, "decoders": ["mbr"]}]
    plan = {"groups": [{"name": "g", "runs": runs}], "baselines": ["left", "right"]}
    write(tmp_path / "experiment.json", plan)
    write(tmp_path / "baselines" / "en" / "failed.json", {"error": "no trees"})
    assert [(problem.what, problem.why) for problem in read_runs(tmp_path).problems] == [("failed", "no trees")]


def test_the_same_run_counts_once(tmp_path: Path) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    write(tmp_path / "copy" / "results" / "mbr.json", tiny("en", "a", 0, 60.0))
    runs = read_runs(tmp_path)
    assert len(runs.results) == 1
    assert "the same run as" in runs.problems[0].why


def test_names_come_from_the_folders_where_the_file_has_none(tmp_path: Path) -> None:
    write(tmp_path / "runs/en/a/seed-7/results/viterbi.json", {"evaluation": {"scores": {"sentence_f1": 12.0}}})
    write(tmp_path / "baselines/en/left.json", {"evaluation": {"scores": {"sentence_f1": 8.0}}})
    found = [(r.data, r.model, r.seed, r.decoder, r.is_baseline) for r in read_runs(tmp_path).results]
    assert found == [("en", "left", None, "", True), ("en", "a", 7, "viterbi", False)]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ([], "no evaluation"),
        ({"evaluation": 3}, "no evaluation"),
        (tiny("en", "a", 0, 130.0), "no S-F1"),
        (tiny("en", "a", 0, float("nan")), "no S-F1"),
        ({**tiny("en", "a", 0, 50.0), "format": 2}, "format 2"),
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
    runs = read_runs(tmp_path)
    assert len(runs.results) == 1
    assert len(runs.problems) == 4


def test_nothing_to_report_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RamifyError, match="no results in it"):
        read_runs(tmp_path)
    with pytest.raises(RamifyError, match="is no folder"):
        read_runs(tmp_path / "none")


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
    runs = read_runs(folder)
    sections = sections_of(runs)
    assert page_html(runs, sections, [], {})
    assert page_markdown(runs, sections, [], set())
    for table in (block for section in sections for block in section.blocks if isinstance(block, Table)):
        assert table_csv(table)
        assert table_latex(table)


def test_a_plan_of_any_shape_is_read(tmp_path: Path) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    for plan in ({"groups": 3}, {"groups": [3, {"runs": 4}, {"runs": [{"decoders": 5}]}]}, {"baselines": {"a": 1}}, []):
        (tmp_path / "experiment.json").write_text(json.dumps(plan))
        assert len(read_runs(tmp_path).results) == 1
