"""The API does what its OpenAPI description says, whatever a generator of requests thinks of."""

from __future__ import annotations

import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the generator's own dependencies
    import schemathesis
    from hypothesis import HealthCheck, settings

from ramify.corpus.builtin import builtin_grammar
from ramify.parser import Parser
from ramify.serve.app import make_app
from ramify.serve.guard import LOOPBACK, Guard
from ramify.serve.served import Served, Shelf
from tests.serve.conftest import started, until_ready


@pytest.fixture(scope="module")
def web_api(parser):
    app, service = make_app(Shelf([Served("true", parser)]))
    return app, service


def test_the_description_is_complete(client):
    found = client.get("/openapi.json").json()
    assert set(found["paths"]) == {
        "/livez",
        "/readyz",
        "/metrics",
        "/v1/models",
        "/v1/parse",
        "/v1/score",
        "/v1/grammar",
    }
    for path, methods in found["paths"].items():
        for method in methods.values():
            assert method["description"], path
            assert {"200", "400", "413"} <= set(method["responses"]), path
            for status, response in method["responses"].items():
                if status >= "400":
                    assert set(response["content"]) == {"application/problem+json"}, (path, status)
    for name in ("ParseRequest", "ScoreRequest"):
        examples = found["components"]["schemas"][name]["examples"]
        for example in examples:
            assert client.post(f"/v1/{name.removesuffix('Request').lower()}", json=example).status_code == 200
