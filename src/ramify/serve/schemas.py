"""What goes in and out, as the OpenAPI description shows it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Decoder = Literal["mbr", "mbr-labelled", "viterbi", "viterbi-rank", "sample", "biased"]
Format = Literal["brackets", "conllu", "forest", "qtree", "spans", "svg"]
Span = Annotated[list[int], Field(min_length=2, max_length=2)]
Labelled = Annotated[list[Any], Field(min_length=3, max_length=3, description="[i, j, label] of tokens i..j-1")]
Place = Annotated[int, Field(ge=0, le=1 << 20)]
GivenSpan = Annotated[list[Place], Field(min_length=2, max_length=2, examples=[[0, 3]])]


class _Given(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class GivenConstraints(_Given):
    """Spans [i, j] of the tokens i..j-1 that must, or must not, be constituents."""

    must: list[GivenSpan] = []
    must_not: list[GivenSpan] = []


class GivenSentence(_Given):
    """A sentence as exactly one of text, tokens and a bracketed gold tree."""

    text: str | None = None
    tokens: list[str] | None = None
    gold: Annotated[
        str | None, Field(description="One tree in brackets: its leaves are parsed, its brackets scored.")
    ] = None
    constraints: GivenConstraints | None = None


SENTENCE = "the old man saw a dog in the park"
ModelName = Annotated[str | None, Field(description="One of those in /v1/models; by default the first.")]


class ParseRequest(_Given):
    """Sentences, and how to parse them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"sentences": [SENTENCE]},
                {
                    "sentences": [{"text": SENTENCE, "constraints": {"must": [[3, 6]], "must_not": [[0, 2]]}}],
                    "posteriors": True,
                    "formats": ["brackets", "forest"],
                },
                {"sentences": [{"gold": "(S (NP (DT the) (NN dog)) (VP (VBD saw) (PRP it)))"}]},
            ]
        }
    )
    sentences: list[str | GivenSentence]
    model: ModelName = None
    decoder: Decoder = "mbr"
    seed: Annotated[int, Field(ge=0, lt=1 << 32, description="For the decoder sample.")] = 0
    branching: Annotated[
        float | None,
        Field(ge=-1000, le=1000, description="Bonus for spans at one end of the sentence; by default the model's own."),
    ] = None
    formats: list[Format] = ["brackets"]
    posteriors: bool = False
    drawing: Annotated[bool, Field(description="Where a page should draw everything, as --format svg does.")] = False
    layout: Literal["auto", "horizontal", "vertical"] = "auto"


class ScoreRequest(_Given):
    """Sentences to compute the probability of."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sentences": [SENTENCE]}]})
    sentences: list[str | GivenSentence]
    model: ModelName = None


class Score(BaseModel):
    """Agreement with gold brackets, in percent, and the brackets that were counted."""

    f1: float
    precision: float
    recall: float
    correct: int
    predicted: int
    gold: int


class GoldResult(BaseModel):
    """Gold brackets and those of the parse, in tokens."""

    score: Score | None = Field(description="null for fewer than two words")
    constituents: list[Labelled]
    correct: list[bool | None] = Field(description="For each constituent of the parse; null where it does not count.")
    missed: list[Labelled]


class SpanPosteriors(BaseModel):
    """Probabilities, in the order of constituents and tags; spans as [i, j, p]."""

    constituents: list[float]
    labels: list[float]
    tags: list[float]
    spans: list[Annotated[list[float], Field(min_length=3, max_length=3)]]


class ParseResult(BaseModel):
    """One sentence; everything counts tokens, punctuation among them."""

    text: str
    tokens: list[str]
    offsets: list[Span]
    tags: list[str]
    unknown: list[bool]
    constituents: list[Labelled]
    log_probability: float | None
    constraint_probability: float | None
    failure: Literal["no derivation", "too long", "constraints"] | None
    heads: list[int] | None = None
    posteriors: SpanPosteriors | None = None
    formats: dict[str, str]
    tree: dict[str, Any] | None = Field(None, description="The placed tree, if a drawing was requested.")
    chart: dict[str, Any] | None = Field(None, description="The grid of span posteriors, if a drawing was requested.")
    gold: GoldResult | None = None


class TotalScore(BaseModel):
    """Of all sentences of a request that have gold trees."""

    sentence_f1: float
    corpus_f1: float
    sentences: int
    signature: str


class ParseAnswer(BaseModel):
    """Results in the order of the sentences."""

    model: str
    decoder: str
    results: list[ParseResult]
    scores: TotalScore | None = None


class ScoreResult(BaseModel):
    """log p(w) in nats; null where there is no derivation."""

    log_probability: float | None
    words: int
    unknown: int
    failure: Literal["no derivation", "too long", "constraints"] | None


class ScoreAnswer(BaseModel):
    """Results in the order of the sentences."""

    model: str
    results: list[ScoreResult]


class ModelInfo(BaseModel):
    """A model that is served."""

    name: str
    description: str
    decoders: list[str]
    has_likelihood: bool
    example: str


class ModelsAnswer(BaseModel):
    """The models, and what a request may hold."""

    models: list[ModelInfo]
    limits: dict[str, int]
    ready: bool
    version: str


class Problem(BaseModel):
    """What is wrong and what to do, in one sentence (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
