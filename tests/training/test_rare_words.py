"""Words that become <unk>, and how a run reports them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

import ramify
from ramify.corpus.spelling import Spelling
from ramify.errors import RamifyError
from ramify.storage.model_files import FILES
from ramify.storage.tensors import save_tensors
from ramify.training.data import prepare
from ramify.training.settings import Settings, load_settings
from tests.command import ramify as command

TINY = {"preterminals": 4, "nonterminals": 2, "rank": 4, "embedding": 8, "epochs": 1, "batch_size": 8}
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
LINES = ["the dog saw a cat", "the cat saw a bird", "a dog saw the fox .", "the dog saw the dog"] * 5 + [
    "an owl saw him"
]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    path = tmp_path / "dev.txt"
    path.write_text("the wolf saw a dog\nthe Owl ran\n")
    return path


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    path = tmp_path / "train.trees"
    path.write_text("".join(f"(S (NP (D the) (N {noun})) (V ran))\n" for noun in ["dog", "dog", "fox", "owl"] * 3))
    return path


def test_words_seen_once_are_unknown_if_the_vocabulary_has_room_for_all(text: Path, dev: Path) -> None:
    data = prepare(text, dev, Settings())
    assert data.min_count == 2
    assert not {"an", "owl", "him"} & set(data.vocabulary.words)
    assert {"the", "fox"} <= set(data.vocabulary.words)
    assert (data.unknown["train"].unknown, data.unknown["dev"].unknown) == (3, 3)


def test_a_smaller_vocabulary_makes_unknown_words_without_it(text: Path, dev: Path) -> None:
    data = prepare(text, dev, Settings(vocabulary=9))
    assert (data.min_count, len(data.vocabulary)) == (1, 10)
    assert prepare(text, dev, Settings(vocabulary=10)).min_count == 2  # exactly the number of different words


def test_text_with_unk_keeps_its_words(text: Path, dev: Path) -> None:
    text.write_text(text.read_text() + "the <unk> saw him\n")
    assert prepare(text, dev, Settings()).min_count == 1


def test_text_without_repetition_keeps_its_words(tmp_path: Path, dev: Path) -> None:
    (tmp_path / "once.txt").write_text("each word once\nand never more\n")
    assert prepare(tmp_path / "once.txt", dev, Settings()).min_count == 1
    with pytest.raises(RamifyError, match="min_count"):
        prepare(tmp_path / "once.txt", dev, Settings(min_count=2))


def test_trees_keep_every_word_as_published_unless_chosen(trees: Path) -> None:
    assert prepare(trees, trees, Settings()).min_count == 1
    data = prepare(trees, trees, Settings(min_count=4))
    assert set(data.vocabulary.words) == {"<unk>", "the", "ran", "dog"}


def test_the_spelling_model_does_not_depend_on_the_vocabulary(text: Path, dev: Path, tmp_path: Path) -> None:
    for name, settings in {"a": {"min_count": 1}, "b": {"min_count": 5}, "c": {"vocabulary": 2}}.items():
        prepare(text, dev, Settings(**settings)).spelling.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


@pytest.mark.parametrize("value", [0, -1, 10**7])
def test_an_invalid_count_is_refused(value: int) -> None:
    with pytest.raises(RamifyError, match="min_count"):
        Settings(min_count=value)


def test_train_reports_unknown_words_and_the_config_keeps_them(text: Path, dev: Path, tmp_path: Path) -> None:
    result = command("train", text, "--dev", dev, "--out", tmp_path / "run", *OPTIONS)
    assert result.returncode == 0, result.stderr
    assert "3 of 104 words (2.9 %) in training, 3 of 8 words (37.5 %) on dev" in result.stderr
    assert "--min-count" not in result.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["unknown_words"] == {
        "min_count": 2, "train": {"words": 104, "unknown": 3}, "dev": {"words": 8, "unknown": 3}
    }  # fmt: skip
    assert "3 of 104 words" in (tmp_path / "run" / "README.md").read_text()
    assert (tmp_path / "run" / "spelling.json").is_file()
    assert "spelling.json" in FILES


def test_train_notes_unknown_words_that_it_cannot_learn_from(text: Path, dev: Path, tmp_path: Path) -> None:
    result = command("train", text, "--dev", dev, "--out", tmp_path / "run", "--min-count", 1, *OPTIONS)
    assert "0 of 104 words" in result.stderr
    assert "--min-count 2" in result.stderr


def as_before(folder: Path) -> None:
    """A folder as written by an earlier version."""
    config = json.loads((folder / "config.json").read_text())
    del config["settings"]["min_count"], config["unknown_words"]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "spelling.json").unlink()
    # The weights did not name the other files either.
    weights = load_file(folder / "model.safetensors")
    save_tensors(folder / "model.safetensors", weights)


def test_a_run_from_before_the_rule_resumes_without_it(text: Path, dev: Path, tmp_path: Path) -> None:
    given = {**TINY, "epochs": 2}
    ramify.train(text, tmp_path / "whole", dev=dev, min_count=1, **given)
    for out, more in ((tmp_path / "old", {}), (tmp_path / "again", {"min_count": 1})):
        ramify.train(text, out, dev=dev, min_count=1, **TINY)
        as_before(out)
        ramify.train(text, out, dev=dev, resume=True, epochs=2, **more)
        for name in ("model.safetensors", "vocab.txt"):
            assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    with pytest.raises(RamifyError, match="min_count"):
        ramify.train(text, tmp_path / "old", dev=dev, resume=True, min_count=2)


def test_a_run_with_the_rule_resumes_with_it(text: Path, dev: Path, tmp_path: Path) -> None:
    ramify.train(text, tmp_path / "run", dev=dev, **TINY)
    parser = ramify.train(text, tmp_path / "run", dev=dev, resume=True, epochs=2)
    assert "owl" not in parser.vocabulary


def test_an_earlier_model_has_no_perplexity_with_spelling(trees: Path, tmp_path: Path) -> None:
    ramify.train(trees, tmp_path / "run", preset="tn-pcfg-60", **TINY)
    with_spelling = ramify.evaluate(ramify.load(tmp_path / "run"), trees)
    as_before(tmp_path / "run")
    parser = ramify.load(tmp_path / "run")
    assert parser.spelling is None
    found = ramify.evaluate(parser, trees)
    assert found.coverage.perplexity_with_spelling is None
    assert found.perplexity == with_spelling.perplexity
    assert with_spelling.coverage.perplexity_with_spelling is not None
    result = command("score", "-m", tmp_path / "run", given="the wolf ran\n")
    assert result.returncode == 0, result.stderr
    assert "with spelling" not in result.stderr


def test_a_damaged_spelling_model_is_refused_by_name(trees: Path, tmp_path: Path) -> None:
    ramify.train(trees, tmp_path / "run", **TINY)
    (tmp_path / "run" / "spelling.json").write_text("[]")
    with pytest.raises(RamifyError, match=r"spelling\.json"):
        ramify.load(tmp_path / "run")


def test_earlier_settings_are_read() -> None:
    settings = load_settings(None, {"preterminals": 8})
    assert settings.min_count is None


def test_the_folder_contains_the_spelling_model(text: Path, dev: Path, tmp_path: Path) -> None:
    parser = ramify.train(text, tmp_path / "run", dev=dev, **TINY)
    words = dict.fromkeys(word for line in LINES for word in line.split() if word != ".")
    assert parser.spelling.log_probability("owls") == Spelling.learnt_from(words).log_probability("owls")
