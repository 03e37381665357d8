"""A training run, from data to a parser."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ramify.corpus.reading import Corpus
from ramify.corpus.word_order import BRANCHING_BONUS, branching_side
from ramify.errors import RamifyError
from ramify.models import FAMILIES
from ramify.models.batches import check_fits
from ramify.parser.ensemble_members import MemberInput, open_member
from ramify.parser.loading import load_single
from ramify.parser.parser import Parser
from ramify.runtime.devices import choose_device
from ramify.runtime.processes import ALONE, LostProcessError, World, joined
from ramify.runtime.threads import in_fixed_pieces
from ramify.storage.checkpoint import Position
from ramify.storage.locks import locked_folder
from ramify.storage.model_files import BRANCHING, FOCUS, FORMAT, read_config
from ramify.storage.model_folder import StoredModel
from ramify.training.checks import check_size, check_storable, check_teachers
from ramify.training.data import Data, prepare
from ramify.training.dev_set import dev_measure, evaluate_dev, is_finished
from ramify.training.distributed import (
    FollowedFolder,
    LeadingFolder,
    check_restarts,
    check_same_model,
    check_same_run,
    in_groups,
)
from ramify.training.focusing import OnTeacher, SpanScores, scores_of_teachers
from ramify.training.folder import (
    TEACHERS,
    InMemory,
    RunStore,
    check_folder,
    check_same,
    settings_to_resume,
)
from ramify.training.guidance import Guidance
from ramify.training.loop import Progress, train_epoch
from ramify.training.settings import Settings, load_settings, recorded_settings
from ramify.training.stopping import StopRequest, stop_requests
from ramify.training.summary import Summary, Verdict, summarise, summarise_result
from ramify.version import VERSION

DataInput = str | Path | Corpus | Iterable[str | Sequence[str]]
"""A file or folder, sentences that were read already, or sentences as strings or lists of tokens"""


class Callbacks(NamedTuple):
    """The callbacks of a run."""

    on_start: Callable[[Summary], None] = lambda _: None
    on_teacher: OnTeacher = lambda *_: None
    on_progress: Callable[[Progress], None] = lambda _: None
    on_epoch: Callable[[dict[str, Any]], None] = lambda _: None


def train(
    data: DataInput,
    out: str | Path,
    *,
    dev: DataInput | None = None,
    teachers: Sequence[MemberInput] = (),
    config: str | Path | None = None,
    preset: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    on_start: Callable[[Summary], None] = lambda _: None,
    on_teacher: OnTeacher = lambda *_: None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_epoch: Callable[[dict[str, Any]], None] = lambda _: None,
    on_end: Callable[[Verdict], None] = lambda _: None,
    **settings: Any,
) -> Parser:
    """Learn a model from `data` and save it in the folder `out`; returns the parser of the best epoch.

    `data` is a file or folder of text or trees, or a list of sentences, each a string or a list of tokens. `settings`
    are fields of `Settings` and options of the family; `preset` names those of a published model, and
    `ramify train --help` lists all presets. If the data has gold trees, only their words are used; F1 on a dev set
    with trees is recorded but never used to choose the model. With `resume`, an interrupted run continues with its
    settings and gives the same result as an uninterrupted run, bit for bit. Ctrl-C and SIGTERM raise `Stopped` after
    the run is saved.

    `teachers` are parsers, model folders or files of trees: training is then focused on the spans that they find in the
    training sentences, with the strength `focus`. Perplexities never depend on them. The choice of the epoch does only
    if training follows the trees of their average (`focus_on="average"`): the epoch is kept whose trees agree best with
    the average on the dev set.

    `on_start` is called once before the first step, `on_teacher` while teachers parse, `on_progress` after every step,
    `on_epoch` after every epoch with its line of `metrics.jsonl`, and `on_end` once after the last epoch.

    Under torchrun, all processes share the run. Only the first one writes to `out` and calls the callbacks; all of them
    return the parser.
    """
    world = joined()
    if not world.is_first:
        return _follow(world, data, dev, teachers)
    out = Path(out)
    check_restarts(world, resume)
    check_folder(out, resume, overwrite)
    callbacks = Callbacks(on_start, on_teacher, on_progress, on_epoch)
    with locked_folder(out):
        earlier = settings_to_resume(out, resume, overwrite)  # again, now that no other process can change it

        def choose(sentences: int | None) -> Settings:
            chosen = in_groups(load_settings(config, settings, earlier, preset, sentences), world)
            world.found_by_first(lambda: (asdict(chosen), earlier is not None))
            return chosen

        run = _Run(data, dev, choose, teachers, earlier is not None, world)
        if earlier is not None:
            before = read_config(out)
            if not teachers and (out / FOCUS).exists():
                run.description[TEACHERS] = before.get(TEACHERS)  # their scores are in the folder
            check_same(out, before, run.description)
        folder = LeadingFolder(out, world)
        folder.begin(run.description, run.stored, earlier is not None)
        records = run.learn(folder, callbacks, f"the run is saved in {out} and can be resumed")
        folder.send_best()
        device, read = run.stored.model.device, run.data
        del run  # frees memory for the tables of the loaded model
        parser = load_single(out, str(device))
        on_end(summarise_result(read, records, parser))
        return parser


def _follow(world: World, data: DataInput, dev: DataInput | None, teachers: Sequence[MemberInput]) -> Parser:
    """Take part in the run of the first process, with its settings."""
    settings, resumed = world.found_by_first(lambda: None)

    def choose(sentences: int | None) -> Settings:
        # Settings for reading the data come first; those that depend on the amount of text follow after reading.
        return recorded_settings(settings if sentences is None else world.found_by_first(lambda: None)[0])

    run = _Run(data, dev, choose, teachers, resumed, world)
    folder = FollowedFolder(world)
    run.learn(folder, Callbacks(), "the first process saves the run")
    folder.load_best(run.stored.model)
    return Parser.of_stored(run.stored, run.description)


def fit(
    sentences: DataInput,
    *,
    dev: DataInput | None = None,
    teachers: Sequence[MemberInput] = (),
    preset: str | None = None,
    on_epoch: Callable[[dict[str, Any]], None] = lambda _: None,
    **settings: Any,
) -> Parser:
    """Learn a model from sentences in memory, without writing files; `parser.save(folder)` saves it.

    Sentences are strings or lists of tokens; a file or folder is read as by `train`. `teachers` and `settings` are
    those of `train`, such as `model="tn-pcfg"`, `preterminals=60`, `epochs=5`, `seed=0`.
    """
    world = joined()

    def choose(count: int | None) -> Settings:
        return in_groups(load_settings(None, settings, None, preset, count), world)

    run = _Run(sentences, dev, choose, teachers, world=world)
    kept = InMemory()
    run.learn(kept, Callbacks(on_epoch=on_epoch) if world.is_first else Callbacks(), "nothing was kept")
    run.stored.model.load_state_dict(kept.best)
    run.stored.model.zero_grad(set_to_none=True)
    return Parser.of_stored(run.stored, run.description)


class _Run:
    """Data, a new model, and a description of both; nothing is on disk yet."""

    def __init__(
        self,
        data: DataInput,
        dev: DataInput | None,
        choose: Callable[[int | None], Settings],
        teachers: Sequence[MemberInput],
        resumed: bool = False,
        world: World = ALONE,
    ) -> None:
        settings = choose(None)
        device = choose_device(settings.device, None if world.size == 1 else world.local_rank)
        self.world = world
        check_teachers(teachers, settings, resumed)
        self.data = prepare(data, dev, settings)
        self.settings = settings = choose(len(self.data.train))
        self._teachers = [open_member(teacher, settings.device) for teacher in teachers]
        arguments = settings.model_arguments(len(self.data.vocabulary))
        check_size(settings.model, arguments)
        self.description: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "model": settings.model,
            "grammar": arguments,
            "settings": asdict(settings),
            "threads": torch.get_num_threads(),
            **self.data.describe(),
            BRANCHING: _branching(settings, self.data),
        }
        if teachers:
            self.description[TEACHERS] = [teacher.as_record() for teacher in self._teachers]
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(settings.seed)
            model = FAMILIES[settings.model](**arguments).to(device)
        check_storable(settings.model, model)
        for corpus, which in ((self.data.train, "training"), (self.data.dev, "dev")):
            check_fits(model, max(map(len, corpus.parses)), f"{corpus.source}, {which} set")
        self.stored = StoredModel(
            model,
            self.data.vocabulary,
            self.data.word_rule,
            self.data.text_rules,
            self.data.spelling,
            self.description[BRANCHING],
        )

    def learn(self, store: RunStore, callbacks: Callbacks, when_stopped: str) -> list[dict[str, Any]]:
        """Train to the end; returns the records of all epochs."""
        self.description = check_same_run(self.description, self.world)
        with stop_requests() as request:
            return self._epochs(store, callbacks, _Stop(request, f"Stopped; {when_stopped}.", self.world))

    def _epochs(self, store: RunStore, callbacks: Callbacks, stop: _Stop) -> list[dict[str, Any]]:
        """The metrics of all epochs."""
        model, data, settings, world = self.stored.model, self.data, self.settings, self.world
        learner = model.learner(settings.learning_rate, settings.clip)
        position = store.position(model, learner)
        callbacks.on_start(
            summarise(data, settings, model, len(position.records), self._teacher_names, self.stored.branching)
        )
        focus = self._span_scores(store, callbacks.on_teacher, stop)
        guidance = Guidance(data.train.parses, settings, focus)
        sentences = [data.vocabulary.encode(parse.words) for parse in data.train.parses]
        saved = time.monotonic()

        def on_step(now: Progress) -> None:
            nonlocal saved
            callbacks.on_progress(now)
            if position.batches == 1:
                check_same_model(model, world)
            stopping = stop.is_agreed()
            if stopping or time.monotonic() - saved >= 60 * settings.checkpoint_minutes:
                store.save(model, learner, position)
                saved = time.monotonic()
            if stopping:
                stop.obey()

        while not is_finished(position.records, settings):
            try:
                train_epoch(model, learner, sentences, settings, position, on_step, guidance, world)
                check_same_model(model, world)
            except LostProcessError:
                store.save(model, learner, position)
                stop.obey()
                raise
            store.save(model, learner, position)  # before the evaluation on the dev set, which may take long
            self._finish_epoch(position, store, stop, focus)
            record = position.records[-1]
            position = position.next_epoch()
            store.save(model, learner, position)
            callbacks.on_epoch(record)
            if stop.is_agreed():
                stop.obey()
        return position.records

    @property
    def _teacher_names(self) -> tuple[str, ...]:
        return tuple(teacher["name"] for teacher in self.description.get(TEACHERS) or ())

    def _span_scores(self, store: RunStore, on_teacher: OnTeacher, stop: _Stop) -> SpanScores | None:
        """The scores of the teachers, saved with the run; None for a run without teachers."""
        if not self._teacher_names:
            return None
        corpora = [self.data.train]
        if self.stored.model.needs_teachers or self.settings.focus_on == "average":  # the choice of the epoch uses them
            corpora.append(self.data.dev)
        scores = store.span_scores([len(parse) for corpus in corpora for parse in corpus.parses])
        if scores is None:

            def on_window(done: int, total: int) -> None:
                on_teacher(done, total)
                stop.obey()

            settings = self.settings
            scores = scores_of_teachers(self._teachers, corpora, settings.focus_on, on_window)
            store.keep_span_scores(scores)
        self._teachers = []  # frees their memory
        return scores

    def _finish_epoch(self, position: Position, store: RunStore, stop: _Stop, focus: SpanScores | None) -> None:
        """Score the model on the dev set, and save it if it is the best so far; a second call has no effect."""
        started = time.perf_counter()
        progress = Progress.at(position, len(self.data.train))
        # The objective of a focused run includes the teachers' scores, so it is not a likelihood.
        is_likelihood = self.stored.model.has_likelihood and not self._teacher_names
        seen = progress.perplexity if is_likelihood else math.inf
        record = {
            "epoch": position.epoch,
            "train_perplexity": seen if math.isfinite(seen) else None,
            "sentences_per_second": round(progress.sentences_per_second, 2),
            **self.world.found_by_first(lambda: self._judged(focus, stop)),
            "seconds": round(position.seconds + time.perf_counter() - started, 2),
        }
        if not math.isfinite(dev_measure(record)):
            raise RamifyError(
                f"Training diverged in epoch {position.epoch} (the dev set has probability zero or no finite loss); "
                "lower the learning rate or the gain."
            )
        earlier = position.records
        if all(dev_measure(record) < dev_measure(each) for each in earlier):
            record["best_epoch"] = position.epoch
            store.keep(self.stored)
        else:
            record["best_epoch"] = earlier[-1]["best_epoch"]
        position.records.append(record)
        store.record(position.records)

    def _judged(self, focus: SpanScores | None, stop: _Stop) -> dict[str, Any]:
        """Evaluate on the dev set; with gradient groups, its sums do not depend on the number of threads either."""
        groups = self.settings.gradient_groups or 1
        with in_fixed_pieces(groups) if groups > 1 else nullcontext():
            return evaluate_dev(self.stored, self.data, focus, self.settings.focus_on, stop.obey)


def _branching(settings: Settings, data: Data) -> float:
    """The chosen bonus or, for models with posteriors, the default bonus on the side that the text shows."""
    if settings.branching is not None or not FAMILIES[settings.model].has_posteriors:
        return settings.branching or 0.0
    return BRANCHING_BONUS * branching_side([parse.words for parse in data.train.parses])


class _Stop:
    """Checks between steps whether to continue."""

    def __init__(self, request: StopRequest, message: str, world: World) -> None:
        self._request, self._message, self._world = request, message, world

    def is_agreed(self) -> bool:
        """Whether a stop was requested in any process, so that all of them stop after the same step."""
        signals = self._world.gathered(torch.tensor(self._request.signal or 0))
        if int(signals.max()) and self._request.signal is None:
            self._request.ask(int(signals.max()))
        return bool(signals.any())

    def obey(self) -> None:
        self._request.obey(self._message)
