"""Grammars as tables of float16 numbers: same trees, nearly the same probabilities, a fraction of the size."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

import ramify
from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.sentence import Sentence
from ramify.corpus.vocabulary import Vocabulary
from ramify.errors import RamifyError
from ramify.models import FAMILIES
from ramify.parser import Parser
from ramify.parser.compression import compare_parsers, compress, sample_sentences, save_compressed
from ramify.parser.export import export
from tests.command import ramify as command
from tests.models.normalisation import normalisation_error

LOW_RANK = ("tn-pcfg", "td-pcfg", "sn-pcfg")
NATS_PER_WORD = 0.02
"""Half of float16's last digit at e^-16 of the largest probability, twice, and a little more"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model of each family that can be compressed, and its compressed version."""
    place = tmp_path_factory.mktemp("models")
    words = [parse.words for parse in builtin_treebank(0, 300, 0, 0)["train"]]
    for family in LOW_RANK:
        options = {"learning_rate": 0.002} if family == "sn-pcfg" else {"learning_rate": 0.02, "rank": 7}
        settings = {"nonterminals": 4, "preterminals": 6, "epochs": 2, "batch_size": 8}
        ramify.fit(words, model=family, **settings, **options).save(place / family)
        save_compressed(place / family, compress(ramify.load(place / family)), place / f"{family}-small")
    return place


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return [Sentence.from_tokens(parse.words) for parse in builtin_treebank(1, 0, 0, 60)["test"]]


@pytest.mark.parametrize("family", LOW_RANK)
def test_trees_and_probabilities_are_those_of_the_first(family, models, sentences):
    first, small = ramify.load(models / family), ramify.load(models / f"{family}-small")
    found = compare_parsers(first, small, sentences)
    assert found.sentences == 60
    assert found.same_trees >= 59
    assert 0 < found.log_probability < NATS_PER_WORD
    assert compare_parsers(first, first, sentences).log_probability == 0
    for one, other in zip(first.analyse_many(sentences), small.analyse_many(sentences), strict=True):
        assert other.log_probability == pytest.approx(one.log_probability, abs=NATS_PER_WORD * len(one.parse))
        np.testing.assert_allclose(one.posteriors, other.posteriors, atol=0.02)
        # A tree may change only if another one is equally good.
        expected = [sum(one.posteriors[i, j] for i, j in each.parse.spans) for each in (one, other)]
        assert expected[1] == pytest.approx(expected[0], abs=0.02)
        if np.array_equal(one.parse.spans, other.parse.spans):
            np.testing.assert_allclose(one.label_posteriors, other.label_posteriors, atol=0.02)
            np.testing.assert_allclose(one.tag_posteriors, other.tag_posteriors, atol=0.02)


def test_what_differs_between_two_grammars_is_counted(models, sentences):
    one, other = ramify.load(models / "tn-pcfg"), ramify.load(models / "sn-pcfg")
    found = compare_parsers(one, other, sentences)
    pairs = list(zip(one.analyse_many(sentences), other.analyse_many(sentences), strict=True))
    assert found.same_trees == sum(np.array_equal(a.parse.spans, b.parse.spans) for a, b in pairs) < 60
    per_word = [abs(a.log_probability - b.log_probability) / len(a.parse) for a, b in pairs]
    assert found.log_probability == pytest.approx(max(per_word))
    assert 0 < found.f1 < 100


@pytest.mark.parametrize("family", LOW_RANK)
def test_probabilities_sum_to_one_after_loading(family, models):
    small = ramify.load(models / f"{family}-small")
    assert max(normalisation_error(small.grammar).values()) < 1e-5
    assert small.model.is_simple == (family == "sn-pcfg")


@pytest.mark.parametrize("family", LOW_RANK)
def test_every_number_has_sixteen_bits_and_saving_again_changes_none(family, models, tmp_path):
    folder = models / f"{family}-small"
    ramify.load(folder).save(tmp_path / "again")
    assert (tmp_path / "again/model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    save_compressed(folder, compress(ramify.load(folder)), tmp_path / "twice")
    with (
        safe_open(folder / "model.safetensors", "pt") as once,
        safe_open(tmp_path / "twice/model.safetensors", "pt") as twice,
    ):
        for name in once.keys():  # noqa: SIM118
            assert once.get_tensor(name).dtype == torch.float16
            assert torch.equal(once.get_tensor(name), twice.get_tensor(name))
    assert json.loads((tmp_path / "twice/config.json").read_text())["compressed_from"]["model"] == family


def test_a_trained_td_pcfg_keeps_all_its_bits(models):
    with safe_open(models / "td-pcfg/model.safetensors", "pt") as handle:
        assert {handle.get_tensor(name).dtype for name in handle.keys()} == {torch.float32}  # noqa: SIM118


def test_everything_works_with_it(models, sentences, tmp_path):
    small = ramify.load(models / "tn-pcfg-small")
    assert len(list(small.generate(3))) == 3
    assert small.strongest_rules(count=2)
    assert export(small, 0.9).grammar.binary
    assert np.isfinite(small.posteriors(sentences[0])).all()
    assert small.description["settings"]["model"] == "tn-pcfg"
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{sentence.text}\n" for sentence in sentences), encoding="utf-8")
    for arguments in (
        ["score", "-m", models / "tn-pcfg-small", text],
        ["parse", "-m", models / "tn-pcfg-small", text],
        ["grammar", "-m", models / "tn-pcfg-small", text, "--out", tmp_path / "book.html"],
    ):
        assert command(*arguments).returncode == 0


def test_the_largest_of_each_distribution_is_zero(models):
    """Any shift gives the same grammar; this one is most exact for large probabilities."""
    tables = ramify.load(models / "tn-pcfg-small").model.state_dict()
    for name, dim in {"root": 0, "head": 1, "left": 0, "right": 0, "word_logits": 0}.items():
        assert torch.equal(tables[name].amax(dim), torch.zeros_like(tables[name].amax(dim)))


@pytest.mark.parametrize(
    ("family", "options", "reason"),
    [
        ("tn-pcfg", {"rank": 3, "latent": 4}, "A compound grammar cannot be compressed"),
        ("sc-pcfg", {}, "A compound grammar cannot be compressed"),
        ("n-pcfg", {}, "NPCFG is dense"),
        ("em-pcfg", {}, "EMPCFG is dense"),
        ("nbl-pcfg", {"rank": 3}, "depend on head words"),
    ],
)
def test_other_models_are_refused(family, options, reason):
    words = Vocabulary(["<unk>", "a", "dog"])
    parser = Parser(FAMILIES[family](nonterminals=2, preterminals=3, words=3, **options), words)
    parser.description = {}
    with pytest.raises(RamifyError, match=reason):
        compress(parser)


def test_a_file_of_rules_is_refused(models):
    first = ramify.load(models / "tn-pcfg")
    first.description = None
    with pytest.raises(RamifyError, match="Only a trained model"):
        compress(first)


@pytest.mark.parametrize(
    ("file", "damage", "reason"),
    [
        ("model.safetensors", lambda data: data[:-1] + bytes([data[-1] ^ 1]), "checksum"),
        ("model.safetensors", lambda data: data[:-2], "damaged"),
        ("config.json", lambda data: data.replace(b'"rank": 7', b'"rank": 8'), "head .* shape"),
        ("config.json", lambda data: data.replace(b',\n    "rank": 7', b""), "head .* shape"),
        ("vocab.txt", lambda data: data.replace(b"the\n", b"teh\n"), "checksum"),
    ],
)
def test_a_damaged_folder_is_refused(file, damage, reason, models, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(models / "tn-pcfg-small", folder)
    data = (folder / file).read_bytes()
    assert damage(data) != data
    (folder / file).write_bytes(damage(data))
    with pytest.raises(RamifyError, match=reason):
        ramify.load(folder)


def test_numbers_that_are_not_finite_are_refused(models, tmp_path):
    from ramify.storage.tensors import save_tensors

    folder = tmp_path / "model"
    shutil.copytree(models / "tn-pcfg-small", folder)
    tables = {name: table.half() for name, table in ramify.load(folder).model.state_dict().items()}
    tables["root"][0] = torch.inf
    save_tensors(folder / "model.safetensors", tables)
    with pytest.raises(RamifyError, match=r"root .* not finite"):
        ramify.load(folder)


def test_improbable_words_stay_finite():
    parser = Parser(FAMILIES["td-pcfg"](2, 3, 2, 4), Vocabulary(["<unk>", "a", "b", "c"]))
    parser.description = {}
    with torch.no_grad():
        parser.model.word_logits[1] = -1e6
    again = Parser(parser.model, parser.vocabulary)  # whose tables are made from the changed logits
    again.description = {}
    tables = compress(again).model.state_dict()
    assert float(tables["word_logits"].min()) == -65504
    assert all(bool(table.isfinite().all()) for table in tables.values())


def test_the_command_reports_size_and_differences(models, tmp_path):
    out = tmp_path / "small"
    found = command("compress", "-m", models / "tn-pcfg", "--out", out)
    assert found.returncode == 0
    assert "200 sentences 200 have the same tree (S-F1 100.00" in found.stderr
    assert "td-pcfg, compressed from tn-pcfg" in (out / "README.md").read_text()
    again = command("compress", "-m", models / "tn-pcfg", "--out", out)
    assert again.returncode == 2
    assert "is not empty" in again.stderr
    from ramify.corpus.brackets import write_brackets

    trees = tmp_path / "gold.trees"
    trees.write_text("".join(write_brackets(p) + "\n" for p in builtin_treebank(1, 0, 0, 20)["test"]))
    found = command("compress", "-m", models / "tn-pcfg", "--out", out, "--overwrite", trees)
    assert found.returncode == 0
    f1 = ramify.evaluate(ramify.load(out), trees).scores.sentence_f1
    assert f"S-F1 on {trees} is {f1:.2f}, compared with {f1:.2f} for the original" in found.stderr


def test_drawn_sentences_are_always_the_same(models):
    parser = ramify.load(models / "tn-pcfg")
    assert [each.text for each in sample_sentences(parser)] == [each.text for each in sample_sentences(parser)]
