"""The application: routes, and the path of a request to the models and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Query
from starlette.responses import PlainTextResponse, Response

from ramify.corpus.sentence import Sentence
from ramify.errors import RamifyError
from ramify.parser import Analysis, Parser
from ramify.parser.analysis import Scored
from ramify.serve.answers import as_bytes, parse_answer, score_answer
from ramify.serve.batching import Batcher, Job
from ramify.serve.limits import Limits, RefusedError
from ramify.serve.metrics import CONTENT_TYPE, Metrics
from ramify.serve.page import Page
from ramify.serve.problems import add_handlers, documented
from ramify.serve.read_request import read_request
from ramify.serve.schemas import ModelsAnswer, ParseAnswer, ParseRequest, ScoreAnswer, ScoreRequest
from ramify.serve.served_models import ServedModel, ServedModels
from ramify.version import VERSION

Result = TypeVar("Result")
POST_ERRORS = documented(400, 404, 408, 413, 422, 503)
GET_ERRORS = documented(400, 404, 413, 422)
GLOSSARY_EXAMPLE = {
    "model": "mine",
    "symbol": {"name": "NT-3", "kind": "nonterminal", "share": 0.21, "use": "21% of constituents"},
}


class Service:
    """Shared state of the routes: models, their thread, and a thread that reads sentences and describes grammars."""

    def __init__(self, served_models: ServedModels, limits: Limits) -> None:
        self.served_models, self.limits, self.ready = served_models, limits, False
        self.metrics = Metrics(lambda: self.batcher.waiting_words, lambda: self.batcher.unfinished)
        self.batcher = Batcher(limits, self.metrics.on_batch)
        self._reader = ThreadPoolExecutor(1, "ramify-reader")
        self._describer = ThreadPoolExecutor(1, "ramify-glossary")

    @asynccontextmanager
    async def running(self, _: FastAPI) -> AsyncIterator[None]:
        """From start to stop: the server listens while models are still warming up."""
        self.batcher.start()
        warming = asyncio.create_task(self._warm_up())
        yield
        warming.cancel()
        await asyncio.to_thread(self.batcher.stop)
        for executor in (self._reader, self._describer):
            executor.shutdown(wait=False, cancel_futures=True)

    async def _warm_up(self) -> None:
        """The first parse compiles the inner loops, or loads them."""
        for served in self.served_models:
            example = served.parser.text_rules.sentence_of(served.example.split() or ["a", "b"])
            request = ParseRequest(sentences=[])
            await asyncio.wrap_future(self.batcher.submit(parse_job(served, request, [example], lambda _: b"")))
        self.ready = True
        self.metrics.ready.set(1)
        for served in self.served_models:
            if isinstance(served.parser, Parser):
                await self.describe(lambda served=served: _described(served))  # type: ignore[misc]

    def check_ready(self) -> None:
        """Refuse requests before the models are warm, because compilation takes half a minute."""
        if not self.ready:
            raise RefusedError(503, "The models are being prepared; try again in a few seconds.", 5)

    async def read(self, function: Callable[[], Result]) -> Result:
        """Read sentences in a thread, because tokenising would block connections."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, function)

    async def describe(self, function: Callable[[], Result]) -> Result:
        """Describe a grammar in a thread: it takes seconds, in which sentences are still read and parsed."""
        return await asyncio.get_running_loop().run_in_executor(self._describer, function)

    async def parse(self, request: ParseRequest) -> bytes:
        """The response of /v1/parse."""
        self.check_ready()
        served = self.served_models.find(request.model)
        if request.decoder not in served.decoders:
            known = ", ".join(served.decoders)
            raise RamifyError(f"{served.name}: does not support the decoder {request.decoder}; choose one of {known}.")
        read = await self.read(partial(read_request, served.parser, request.sentences, self.limits))
        job = parse_job(served, request, read.sentences, partial(parse_answer, served, request, read))
        return await asyncio.wrap_future(self.batcher.submit(job))

    async def score(self, request: ScoreRequest) -> bytes:
        """The response of /v1/score."""
        self.check_ready()
        served = self.served_models.find(request.model)
        parser = served.parser
        if not isinstance(parser, Parser) or not parser.has_likelihood:
            raise RamifyError(f"{served.name}: has no probabilities of sentences; score with another model.")
        read = await self.read(partial(read_request, parser, request.sentences, self.limits))

        def analyse(sentences: Sequence[Sentence]) -> list[Scored]:
            return list(parser.score_many(sentences))

        job = Job((served.name, "score"), read.sentences, analyse, partial(score_answer, served))
        return await asyncio.wrap_future(self.batcher.submit(job))


def parse_job(
    served: ServedModel, request: ParseRequest, sentences: Sequence[Sentence], answer: Callable[[list[Any]], bytes]
) -> Job:
    """The sentences of a request as a job. Samples depend on their place in the stream, so they share no batch."""
    how = request.decoder, request.seed, None, request.branching

    def analyse(sentences_now: Sequence[Sentence]) -> list[Analysis]:
        return list(served.parser.analyse_many(sentences_now, *how))

    return Job((served.name, "parse", *how), sentences, analyse, answer, whole=request.decoder == "sample")


def _described(served: ServedModel) -> None:
    try:
        served.glossary()
    except RamifyError:  # a model without rules; requests for its grammar get this error
        return


def make_app(served_models: ServedModels, limits: Limits | None = None) -> tuple[FastAPI, Service]:
    """The application without its guard, and the shared state of its routes."""
    service = Service(served_models, limits or Limits())
    page = Page.made()
    app = FastAPI(
        title="ramify",
        version=VERSION,
        summary="Parses sentences with grammars learnt from text.",
        docs_url=None,  # its page would load scripts from another machine
        redoc_url=None,
        lifespan=service.running,
    )
    add_handlers(app)

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return Response(page.content, headers=page.headers, media_type="text/html; charset=utf-8")

    @app.get("/livez", response_class=PlainTextResponse, responses=documented(400, 413))
    async def livez() -> str:
        """Whether the server answers."""
        return "ok\n"

    @app.get("/readyz", response_class=PlainTextResponse, responses=documented(400, 413, 503))
    async def readyz() -> str:
        """Whether the models have parsed a first sentence with compiled loops."""
        service.check_ready()
        return "ready\n"

    @app.get("/metrics", response_class=PlainTextResponse, responses=documented(400, 413))
    async def metrics() -> Response:
        """Numbers for Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    @app.get("/v1/models", response_model=ModelsAnswer, responses=documented(400, 413))
    async def models() -> Response:
        """The models, and what one request may hold."""
        found = [
            {
                "name": served.name,
                "description": served.description,
                "decoders": list(served.decoders),
                "has_likelihood": bool(served.parser.has_likelihood),
                "example": served.example,
            }
            for served in served_models
        ]
        taken = service.limits
        most = {"body_bytes": taken.body_bytes, "sentences": taken.sentences, "words": taken.words}
        return _json(as_bytes({"models": found, "limits": most, "ready": service.ready, "version": VERSION}))

    @app.post("/v1/parse", response_model=ParseAnswer, responses=POST_ERRORS)
    async def parse(request: ParseRequest) -> Response:
        """Trees of sentences; with gold trees also their scores."""
        return _json(await service.parse(request))

    @app.post("/v1/score", response_model=ScoreAnswer, responses=POST_ERRORS)
    async def score(request: ScoreRequest) -> Response:
        """log p(w) of sentences in nats."""
        return _json(await service.score(request))

    @app.get(
        "/v1/grammar",
        responses={**GET_ERRORS, 200: {"content": {"application/json": {"example": GLOSSARY_EXAMPLE}}}},
    )
    async def grammar(
        model: Annotated[str | None, Query(description="One of those in /v1/models.")] = None,
        symbol: Annotated[
            str | None, Query(description="Such as NT-3; without one, all symbols.", examples=["NT-3"])
        ] = None,
    ) -> Response:
        """What the symbols of a grammar stand for: typical phrases, rules, how much each is used."""
        served = served_models.find(model)

        def found() -> bytes:
            glossary = served.glossary()
            part = glossary.overview() if symbol is None else {"symbol": glossary.card(symbol)}
            return as_bytes({"model": served.name, **part})

        return _json(await service.describe(found))

    return app, service


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")
