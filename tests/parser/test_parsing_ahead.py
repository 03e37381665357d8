"""Windows are parsed ahead in threads: same results, same order, no delays, errors at their places."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from ramify.corpus.streaming import PAUSE
from ramify.errors import RamifyError
from ramify.models import FAMILIES
from ramify.models.batches import max_batch_size
from ramify.parser import Parser
from ramify.parser.analysis import as_json
from ramify.parser.parallel_windows import WINDOWS_AHEAD, Window, results_in_order
from ramify.runtime.memory import Budget
from tests.command import ramify

WORDS = ["<unk>", *"abcdefgh"]


@pytest.fixture(scope="module")
def parser():
    from ramify.corpus.vocabulary import Vocabulary

    torch.manual_seed(3)
    return Parser(FAMILIES["tn-pcfg"](nonterminals=5, preterminals=7, rank=9, words=len(WORDS)), Vocabulary(WORDS))


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr("ramify.parser.tree_parser.WINDOW", 10)


def sentences(count):
    rng = np.random.default_rng(0)
    return [[WORDS[i] for i in rng.integers(len(WORDS), size=rng.integers(0, 14))] for _ in range(count)]


@pytest.mark.usefixtures("small_windows")
def test_results_do_not_depend_on_cores_or_other_sentences(parser, on_cores):
    given = sentences(95)
    found = []
    for cores in (1, 2, 3):
        on_cores(cores)
        found.append([as_json(each, with_posteriors=True) for each in parser.analyse_many(given)])
    assert found[0] == found[1] == found[2]
    assert found[0] == [as_json(parser.analyse(each), with_posteriors=True) for each in given]


@pytest.mark.usefixtures("small_windows")
def test_results_before_a_pause_are_returned_before_reading_on(parser, on_cores):
    on_cores(2)
    read, given = [], sentences(47)

    def stream():
        for number, sentence in enumerate(given, start=1):
            read.append(number)
            yield sentence
            if number % 17 == 0:
                yield PAUSE

    got = 0
    for _ in parser.analyse_many(stream()):
        got += 1
        assert len(read) - got <= 10 * (WINDOWS_AHEAD + 1)
        if got % 17 == 0:
            assert len(read) == got
    assert got == 47


@pytest.mark.usefixtures("small_windows")
def test_a_long_stream_is_not_read_further_than_some_windows_ahead(parser, on_cores):
    on_cores(2)
    read = []
    results = parser.analyse_many(read.append(number) or each for number, each in enumerate(sentences(95)))
    for got, _ in enumerate(results):
        assert len(read) - got <= 10 * (WINDOWS_AHEAD + 1)
    assert got == 94


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("cores", [1, 2])
def test_an_error_of_the_stream_comes_after_the_sentences_before_its_window(parser, on_cores, cores):
    on_cores(cores)

    def stream():
        yield from sentences(34)
        raise RamifyError("line 35 is wrong.")

    got = []
    with pytest.raises(RamifyError, match="line 35"):
        got.extend(parser.analyse_many(stream()))
    assert len(got) == 30


def test_an_error_of_a_batch_is_raised_in_its_place_and_later_ones_are_not_begun(on_cores):
    on_cores(2)
    begun, hold = [], threading.Event()

    def batch(number):
        def run():
            begun.append(number)
            if number == 1:
                raise RamifyError("batch 1 is wrong.")
            if number > 1:
                hold.wait(60)
            return [(0, number)]

        return run

    windows = [Window(1, [batch(0)], True), *(Window(1, [batch(i)], False) for i in range(1, 4))]
    got = []
    with pytest.raises(RamifyError, match="batch 1"):
        got.extend(results_in_order(windows, in_threads=True))
    hold.set()
    assert got == [0]
    assert begun[:2] == [0, 1]


def test_threads_beyond_the_limit_run_alone():
    budget, inside, largest, lock = Budget(), [], [], threading.Lock()

    def work(needed):
        with budget(needed, 10):
            with lock:
                inside.append(needed)
                largest.append(sum(inside))
            threading.Event().wait(0.002)
            with lock:
                inside.remove(needed)

    workers = [threading.Thread(target=work, args=(needed,), daemon=True) for needed in (4, 4, 25, 3, 6, 4, 25, 1) * 3]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(10)
    assert len(largest) == 24
    assert {total for total in largest if total > 10} == {25}


def test_few_sentences_are_divided_too():
    assert [max_batch_size(count) for count in (1, 8, 32, 100, 1024)] == [4, 4, 8, 25, 64]


def test_a_file_gives_the_same_lines_on_one_core_and_on_two(tmp_path, on_cores):
    text = tmp_path / "text"
    text.write_text("\n".join(" ".join(words) for words in sentences(60)) + "\n")
    model = tmp_path / "model"
    args = ("--nonterminals", 3, "--preterminals", 4, "--rank", 5, "--epochs", 1, "--max-length", 6)
    done = ramify("train", text, "--dev", text, "--out", model, *args)
    assert done.returncode == 0, done.stderr
    outputs = []
    for cores in (1, 2):
        on_cores(cores)
        done = ramify("parse", "-m", model, text, "--format", "json", "--posteriors")
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 60
