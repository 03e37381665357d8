"""More than forty mistakes: each ends with one helpful sentence and exit code 2, no traceback and no lost files."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.storage.model_files import read_config
from ramify.storage.model_folder import empty_model
from ramify.storage.tensors import save_tensors, shapes_of
from tests.command import ramify

SMALL = "--preterminals 8 --rank 8 --embedding 16 --epochs 1 --batch-size 16".split()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text, trees, and a model trained on each."""
    place = tmp_path_factory.mktemp("good")
    parses = builtin_treebank(0, train=60, dev=1, test=1)["train"]
    (place / "trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    (place / "text").write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
    assert ramify("train", place / "text", "--out", place / "model", *SMALL).returncode == 0
    return place


@pytest.fixture
def place(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that tests may damage, as the current folder."""
    copy = tmp_path / "place"
    shutil.copytree(prepared, copy)
    monkeypatch.chdir(copy)
    return copy


def writes(name: str, content: str | bytes) -> Callable[[Path], None]:
    return lambda place: (place / name).write_bytes(content.encode() if isinstance(content, str) else content)


def configures(**changes: object) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        path = place / "model" / "config.json"
        config = json.loads(path.read_text())
        for name, value in changes.items():
            if name in config["grammar"] and name != "words":
                config["grammar"][name] = value
            else:
                config[name] = value
        path.write_text(json.dumps(config))

    return change


def removes(name: str) -> Callable[[Path], None]:
    return lambda place: (place / "model" / name).unlink()


def links(name: str) -> Callable[[Path], None]:
    def link(place: Path) -> None:
        outside = place / "outside"
        (place / "model" / name).rename(outside)
        (place / "model" / name).symlink_to(outside)

    return link


def weighs(value: float) -> Callable[[Path], None]:
    def spoil(place: Path) -> None:
        path = place / "model" / "model.safetensors"
        tensors = load_file(path)
        next(iter(tensors.values())).view(-1)[0] = value
        save_tensors(path, tensors)

    return spoil


def flips_a_bit(place: Path) -> None:
    path = place / "model" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 4
    path.write_bytes(content)


def declares_what_is_not_there(place: Path) -> None:
    configures(embedding=1500)(place)
    model = place / "model"
    header, end = {}, 0
    for name, shape in shapes_of(empty_model(model, read_config(model)).state_dict()).items():
        start, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    written = json.dumps(header).encode()
    with (model / "model.safetensors").open("wb") as handle:
        handle.write(len(written).to_bytes(8, "little") + written)
        handle.truncate(8 + len(written) + end)


def nothing(_: Path) -> None:
    pass


TRAIN, PARSE = "train {} --out out " + " ".join(SMALL), "parse -m model {}"

CASES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    # Input files
    "a missing file to train on": (nothing, TRAIN.format("nowhere"), "nowhere: does not exist"),
    "a missing file to parse": (nothing, PARSE.format("nowhere"), "nowhere: cannot be read (No such file"),
    "a missing file to score": (nothing, "score -m model nowhere", "nowhere: cannot be read"),
    "missing gold trees": (nothing, "evaluate -m model nowhere", "nowhere: does not exist"),
    "a missing dev set": (nothing, TRAIN.format("text") + " --dev nowhere", "nowhere: does not exist"),
    "a folder to parse": (nothing, PARSE.format("."), ".: cannot be read (Is a directory)"),
    "an empty file": (writes("bad", ""), TRAIN.format("bad"), "bad: contains no sentences"),
    "blank lines alone": (writes("bad", "\n  \n\t\n"), TRAIN.format("bad"), "bad: contains no sentences"),
    "an empty folder": (lambda p: (p / "bad").mkdir(), TRAIN.format("bad"), "bad: this folder is empty"),
    "latin-1": (writes("bad", b"a b\ncaf\xe9 c\n"), TRAIN.format("bad"), "bad, line 2: this is not UTF-8"),
    "UTF-16": (
        writes("bad", "a b c".encode("utf-16")),
        PARSE.format("bad"),
        "convert the file, for example with iconv -f utf-16",
    ),
    "one-word sentences": (writes("bad", "a\nb\nc\n"), TRAIN.format("bad"), "no training sentence has 2 to 40 words"),
    "punctuation alone": (writes("bad", ". .\n! !\n"), TRAIN.format("bad"), "no training sentence has 2 to 40 words"),
    "long sentences alone": (writes("bad", "a " * 50), TRAIN.format("bad"), "no training sentence has 2 to 40 words"),
    "one sentence alone": (writes("bad", "a b c\n"), TRAIN.format("bad"), "are held out"),
    "Chinese without spaces": (
        writes("bad", "我昨天在图书馆看了三本很有意思的书\n" * 9),
        TRAIN.format("bad"),
        "bad: this looks like Chinese or Japanese",
    ),
    "short Chinese without spaces": (
        writes("bad", "我喜欢你\n图书馆\n" * 9),
        TRAIN.format("bad"),
        "bad: this looks like Chinese or Japanese",
    ),
    "a bracket never closed": (
        writes("bad", "(S (A a) (B b))\n(S (A a) (B b)\n"),
        TRAIN.format("bad"),
        "bad, line 2: the tree that starts here is not closed",
    ),
    "a bracket too many": (
        writes("bad", "(S (A a) (B b)))\n"),
        TRAIN.format("bad"),
        "bad, line 1: this ')' has no matching '('",
    ),
    "a bracket without a word": (
        writes("bad", "(S (A a) (B ))\n"),
        TRAIN.format("bad"),
        "bad, line 1: the bracket '(B)' contains no word",
    ),
    "text said to be trees": (nothing, TRAIN.format("text") + " --input brackets", "text, line 1:"),
    "text in place of gold trees": (nothing, "evaluate -m model text", "text: contains no trees"),
    "a folder of trees and text": (
        lambda p: [(p / "bad").mkdir(), *(shutil.copy(p / name, p / "bad") for name in ("text", "trees"))],
        TRAIN.format("bad"),
        "trees contains trees and text text; keep only one kind",
    ),
    "a sentence too long for memory, and --strict": (
        writes("bad", "a " * 200_000),
        PARSE.format("bad") + " --strict",
        "bad, line 1: the sentence has no parse (too long)",
    ),
    "a dev sentence too long for memory": (
        writes("bad", "one two\n" + "a " * 200_000),
        TRAIN.format("text") + " --dev bad",
        "bad, dev set: a sentence of 200,000 words needs about",
    ),
    # Options
    "no preterminals": (nothing, TRAIN.format("text") + " --preterminals 0", "preterminals is 0, but must be between"),
    "a negative rank": (nothing, TRAIN.format("text") + " --rank -5", "rank is -5, but must be between 1 and"),
    "far too many symbols": (
        nothing,
        TRAIN.format("text") + " --preterminals 1000000 --embedding 9000",
        "parameters, but at most",
    ),
    "far too large tables": (
        nothing,
        TRAIN.format("text") + " --preterminals 1000000 --rank 1000000",
        "the tables of a grammar with 500,000 + 1,000,000 symbols need",
    ),
    "a measurement beyond all memory": (
        nothing,
        "bench --preterminals 1000000 --rank 1000000",
        "the tables of a grammar with 500,000 + 1,000,000 symbols need",
    ),
    "a measurement of a novel": (nothing, "bench --length 1000000", "a sentence of 1,000,000 words needs about"),
    "a rate of zero": (nothing, TRAIN.format("text") + " --learning-rate 0", "learning_rate is 0.0, but must be a pos"),
    "an unknown family": (nothing, TRAIN.format("text") + " --model gpt", "model 'gpt' is unknown; choose one of"),
    "an unknown language": (nothing, TRAIN.format("text") + " --tokenise tlh", "spaCy has no tokeniser for 'tlh'"),
    "an unknown normal form": (nothing, TRAIN.format("text") + " --normal-form X", "normal_form 'X' is unknown"),
    "an unknown device": (nothing, PARSE.format("text") + " --device tpu", "device 'tpu' is not available here"),
    "tags for text": (nothing, TRAIN.format("text") + " --words ptb", "text: contains text, where no tags decide"),
    "splitting trees": (nothing, TRAIN.format("trees") + " --split-sentences", "trees: contains trees, already split"),
    "resuming and overwriting": (nothing, TRAIN.format("text") + " --resume --overwrite", "resume and overwrite excl"),
    "resuming no file": (nothing, PARSE.format("text") + " --resume", "give its name with --out"),
    "a layout of brackets": (
        nothing,
        PARSE.format("text") + " --layout vertical",
        "--layout works only for pictures; add --format svg",
    ),
    "resuming a picture": (
        nothing,
        PARSE.format("text") + " --format html --out x --resume",
        "can be resumed; choose another --format",
    ),
    "resuming a drawing": (
        nothing,
        PARSE.format("text") + " --format pretty --out x --resume",
        "can be resumed; choose another --format",
    ),
    "a setting nobody knows": (
        writes("bad", "colour = 3"),
        TRAIN.format("text") + " --config bad",
        "bad: 'colour' is not a setting",
    ),
    "a setting of another type": (
        writes("bad", "epochs = 'x'"),
        TRAIN.format("text") + " --config bad",
        "bad: epochs is 'x', but must be a whole number",
    ),
    "settings that are no TOML": (
        writes("bad", "= ="),
        TRAIN.format("text") + " --config bad",
        "bad: cannot be read as a TOML file",
    ),
    # Files that must not be lost
    "a folder in use": (
        nothing,
        "train text --out model",
        "model: this folder is not empty; give another one, or use resume",
    ),
    "a folder of other things": (
        lambda p: [(p / "bad").mkdir(), (p / "bad" / "mine").write_text("x")],
        "train text --out bad --overwrite",
        "bad: this folder is not empty and contains no ramify run",
    ),
    "a folder of another tool": (
        lambda p: [(p / "bad").mkdir(), (p / "bad" / "config.json").write_text('{"model_type": "bert"}')],
        "train text --out bad --overwrite",
        "bad: this folder is not empty and contains no ramify run",
    ),
    "trees over a pipe": (
        lambda p: os.mkfifo(p / "pipe"),
        PARSE.format("text") + " --out pipe --overwrite",
        "pipe: this is not a regular file; give the name of a file",
    ),
    "trees into this folder": (
        nothing,
        PARSE.format("text") + " --out .",
        ".: this is a folder; give the name of a file",
    ),
    "prose that can be read only once": (
        lambda p: os.mkfifo(p / "pipe"),
        TRAIN.format("pipe") + " --split-sentences",
        "pipe: --split-sentences must read the data twice",
    ),
    "a demo over a run": (
        nothing,
        "demo --out model",
        "model: this folder is not empty and is not from the demo",
    ),
    "a module in place of a language": (
        nothing,
        PARSE.format("text") + " --tokenise punctuation",
        "no tokeniser is known for 'punctuation'",
    ),
    "a language of letters": (nothing, PARSE.format("text") + " --tokenise zho", "no tokeniser for 'zho'"),
    "a file where the run should go": (
        nothing,
        "train text --out trees",
        "trees: this is a file; give the name of a folder",
    ),
    "a folder that cannot be made": (
        nothing,
        "train text --out /dev/null/x --epochs 1",
        "/dev/null/x: cannot be created",
    ),
    "trees over a file": (
        nothing,
        PARSE.format("text") + " --out trees",
        "trees: this file already exists; give another name",
    ),
    "trees into a folder": (
        nothing,
        PARSE.format("text") + " --out model",
        "model: this is a folder; give the name of a",
    ),
    "trees into no folder": (nothing, PARSE.format("text") + " --out no/x", "no/x: the folder no does not exist"),
    "rules into no folder": (nothing, "export -m model --out no/x", "no/x: the folder no does not exist"),
    "trees of a run that stopped": (
        writes("x.partial", "(TOP"),
        PARSE.format("text") + " --out x",
        "x.partial: an earlier run did not finish; give --resume",
    ),
    # Untrusted models
    "no model": (nothing, "parse -m nowhere text", "nowhere: this model folder does not exist"),
    "a config that is no JSON": (writes("model/config.json", "{"), PARSE.format("text"), "cannot be read as JSON"),
    "a config nested too deeply": (
        writes("model/config.json", "[" * 100_000),
        PARSE.format("text"),
        "config.json: cannot be read as JSON",
    ),
    "a config of another format": (configures(format=99), PARSE.format("text"), "does not have model format 2"),
    "a model that is no name": (configures(model=["x"]), PARSE.format("text"), "does not describe a model"),
    "a size that is none": (configures(rank=-1), PARSE.format("text"), "rank must be a whole number from 1"),
    "a size beyond all memory": (
        configures(rank=9_999_999, nonterminals=9_999_999),
        PARSE.format("text"),
        "GB of memory, but only",
    ),
    "a size that does not fit": (configures(rank=9), PARSE.format("text"), "does not match config.json"),
    "a setting nobody built in": (configures(grammar={"words": 193, "x": 1}), PARSE.format("text"), "model/"),
    "unknown punctuation": (
        configures(text={"tokenise": "en", "normal_form": "NFC"}),
        PARSE.format("text"),
        "punctuat",
    ),
    "a language that is no code": (
        configures(text={"tokenise": "../en", "normal_form": "NFC", "punctuation": {"rule": "keep"}}),
        PARSE.format("text"),
        "model/config.json: no tokeniser is known for '../en'",
    ),
    "a rule for words that is none": (
        configures(words="A,B"),
        PARSE.format("text"),
        "model/config.json: The rule for words",
    ),
    "metrics that lead elsewhere": (
        links("metrics.jsonl"),
        "evaluate -m model -m model trees",
        "metrics.jsonl: is a link to a place outside the model folder",
    ),
    "metrics that are no numbers": (
        writes("model/metrics.jsonl", '{"dev_perplexity": NaN}'),
        "evaluate -m model -m model trees",
        "metrics.jsonl: the dev perplexity of an epoch",
    ),
    "a checkpoint that leads elsewhere": (
        links("checkpoint.safetensors"),
        "train text --out model --resume",
        "checkpoint.safetensors: is a link to a place outside the model folder",
    ),
    "no vocabulary": (removes("vocab.txt"), PARSE.format("text"), "model: has no vocab.txt"),
    "no weights": (removes("model.safetensors"), PARSE.format("text"), "model: has no model.safetensors"),
    "a vocabulary cut short": (writes("model/vocab.txt", "<unk>\na\n"), PARSE.format("text"), "contains 2 words, but"),
    "a vocabulary without unknown": (writes("model/vocab.txt", "a\nb\n"), PARSE.format("text"), "must be <unk>"),
    "a part that leads elsewhere": (
        links("vocab.txt"),
        PARSE.format("text"),
        "vocab.txt: is a link to a place outside the model folder",
    ),
    "weights cut short": (
        writes("model/model.safetensors", b"\x08"),
        PARSE.format("text"),
        "model.safetensors: is dam",
    ),
    "weights with a bit flipped": (
        flips_a_bit,
        PARSE.format("text"),
        "model.safetensors: is damaged, because its checksum",
    ),
    "weights that are no numbers": (weighs(float("nan")), PARSE.format("text"), "contains numbers that are not finite"),
    "a config of megabytes": (
        writes("model/config.json", '{"x": [' + "[]," * 10**6 + "[]]}"),
        PARSE.format("text"),
        "config.json: is larger than",
    ),
    "a splitter of brackets": (
        lambda p: [
            configures(text={"tokenise": "none", "normal_form": "NFC", "split_sentences": True})(p),
            (p / "model" / "splitter.json").write_text('{"abbreviations": [' + "[]," * 10**6 + "[]]}"),
        ],
        PARSE.format("text"),
        "splitter.json: cannot be read as JSON (too many brackets)",
    ),
    "a vocabulary of megabytes": (writes("model/vocab.txt", "<unk>\n" + "a\n" * 10**6), PARSE.format("text"), "vocab"),
    "more words than any model has": (
        configures(grammar={"words": 2_000_000}),
        PARSE.format("text"),
        "words must be a whole number from 1 to 1,000,001",
    ),
    "weights with a header of megabytes": (
        writes("model/model.safetensors", (10**7).to_bytes(8, "little") + b" " * 10**7),
        PARSE.format("text"),
        "its header would have 10,000,000 bytes",
    ),
    "weights that are a hole": (declares_what_is_not_there, PARSE.format("text"), "are on disk"),
    "weights without end": (weighs(float("inf")), PARSE.format("text"), "contains numbers that are not finite"),
}


NEED_SPACY = ("an unknown language", "a module in place of a language", "a language of letters")


@pytest.mark.parametrize(
    ("spoil", "command", "message"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.needs("spacy")] * (name in NEED_SPACY))
        for name, case in CASES.items()
    ],
)
def test_a_mistake_is_one_sentence(place: Path, spoil: Callable[[Path], object], command: str, message: str) -> None:
    spoil(place)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    result = ramify(*command.split())
    assert result.returncode == 2, result
    complaint = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(complaint) == 1, result.stderr
    assert complaint[0].startswith("error: ")
    assert message in complaint[0]
    assert complaint[0].rstrip().endswith((".", ")"))
    assert "Traceback" not in result.stderr
    assert not result.stdout or command.startswith("parse")
    after = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert {path: after.get(path) for path in before} == before, "something of the user's was changed"
    assert not (place / "out").exists()


def test_a_pipe_in_a_model_folder_is_refused_immediately(place: Path) -> None:
    (place / "model" / "vocab.txt").unlink()
    os.mkfifo(place / "model" / "vocab.txt")
    assert "is not a regular file" in ramify("parse", "-m", "model", "text").stderr


def test_names_of_tensors_are_not_executed(place: Path) -> None:
    path = place / "model" / "model.safetensors"
    save_tensors(path, {**load_file(path), "../escape": torch.zeros(1)})
    assert "../escape is missing or has another shape" in ramify("parse", "-m", "model", "text").stderr


@pytest.mark.parametrize(
    "command",
    [
        "train trees --out out --words X " + " ".join(SMALL),
        "evaluate --baseline right trees --words X",
        "compare left right trees --words X",
        "prepare brackets trees --out out --punctuation-tags X",
    ],
)
@pytest.mark.usefixtures("place")
def test_tags_that_never_occur_are_reported(command: str) -> None:
    result = ramify(*command.split())
    assert result.returncode == 0, result.stderr
    assert "note: trees: no leaf has the tag X" in result.stderr
