"""The API follows its OpenAPI description for generated requests."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig

from ramify.corpus.builtin import builtin_grammar
from ramify.corpus.rule_files import write_rules

PATHS = {"/livez", "/readyz", "/metrics", "/v1/models", "/v1/parse", "/v1/score", "/v1/grammar"}
# A JSON schema cannot say that spans of a sentence must not cross or that brackets must be closed: such requests are
# refused with 422 although they fit the schema. All other checks are as they come.
CONFIG = {"checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "404", "422"]}}}


def test_the_description_is_complete(client):
    found = client.get("/openapi.json").json()
    assert set(found["paths"]) == PATHS
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


@pytest.fixture(scope="module")
def described(start_server, tmp_path_factory):
    rules = tmp_path_factory.mktemp("described") / "rules.pcfg"
    write_rules(rules, builtin_grammar())
    server = start_server("-m", rules)
    return schemathesis.openapi.from_url(f"{server.address}openapi.json", config=SchemathesisConfig.from_dict(CONFIG))


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_generated_requests(described, mode):
    tried = set()
    for found in described.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        def check(case: schemathesis.Case) -> None:
            case.call_and_validate()

        try:
            check()
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE  # requests without parameters cannot be invalid
            continue
        tried.add(operation.path)
    assert tried == PATHS if mode is GenerationMode.POSITIVE else {"/v1/parse", "/v1/score", "/v1/grammar"} <= tried
