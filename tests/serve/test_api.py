"""Responses of the API equal the results of the library, also with concurrent requests."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from starlette.testclient import TestClient

import ramify
from ramify.corpus.brackets import read_brackets
from ramify.corpus.reading import Corpus
from ramify.drawing.svg import layout_for
from ramify.evaluation.gold import load_gold
from ramify.parser import FORMATS, Parser
from ramify.serve.limits import Limits
from ramify.serve.served_models import ServedModel, ServedModels
from tests.serve.conftest import MARKUP, SENTENCE, service_of, started

LONG = " and ".join([SENTENCE] * 3)
GOLD = (
    "(TOP (S (NP (DT the) (JJ old) (NN woman)) (VP (VBD watched) (NP (DT the) (NN dog))) (. .)))",
    "(TOP (S (NP (DT the) (NN man)) (VP (VBD slept))))",
)


def parse(client: TestClient, *sentences: object, **options: object) -> dict:
    answer = client.post("/v1/parse", json={"sentences": list(sentences), **options})
    assert answer.status_code == 200, answer.text
    return answer.json()


def problem(answer, status: int, text: str) -> dict:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert set(found) == {"type", "title", "status", "detail"}
    assert found["status"] == status
    assert text in found["detail"], found["detail"]
    assert "\n" not in found["detail"]
    return found


@pytest.mark.parametrize("decoder", ["mbr", "mbr-labelled", "viterbi", "sample"])
def test_parses_are_those_of_the_library(client, parser, decoder):
    sentences = [SENTENCE, "the dog slept", "", "dog", LONG]
    found = parse(client, *sentences, decoder=decoder, posteriors=True, seed=3, formats=["brackets", "spans"])
    assert (found["model"], found["decoder"]) == ("true", decoder)
    analyses = list(parser.analyse_many(sentences, decoder, 3))
    for result, analysis in zip(found["results"], analyses, strict=True):
        record = json.loads(json.dumps(analysis.as_record(with_posteriors=True)))
        assert result["constituents"] == record["constituents"]
        assert result["tokens"] == record["tokens"]
        assert result["failure"] == record["failure"]
        if record["log_probability"] is not None:
            assert result["log_probability"] == pytest.approx(record["log_probability"], rel=1e-5)
        assert result["formats"] == {"brackets": FORMATS["brackets"](analysis), "spans": FORMATS["spans"](analysis)}
        np.testing.assert_allclose(result["posteriors"]["labels"], record["posteriors"]["labels"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["auto", "horizontal", "vertical"])
def test_pictures_are_those_of_the_library(client, parser, layout):
    for sentence in (SENTENCE, LONG):
        (result,) = parse(client, sentence, formats=["svg", "forest", "qtree", "conllu"], layout=layout)["results"]
        analysis = parser.analyse(sentence)
        assert result["formats"]["svg"] == analysis.as_svg(None if layout == "auto" else layout)
        for name in ("forest", "qtree", "conllu"):
            assert result["formats"][name] == FORMATS[name](analysis)
        assert result.get("tree") is None


def test_the_drawing_has_the_numbers_of_the_svg(client):
    for sentence in (SENTENCE, LONG):
        (result,) = parse(client, sentence, formats=["svg"], drawing=True)["results"]
        tree, svg = result["tree"], result["formats"]["svg"]
        assert tree["layout"] == layout_for(len(result["tokens"]))
        assert f'width="{tree["width"]}" height="{tree["height"]}"' in svg
        for node in tree["nodes"]:
            anchor = node["text-anchor"]
            place = f'x="{node["x"]:.1f}" y="{node["y"]:.1f}" font-size="{node["font_size"]:g}" text-anchor="{anchor}"'
            assert f'<text class="{node["kind"]}" {place}>{node["text"]}</text>' in svg
            if node["posterior"] is not None:
                x, y, width, height = (f"{each:.1f}" for each in node["box"])
                shape = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill-opacity="{node["shade"]}"'
                assert shape in svg
        for edge in tree["edges"]:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge["points"])
            assert f'points="{points}"' in svg
        assert svg.count("<polyline") == len(tree["edges"])
        assert svg.count("<text") == len(tree["nodes"])


def test_constraints_hold_and_are_scored(client, learnt):
    given = {"must": [[3, 6]], "must_not": [[0, 2]]}
    (result,) = parse(client, {"text": SENTENCE, "constraints": given}, model=MARKUP)["results"]
    analysis = learnt.analyse(SENTENCE, constraints=given)
    spans = [each[:2] for each in result["constituents"]]
    assert [3, 6] in spans
    assert [0, 2] not in spans
    assert result["constraint_probability"] == pytest.approx(analysis.constraint_probability, rel=1e-3)


def test_contradictory_constraints_affect_only_their_request(client):
    crossing = {"text": SENTENCE, "constraints": {"must": [[0, 2], [1, 3]]}}
    problem(client.post("/v1/parse", json={"sentences": [SENTENCE, crossing]}), 422, "sentence 2: 'the old' (tokens")
    outside = {"text": "the dog slept", "constraints": {"must": [[0, 9]]}}
    problem(client.post("/v1/parse", json={"sentences": [outside]}), 422, "3 tokens")


def test_gold_scores_are_those_of_evaluate(client, parser):
    found = parse(client, *({"gold": tree} for tree in GOLD), "the dog slept")
    parses = list(read_brackets(GOLD, "gold"))
    corpus = Corpus(parses, "brackets", "gold", "0" * 64)
    expected = ramify.evaluate(parser, corpus)
    assert found["scores"]["sentence_f1"] == pytest.approx(expected.scores.sentence_f1)
    assert found["scores"]["corpus_f1"] == pytest.approx(expected.scores.corpus_f1)
    assert found["scores"]["sentences"] == 2
    assert found["scores"]["signature"].split(" | data")[0] == load_gold(corpus).signature("tn").split(" | data")[0]
    first = found["results"][0]
    assert first["tokens"][-1] == "."
    score = first["gold"]["score"]
    assert score["correct"] == sum(1 for right in first["gold"]["correct"] if right)
    assert score["predicted"] == sum(1 for right in first["gold"]["correct"] if right is not None)
    assert score["gold"] == score["correct"] + len(first["gold"]["missed"])
    assert "gold" not in found["results"][2]


def test_log_probabilities_are_those_of_the_library(client, parser):
    sentences = [SENTENCE, "the dog slept", "dog", "zzz dog slept"]
    answer = client.post("/v1/score", json={"sentences": sentences}).json()
    for result, expected in zip(answer["results"], parser.score_many(sentences), strict=True):
        assert result["failure"] == expected.failure
        assert (result["words"], result["unknown"]) == (expected.count.words, expected.count.unknown)
        if np.isfinite(expected.log_probability):
            assert result["log_probability"] == pytest.approx(expected.log_probability, rel=1e-5)
        else:
            assert result["log_probability"] is None


def test_the_glossary_describes_every_symbol(client, parser):
    overview = client.get("/v1/grammar").json()
    names = [each["name"] for each in (*overview["nonterminals"], *overview["preterminals"])]
    assert set(names) >= {"S", "NP", "VP"} & set(parser.labels)
    for name in names:
        card = client.get("/v1/grammar", params={"symbol": name}).json()["symbol"]
        assert card["name"] == name
        assert card["kind"] in ("nonterminal", "preterminal")
        assert card["facts"] or card["rules"]
        assert all(rule["probability"] > 0 and len(rule["children"]) == 2 for rule in card["rules"])
    problem(client.get("/v1/grammar", params={"symbol": MARKUP}), 404, "is not a symbol")
    problem(client.get("/v1/grammar", params={"model": "none"}), 404, "choose one of true")


def test_models_are_found_by_name(client):
    found = client.get("/v1/models").json()
    assert [each["name"] for each in found["models"]] == ["true", MARKUP]
    assert "viterbi" in found["models"][0]["decoders"]
    assert found["models"][0]["example"] == SENTENCE
    assert parse(client, "a b c", model=MARKUP)["model"] == MARKUP
    problem(client.post("/v1/parse", json={"sentences": ["a"], "model": "x"}), 404, "'x' is not served")
    answer = client.post("/v1/parse", json={"sentences": ["a"], "decoder": "biased"})
    problem(answer, 422, "the decoder biased; choose one of mbr")


def test_many_clients_get_their_own_answers(client, parser):
    words = "the old woman man dog garden watched saw".split()
    chance = np.random.default_rng(0)
    sentences = [" ".join(chance.choice(words, chance.integers(2, 12))) for _ in range(120)]
    expected = [FORMATS["brackets"](analysis) for analysis in parser.analyse_many(sentences)]

    def one(place: int) -> bool:
        given = sentences[place : place + 3]
        found = parse(client, *given)["results"]
        return [each["formats"]["brackets"] for each in found] == expected[place : place + 3]

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(0, 120, 3)))


def test_samples_depend_on_the_seed_and_not_on_others(client, parser):
    expected = [FORMATS["brackets"](each) for each in parser.analyse_many([SENTENCE] * 3, "sample", 7)]

    def one(_: int) -> list[str]:
        found = parse(client, *[SENTENCE] * 3, decoder="sample", seed=7)["results"]
        return [each["formats"]["brackets"] for each in found]

    with ThreadPoolExecutor(8) as pool:
        assert all(each == expected for each in pool.map(one, range(24)))


def test_a_server_is_ready_after_its_first_parse(parser):
    gate = threading.Event()

    class Waiting(Parser):
        def _analyse_window(self, *arguments):
            gate.wait()
            return super()._analyse_window(*arguments)

    waiting = Waiting(parser.model, parser.vocabulary, parser.labels, parser.tags)
    with started(ServedModels([ServedModel("slow", waiting)])) as client:
        assert client.get("/livez").text == "ok\n"
        answer = client.get("/readyz")
        problem(answer, 503, "being prepared")
        assert answer.headers["retry-after"] == "5"
        problem(client.post("/v1/parse", json={"sentences": ["a"]}), 503, "being prepared")
        assert b"ramify_ready 0.0" in client.get("/metrics").content
        gate.set()
        while client.get("/readyz").status_code != 200:
            pass
        assert b"ramify_ready 1.0" in client.get("/metrics").content


def test_metrics_count(client):
    before = client.get("/metrics").text
    parse(client, SENTENCE)
    client.get("/nowhere")
    after = client.get("/metrics").text

    def value(text: str, name: str) -> float:
        return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(name)), 0.0)

    assert value(after, "ramify_sentences_total ") == value(before, "ramify_sentences_total ") + 1
    assert value(after, "ramify_words_total ") == value(before, "ramify_words_total ") + 12
    parsed = 'ramify_answers_total{route="/v1/parse",status="200"}'
    assert value(after, parsed) == value(before, parsed) + 1
    assert 'route="other",status="404"' in after
    assert "/nowhere" not in after


def test_limits_are_those_that_were_set(parser):
    limits = Limits(sentences=2, words=5)
    with started(ServedModels([ServedModel("small", parser)]), limits) as client:
        while not service_of(client).ready:
            pass
        assert client.get("/v1/models").json()["limits"] == {"body_bytes": 1 << 20, "sentences": 2, "words": 5}
        problem(client.post("/v1/parse", json={"sentences": ["a"] * 3}), 422, "more than the 2 of one request")
        problem(client.post("/v1/score", json={"sentences": ["a b c d e f"]}), 422, "has 6 words")
        assert client.post("/v1/parse", json={"sentences": ["a b c d e"]}).status_code == 200
