"""ramify in a pipeline of spaCy: attributes of docs, saving and sending docs, and saving the pipeline."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import ramify as package
from ramify.errors import RamifyError, RamifyWarning
from tests.conftest import FIXTURES, MISSING

pytestmark = pytest.mark.needs("spacy")
spacy: Any = None if "spacy" in MISSING else import_module("spacy")

MODELS = FIXTURES / "models"
MODEL = MODELS / "n-pcfg"
SNIPPET = "The time for action is now. It's never too late to do something."
TEXTS = [
    SNIPPET,
    "",
    " \n ",
    "Dog",
    "The dog saw  a (red) cat . \n\n It ran .",
    "The 🐕 saw 𝒸𝒶𝓉s – twice!",
]


def pipeline(model: Path | str = MODEL, **config: object):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("ramify", config={"model": str(model), **config})
    return nlp


@pytest.fixture(scope="module")
def nlp():
    return pipeline()


def test_code_for_benepar_works_with_the_name_changed(nlp):
    doc = nlp(SNIPPET)
    sent = list(doc.sents)[0]  # noqa: RUF015
    tree = package.load(MODEL).parse("The time for action is now .".split())
    assert sent._.parse_string == " ".join(str(tree).split())
    assert sent._.labels == ("TOP",)
    assert list(sent._.children)[0].text == "The time for action is now"  # noqa: RUF015
    assert [child.text for child in sent._.children][1] == "."


def test_navigation_is_that_of_the_tree(nlp):
    doc = nlp(TEXTS[4])
    for sent in doc.sents:
        words = [token.text for token in sent if not token.is_space]
        if not words:
            assert (sent._.labels, sent._.parse_string, list(sent._.constituents)) == ((), "", [])
            continue
        tree = package.load(MODEL).parse(words)
        everything = list(sent._.constituents)
        below_top = list(tree.subtrees())
        leaves = [[t.text for t in span if not t.is_space] for span in everything]
        assert len(everything) == len({(span.start, span.end) for span in everything}) <= len(below_top)
        for node in below_top:
            assert [w.replace("-LRB-", "(").replace("-RRB-", ")") for w in node.leaves()] in leaves
        for span in everything:
            above = span._.parent
            if above is None:
                assert (span.start, span.end) == (everything[0].start, everything[0].end)
                continue
            assert above.start <= span.start
            assert span.end <= above.end
            assert len(above) > len(span)
            assert (span.start, span.end) in [(child.start, child.end) for child in above._.children]
            assert span._.parse_string in above._.parse_string
            assert all(child._.parent.text == span.text for child in span._.children)


def test_posteriors_labels_and_tokens(nlp):
    doc = nlp(SNIPPET)
    analysis = package.load(MODEL).analyse("The time for action is now .".split())
    for (i, j), label in zip(analysis.parse.spans, analysis.parse.labels, strict=True):
        span = doc[int(i) : int(j)]
        assert span._.labels == (label,)
        assert span._.posterior == pytest.approx(float(analysis.posteriors[i, j]), rel=1e-5)
    token = doc[1]
    assert token._.labels == ()
    assert token._.parse_string == f"({analysis.parse.tags[1]} time)"
    assert token._.parent.start <= 1 < token._.parent.end
    assert [each.text for each in token._.constituents] == ["time"]
    assert doc[1:3]._.labels == ()
    assert doc[1:3]._.posterior is None
    assert doc[1:3]._.parse_string == ""
    with pytest.raises(RamifyError, match="not inside one sentence"):
        _ = doc[5:9]._.labels


def test_a_sentence_without_punctuation_has_two_labels_over_the_same_words():
    nlp = spacy.blank("en")
    nlp.add_pipe("ramify", config={"model": str(MODEL)})
    doc = nlp("the dog saw it")  # without sentence boundaries: one sentence
    labels = doc[:]._.labels
    assert len(labels) == 2
    assert labels[0] == "TOP"
    assert doc[:]._.parse_string.startswith(f"(TOP ({labels[1]} (")
    assert doc[:]._.parent is None
    (record,) = doc._.ramify
    assert (record["start"], record["end"], record["failure"]) == (0, 4, None)
    assert record["log_probability"] == pytest.approx(package.load(MODEL).analyse("the dog saw it").log_probability)


def test_nothing_else_is_changed(nlp):
    plain = spacy.blank("en")
    plain.add_pipe("sentencizer")
    for text in TEXTS:
        before, after = plain(text), nlp(text)
        attributes = ("TAG", "POS", "DEP", "HEAD", "LEMMA", "SENT_START", "ENT_IOB", "ORTH", "SPACY")
        assert (before.to_array(attributes) == after.to_array(attributes)).all()
        assert [t.tag_ for t in after] == [""] * len(after)
        assert list(after.spans) == ["ramify"]
    tagged = nlp.make_doc("the dog")
    for token in tagged:
        token.tag_ = "MINE"
    assert [token.tag_ for token in nlp(tagged)] == ["MINE", "MINE"]


def test_pipe_equals_calls_in_batches_of_any_size(nlp):
    alone = [nlp(text)._.ramify for text in TEXTS]
    for size in (1, 2, 100):
        docs = list(nlp.pipe(TEXTS, batch_size=size))
        assert [doc.text for doc in docs] == TEXTS
        for found, expected in zip(docs, alone, strict=True):
            assert_same(found._.ramify, expected)
    small = pipeline(batch_size=1)
    for found, expected in zip(small.pipe(TEXTS), alone, strict=True):
        assert_same(found._.ramify, expected)


def assert_same(found, expected) -> None:
    """The last digits depend on which sentences share a batch."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert {k: v for k, v in one.items() if k not in ("constituents", "log_probability")} == {
            k: v for k, v in other.items() if k not in ("constituents", "log_probability")
        }
        assert (one["log_probability"] or 0) == pytest.approx(other["log_probability"] or 0, rel=1e-5)
        assert [each[:3] for each in one["constituents"]] == [each[:3] for each in other["constituents"]]
        assert [each[3] for each in one["constituents"]] == pytest.approx(
            [e[3] for e in other["constituents"]], rel=1e-4
        )


WORKERS = """
import sys, warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", category=DeprecationWarning)  # of forks in programs with threads
import multiprocessing, pathlib, spacy
from ramify.corpus.builtin import builtin_treebank

if __name__ == "__main__":
    method, model, folder = sys.argv[1:]
    multiprocessing.set_start_method(method)
    nlp = spacy.blank("en")
    nlp.add_pipe("ramify", config={"model": model})
    texts = [" ".join(parse.words) for parse in builtin_treebank(0, train=40, dev=1, test=1)["train"]]
    texts += ["", "  \\n", "a " * 40]
    here = [doc._.ramify for doc in nlp.pipe(texts)]  # the model is in memory, its threads and loops were used
    docs = list(nlp.pipe(texts, n_process=2, batch_size=8))
    def shape(records):
        return [[each[:3] for each in record["constituents"]] for record in records]
    assert [shape(doc._.ramify) for doc in docs] == [shape(each) for each in here]
    assert [len(doc.spans["ramify"]) > 0 for doc in docs] == [bool(text.strip()) for text in texts]
    nlp.to_disk(folder)
    again = spacy.load(folder)
    assert [shape(doc._.ramify) for doc in again.pipe(texts, n_process=2, batch_size=8)] == [shape(e) for e in here]
    print("done", len(docs))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_two_processes_before_and_after_saving(tmp_path, method):
    (tmp_path / "workers.py").write_text(WORKERS)
    command = [sys.executable, tmp_path / "workers.py", method, str(MODELS / "tn-pcfg"), tmp_path / "saved"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "done 43\n"


def test_docs_survive_being_saved(nlp):
    from spacy.tokens import Doc, DocBin

    doc = nlp(SNIPPET)
    first = list(doc.sents)[0]  # noqa: RUF015
    copy = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert copy._.ramify == doc._.ramify
    assert [(s.start, s.end, s.label_) for s in copy.spans["ramify"]] == [
        (s.start, s.end, s.label_) for s in doc.spans["ramify"]
    ]
    (whole,) = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
    assert whole[first.start : first.end]._.parse_string == first._.parse_string
    (bare,) = DocBin(docs=[doc]).get_docs(nlp.vocab)  # without user data: all but tags and numbers
    again = bare[first.start : first.end]
    assert [(s.start, s.end, s._.labels) for s in again._.constituents] == [
        (s.start, s.end, s._.labels) for s in first._.constituents
    ]
    assert again._.parse_string.startswith("(TOP (NT-0 (")
    assert pickle.loads(pickle.dumps(doc))._.ramify == doc._.ramify


def test_displacy_draws_the_span_group(nlp):
    from spacy import displacy

    drawn = displacy.render(nlp("The dog saw a <cat>."), style="span", options={"spans_key": "ramify"}, jupyter=False)
    assert "NT-0" in drawn
    assert "<cat>" not in drawn


@pytest.mark.parametrize("kind", ["model", "bundled", "ensemble", "rules", "bytes"])
def test_a_saved_pipeline_has_its_model_with_it(tmp_path, monkeypatch, kind):
    source = tmp_path / "source"
    if kind == "ensemble":
        package.Ensemble([MODEL, MODELS / "tn-pcfg"]).save(source)
    elif kind == "rules":
        source = tmp_path / "source.pcfg"
        from tests.command import ramify

        assert ramify("export", "-m", MODEL, "--out", source).returncode == 0
    else:
        shutil.copytree(MODEL, source)
        (source / "checkpoint.safetensors").write_bytes(b"large")
        (source / "link").symlink_to(tmp_path)
    name = source
    if kind == "bundled":
        monkeypatch.setattr("ramify.model_names.BUNDLED", tmp_path)
        name = "source"
    nlp = pipeline(name)
    expected = nlp(SNIPPET)._.ramify
    if kind == "bytes":
        data = nlp.to_bytes()
        again = pipeline("nowhere").from_bytes(data)
    else:
        nlp.to_disk(tmp_path / "saved")
        nlp.to_disk(tmp_path / "saved")  # again: it replaces its own files
        moved = tmp_path / "moved"
        (tmp_path / "saved").rename(moved)
        again = spacy.load(moved)
    (source.unlink if source.is_file() else lambda: shutil.rmtree(source))()
    assert again(SNIPPET)._.ramify == expected
    if kind == "model":
        inside = {path.name for path in (moved / "ramify" / "model").iterdir()}
        assert inside == {path.name for path in MODEL.iterdir()}
        again.to_disk(moved)  # to where it was loaded from
        assert spacy.load(moved)(SNIPPET)._.ramify == expected
        (moved / "ramify" / "model" / "config.json").unlink()
        with pytest.raises(RamifyError, match="not a model"):
            pipeline().to_disk(moved)


def test_bytes_stay_in_their_folder():
    import srsly

    component = pipeline().get_pipe("ramify")
    with pytest.raises(RamifyError, match="outside its folder"):
        component.from_bytes(srsly.msgpack_dumps({"../escaped": b""}))


def test_a_wrong_model_is_one_sentence_at_the_first_doc():
    nlp = pipeline("no-such-model")
    with pytest.raises(RamifyError, match="no-such-model"):
        nlp("a dog")
    seen = []
    nlp.set_error_handler(lambda name, _component, docs, error: seen.append((name, len(docs), str(error))))
    assert list(nlp.pipe(["a dog", "it saw"])) == []
    assert [(name, count) for name, count, _ in seen] == [("ramify", 2)]


def test_long_docs_without_boundaries_are_announced_once():
    nlp = spacy.blank("en")
    nlp.add_pipe("ramify", config={"model": str(MODEL), "max_length": 20})
    with pytest.warns(RamifyWarning, match="has no sentence boundaries"):
        doc = nlp("a dog saw it " * 25)
    assert doc._.ramify[0]["failure"] == "too long"
    assert [span.label_ for span in doc.spans["ramify"]] == ["TOP"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp("a dog saw it " * 25)


def test_tokens_with_spaces_inside(nlp):
    doc = nlp.make_doc("New York saw it")
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    parsed = nlp(doc)
    assert "New\u00a0York" in parsed[:]._.parse_string
    assert parsed[0].text == "New York"


TAKEN = """
from spacy.tokens import Span
Span.set_extension("labels", default="another's")
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("ramify", config={"model": MODEL})
nlp.add_pipe("ramify", name="second", config={"model": MODEL})
doc = nlp("the dog saw it")
assert doc[:]._.labels == "another's"
assert doc[:]._.ramify_labels[0] == "TOP"
assert doc[:]._.parse_string.startswith("(TOP")
assert not Span.has_extension("ramify_parse_string")
"""


@pytest.mark.slow
def test_existing_attributes_are_not_replaced():
    code = f"MODEL = {str(MODEL)!r}\n{TAKEN}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_listing_factories_registers_no_names():
    code = (
        "import spacy\nfrom spacy.tokens import Span, Doc\nassert spacy.blank('en').has_factory('ramify')\n"
        "assert not Span.has_extension('labels') and not Doc.has_extension('ramify')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
