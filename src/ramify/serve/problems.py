"""Errors as `application/problem+json` (RFC 9457), with the message in `detail`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ramify.errors import RamifyError
from ramify.printing import printable
from ramify.serve.limits import RefusedError
from ramify.serve.schemas import Problem

MEDIA_TYPE = "application/problem+json"


def problem_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None, close: bool = False
) -> Response:
    """One problem; with `close` the connection ends, as after a body that was not read to its end."""
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": printable(detail)}
    response = Response(json.dumps(content), status, headers, MEDIA_TYPE)
    if close:
        response.headers["connection"] = "close"
    return response


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems of a route, for its OpenAPI description."""
    described = {
        400: "The Host header is foreign, or the body is not JSON.",
        404: "There is no such model, symbol or page.",
        408: "The body did not arrive in time.",
        413: "The body is too large.",
        422: "The request is JSON but cannot be served.",
        503: "The server is not ready, has too much to do, or is about to stop.",
    }
    found: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        found[status] = {
            "description": described[status],
            "content": {MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
        }
    if 503 in found:
        found[503]["headers"] = {"Retry-After": {"description": "Seconds", "schema": {"type": "string"}}}
    return found


def add_handlers(app: FastAPI) -> None:
    """Turn all errors into problems."""

    @app.exception_handler(RamifyError)
    def _ours(_: Request, error: RamifyError) -> Response:
        if not isinstance(error, RefusedError):
            return problem_response(422, str(error))
        headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        return problem_response(error.status, str(error), headers)

    @app.exception_handler(RequestValidationError)
    def _invalid(_: Request, error: RequestValidationError) -> Response:
        return problem_response(*_in_one_sentence(error.errors()))

    @app.exception_handler(HTTPException)
    def _of_framework(request: Request, error: HTTPException) -> Response:
        known = {
            400: "The body is not JSON, or not in UTF-8; /openapi.json has examples.",
            404: f"There is no page {request.url.path[:80]!r} here; /openapi.json lists what there is.",
            405: f"{request.method[:20]} is not a method of this page; /openapi.json lists those that are.",
        }
        detail = known.get(error.status_code, f"{error.detail}.")
        return problem_response(error.status_code, detail, error.headers)

    @app.exception_handler(Exception)
    def _unexpected(_: Request, __: Exception) -> Response:
        return problem_response(500, "The server made a mistake, which its log describes; please report it.")


def _in_one_sentence(errors: Sequence[Any]) -> tuple[int, str]:
    first = errors[0]
    if first["type"] == "json_invalid":
        return 400, f"The body is not JSON: {first.get('ctx', {}).get('error', first['msg'])}."
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    if place == "the body" and first["type"] in ("model_attributes_type", "dict_type", "missing"):
        return 422, "The body must be a JSON object sent as application/json; /openapi.json has examples."
    message = first["msg"][:1].lower() + first["msg"][1:]
    return 422, f"The request is wrong at {place[:120]}: {message}; /openapi.json has examples."
