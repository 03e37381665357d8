"""Models by their names: folders, bundled models, models of the Hugging Face Hub."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import pytest

import ramify
from ramify import hub, model_names
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError, RamifyWarning
from ramify.model_names import resolve, split_name, system_kind
from ramify.parser.compression import compress, save_compressed
from tests.command import ramify as command

SENTENCE = "the dog saw a cat"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compressed models `en` and `other`."""
    place = tmp_path_factory.mktemp("models")
    words = [parse.words for parse in builtin_treebank(0, 200, 0, 0)["train"]]
    for seed, name in enumerate(("other", "source")):
        ramify.fit(words, nonterminals=3, preterminals=4, rank=5, epochs=1, seed=seed).save(place / name)
    save_compressed(place / "source", compress(ramify.load(place / "source")), place / "bundled" / "en")
    (place / "bundled" / "en" / "README.md").write_text("# English, for tests\n\nA card.\n")
    return place


@pytest.fixture(autouse=True)
def here(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder, and one bundled model."""
    monkeypatch.setattr(model_names, "BUNDLED", models / "bundled")
    monkeypatch.chdir(tmp_path)
    model_names._note_hidden.cache_clear()
    hub.download.cache_clear()
    yield tmp_path
    hub.download.cache_clear()


def tree_of(model: str | Path) -> str:
    return command("parse", "-m", model, given=SENTENCE).stdout


def test_a_bundled_model_is_found_by_its_name(models, here):
    assert resolve("en") == models / "bundled" / "en"
    assert str(ramify.load("en").parse(SENTENCE)) == str(ramify.load(models / "bundled" / "en").parse(SENTENCE))
    assert tree_of("en") == tree_of(models / "bundled" / "en") != ""
    assert split_name("mine=en") == ("mine", models / "bundled" / "en")
    assert system_kind("en") == "model"
    (here / "en").mkdir()  # a folder of texts, say
    assert resolve("en") == models / "bundled" / "en"


def test_every_command_takes_the_name(models, here):
    trees = here / "gold.trees"
    trees.write_text("(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))\n")
    shutil.copytree(models / "other", here / "other")
    for arguments in (
        ["parse", "-m", "en", "-m", "other", trees],
        ["score", "-m", "en", trees],
        ["generate", "-m", "en", "-n", "1"],
        ["export", "-m", "en", "--out", here / "rules.pcfg"],
        ["grammar", "-m", "en", trees, "--out", here / "book.html"],
        ["compress", "-m", "en", "--out", here / "small"],
        ["ensemble", "-m", "en", "-m", "other", "--out", here / "both"],
        ["compare", "en", "right", trees],
        ["train", trees, "--teacher", "en", "--epochs", "1", "--preterminals", "2", "--out", here / "student"],
    ):
        found = command(*arguments)
        if arguments[0] == "train":  # a single sentence cannot be held out
            assert "held out" in found.stderr
        else:
            assert found.returncode == 0, (arguments, found.stderr)
    found = command("evaluate", "-m", "en", "--baseline", "right", trees)
    assert "en" in found.stdout.split()
    assert str(models) not in found.stdout


def test_a_folder_of_that_name_comes_first_and_a_note_says_so(models, here):
    shutil.copytree(models / "other", here / "en")
    with pytest.warns(RamifyWarning, match="the model in .* is used instead of the bundled model"):
        assert resolve("en") == Path("en")
    assert resolve("en") == Path("en")  # reported only once
    model_names._note_hidden.cache_clear()
    found = command("parse", "-m", "en", given=SENTENCE)
    assert found.stdout == tree_of(models / "other")
    assert found.stderr.count("instead of the bundled model") == 1


def test_a_file_of_rules_comes_first(here):
    command("export", "-m", "en", "--out", here / "rules.pcfg")
    assert resolve("rules.pcfg") == Path("rules.pcfg")
    assert tree_of("rules.pcfg")


def test_an_unknown_name_lists_the_bundled_ones():
    found = command("parse", "-m", "de", given=SENTENCE)
    assert found.returncode == 2
    assert found.stderr.startswith("error: de: ")
    assert "bundled model: en" in found.stderr
    with pytest.raises(RamifyError, match="bundled model: en"):
        ramify.load("de")
    with pytest.raises(RamifyError, match="bundled models en"):
        system_kind("de")


def test_without_bundled_models_none_are_listed(here, monkeypatch):
    monkeypatch.setattr(model_names, "BUNDLED", here / "nothing")
    with pytest.raises(RamifyError, match=r"de: this model folder does not exist; check the name"):
        ramify.load("de")
    assert command("models").stderr == "This installation has no bundled models.\n"


def test_models_lists_them_and_prints_a_card(models):
    size = sum(file.stat().st_size for file in (models / "bundled" / "en").iterdir()) / 1e6
    assert command("models").stdout == f"en: English, for tests (189 words, {size:.1f} MB)\n"
    assert command("models", "en").stdout == "# English, for tests\n\nA card.\n"
    refused = command("models", "de").stderr
    assert refused.startswith("error: de: ")
    assert "en." in refused


class StandIn:
    """`snapshot_download` as it works with `local_dir`, but from a local folder."""

    def __init__(self, source: Path, real: Callable[..., object]) -> None:
        self.source, self.calls, self._signature = source, [], inspect.signature(real)

    def __call__(self, *args: object, **kwargs: object) -> str:
        given = self._signature.bind(*args, **kwargs).arguments
        self.calls.append(given)
        for file in sorted(self.source.rglob("*")):
            inside = file.relative_to(self.source)
            if file.is_file() and any(fnmatch(inside.as_posix(), each) for each in given["allow_patterns"]):
                (given["local_dir"] / inside.parent).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, given["local_dir"] / inside)
        return str(given["local_dir"])


@pytest.fixture
def stand_in(models: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    repository = here / "repository"
    shutil.copytree(models / "other", repository)
    (repository / "pytorch_model.bin").write_bytes(b"pickled")
    (repository / "code.py").write_text("raise SystemExit")
    found = StandIn(repository, huggingface_hub.snapshot_download)
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(here / "home"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", found)
    inspect.signature(huggingface_hub.model_info).bind("owner/name", revision="main")
    monkeypatch.setattr(huggingface_hub, "model_info", lambda _, revision: SimpleNamespace(sha=f"{revision:0<40}"))
    return found


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_model_of_the_hub(stand_in, models, here):
    name = f"hf:owner/name@{COMMIT}"
    found = command("parse", "-m", name, given=SENTENCE)
    assert found.stdout == tree_of(models / "other") != ""
    assert "commit" not in found.stderr  # a pinned revision is not reported
    assert str(ramify.load(name).parse(SENTENCE)) == str(ramify.load(models / "other").parse(SENTENCE))
    [call] = stand_in.calls  # within one process only once
    assert (call["repo_id"], call["revision"]) == ("owner/name", COMMIT)
    place = here / "home" / "ramify" / f"owner--name@{COMMIT}"
    assert {file.name for file in place.iterdir()} == {"config.json", "vocab.txt", "model.safetensors", "spelling.json"}
    assert split_name(f"theirs={name}") == ("theirs", place)


def test_a_branch_is_pinned_to_its_commit_which_is_reported(stand_in):
    pinned = f"{'main':0<40}"
    with pytest.warns(RamifyWarning, match=f"hf:owner/name@{pinned} "):
        found = resolve("hf:owner/name@main")
    assert found.name == f"owner--name@{pinned}"
    assert [call["revision"] for call in stand_in.calls] == [pinned]


def test_an_ensemble_of_the_hub(stand_in, models):
    shutil.rmtree(stand_in.source)
    command("ensemble", "-m", models / "other", "-m", "en", "--out", stand_in.source)
    assert len(ramify.load(f"hf:owner/both@{COMMIT}").members) == 2


def test_downloaded_files_are_checked(stand_in):
    weights = stand_in.source / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    found = command("parse", "-m", f"hf:owner/name@{COMMIT}", given=SENTENCE)
    assert found.returncode == 2
    assert "checksum" in found.stderr


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("hf:owner/name", "the revision is missing; give hf:owner/name@"),
        ("hf:name@main", "give hf:owner/name@revision"),
        ("hf:owner/name@", "give hf:owner/name@revision"),
        ("hf:../../etc@main", "give hf:owner/name@revision"),
        ("hf:owner/name@../../x", "give hf:owner/name@revision"),
        ("hf:owner/name@a b", "give hf:owner/name@revision"),
        ("hf:https://example.org/x@main", "give hf:owner/name@revision"),
    ],
)
def test_wrong_names_of_the_hub(name, reason, stand_in):
    found = command("parse", "-m", name, given=SENTENCE)
    assert found.returncode == 2
    assert reason in found.stderr
    assert not stand_in.calls


@pytest.mark.usefixtures("stand_in")
def test_the_hub_is_out_of_reach(monkeypatch):
    def fails(*_: object, **__: object) -> str:
        raise ConnectionError("no route to host\nmore")

    monkeypatch.setattr(sys.modules["huggingface_hub"], "snapshot_download", fails)
    found = command("parse", "-m", f"hf:owner/name@{COMMIT}", given=SENTENCE)
    assert found.stderr == (
        f"error: hf:owner/name@{COMMIT}: cannot be downloaded (no route to host); check the name and the network.\n"
    )


def test_without_its_library_the_hub_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "pip install 'ramify[hub]'" in command("parse", "-m", "hf:owner/name@main", given=SENTENCE).stderr


def test_names_are_resolved_without_torch():
    code = (
        "import sys; from ramify.model_names import resolve; resolve('en'); "
        "print(*(name in sys.modules for name in ('torch', 'huggingface_hub')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert found.stdout == "False False\n"
