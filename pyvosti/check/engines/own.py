"""pyvosti itself, driven step by step, so that a request can come or go at a given moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyvosti._core import Engine, __version__
from pyvosti.check.disturbance import disturb
from pyvosti.check.engines import NEEDS, Place, Sighting
from pyvosti.check.observation import Observed, fingerprint
from pyvosti.check.scenario import Arrival, Cell, Phase
from pyvosti.errors import ConfigError
from pyvosti.limits import DEFAULTS, Limits, make_limits
from pyvosti.loader import LoadedModel, load_model
from pyvosti.request import Recording, Request, Sample
from pyvosti.runner import Runner, make_runner
from pyvosti.session import Session, make_engine

DEFAULT_OPTIONS = {"num_blocks": 512, "max_seqs": 64, "max_batched_tokens": 256}
"""What a cell's options are added to."""
_NOT_ON_CPU = {"graphs", "tiles", "in flight"}
_NOT_ON_CUDA = {"threads", "isa"}
TEXT = (
    "Determinism is not a property of a model but of the way it is run. A sum of floating point "
    "numbers depends on the order of its terms, and the order on the shape of the batch, unless "
    "somebody has fixed it. def step(self):\n    plan = self.engine.schedule()\n    return plan\n"
    "In 1,234 of 56,789 cases nobody had. 🙂 Être ou ne pas être, c'est là la question."
)
"""What prompts are cut from."""

Wrapper = Callable[[Runner], Runner]
"""Puts another runner before a runner: a planted fault, or forced tokens."""


class OwnEngine:
    """pyvosti on one model and backend."""

    row_of = "logits"

    def __init__(
        self,
        model: str,
        backend: str,
        *,
        threads: int | None = None,
        wrapper: Wrapper | None = None,
        loaded: LoadedModel | None = None,
        scheduler: Callable[..., Any] = Engine,
        page: int | None = None,
    ) -> None:
        """`loaded` is used instead of `model`'s files; `scheduler` instead of the verified one.

        `page`: tokens of a KV page, if not the backend's number.
        """
        self.model, self.backend, self.threads = model, backend, threads
        self.wrapper, self.scheduler = wrapper, scheduler
        self.loaded = loaded or load_model(model)
        self.title = f"pyvosti {__version__} on {backend}"
        self.can = frozenset(NEEDS) - (_NOT_ON_CPU if backend == "cpu" else _NOT_ON_CUDA)
        self.page = page or DEFAULTS[backend][0]
        self.context = self.loaded.config.context
        self._runner: Runner | None = None
        self._made_for: object = None

    def prompt_ids(self) -> list[int]:
        """Token ids of a text in several scripts."""
        return self.loaded.tokenizer.encode(TEXT).tolist()  # type: ignore[no-any-return]

    def describe(self) -> dict[str, Any]:
        """The model's size, and the backend."""
        config = self.loaded.config
        return {
            "model": self.model, "backend": self.backend, "layers": config.n_layers,
            "vocab": config.vocab, "page": self.page,
        }  # fmt: skip

    def close(self) -> None:
        """Gives the runner's memory back."""
        self._runner, self._made_for = None, None

    def observe(self, cell: Cell, keep: frozenset[Place] = frozenset()) -> Sighting:
        """Runs the cell's phases in one engine, with pages as earlier cells have left them."""
        run = _Run(self, cell, keep)
        for phase in cell.phases:
            run.phase(phase)
        return run.sighting()

    def session(self, cell: Cell) -> tuple[Session, Limits]:
        """A new engine for the cell; the runner is the last one's where its options are equal."""
        options = DEFAULT_OPTIONS | {"block_size": self.page} | dict(cell.options)
        prefix_cache = options.pop("prefix_cache", True)
        strict = options.pop("strict_kernels", False)
        options.setdefault("threads", self.threads)
        limits = make_limits(self.loaded.config, self.backend, **options)
        made_for = (limits, strict, cell.disturbance.graphs)
        if self._runner is None or self._made_for != made_for:
            self.close()
            self._runner = self._make_runner(limits, strict, cell.disturbance.graphs)
            self._made_for = made_for
        runner = disturb(self._runner, limits, cell.disturbance)
        if self.wrapper is not None:
            runner = self.wrapper(runner)
        config, num_blocks = self.loaded.config, list(runner.num_blocks)
        engine = make_engine(config, limits, num_blocks, prefix_cache, self.scheduler)
        return Session(engine, runner), limits

    def _make_runner(self, limits: Limits, strict: bool, graphs: bool) -> Runner:
        config, tensors = self.loaded.config, self.loaded.tensors
        if self.backend != "cuda" or graphs:
            return make_runner(self.backend, config, tensors, limits, strict_kernels=strict)
        from pyvosti.cuda_model import make_cuda_runner

        return make_cuda_runner(config, tensors, limits, strict=strict, graphs=False)


class _Run:
    """One run of a cell."""

    def __init__(self, engine: OwnEngine, cell: Cell, keep: frozenset[Place]) -> None:
        self.cell, self.keep = cell, keep
        self.loaded = engine.loaded
        self.kept: dict[Place, NDArray[np.float32]] = {}
        self.session, self.limits = engine.session(cell)
        self.before = self.session.engine.stats()
        self.watched: list[tuple[Request, list[Observed]]] = []
        self.preempted_at: list[int] = []

    def phase(self, phase: Phase) -> None:
        """Adds each request when its time has come, and steps until all have ended."""
        waiting = [(arrival, self._request(arrival)) for arrival in phase]
        leader = waiting[0][1]
        to_abort: list[tuple[int, Request]] = []
        running: list[Request] = []
        steps = 0
        while waiting or running:
            progress = len(leader.samples[0].tokens)
            due = [(a, r) for a, r in waiting if leader.finished or a.after <= progress]
            waiting = [entry for entry in waiting if entry not in due]
            for arrival, request in due:
                self.session.add(request)
                running.append(request)
                if arrival.abort_after is not None:
                    to_abort.append((steps + arrival.abort_after, request))
            self._step()
            steps += 1
            for when, request in to_abort:
                if when <= steps and not request.finished:
                    self.session.abort(request)
            running = [request for request in running if not request.finished]

    def sighting(self) -> Sighting:
        """What has been seen, once all phases have run."""
        for request, samples in self.watched:
            for sample, seen in zip(request.samples, samples, strict=True):
                seen.tokens = sample.tokens.tolist()
        return Sighting([samples for _, samples in self.watched], self.kept, self._trouble())

    def _trouble(self) -> str | None:
        stats = self.session.engine.stats()
        for name, least in self.cell.counters.items():
            grown = stats[name] - self.before[name]
            if grown < least:
                return f"{name} grew by {grown} where {least} was due"
        for name in sorted(self.cell.still):
            grown = stats[name] - self.before[name]
            if grown:
                return f"{name} grew by {grown} where none may be"
        left = {n: stats[n] for n in ("waiting", "running", "referenced_blocks") if stats[n]}
        if left:
            return f"the engine holds on to {left}"
        wanted = self.cell.preempted_at
        if wanted is not None and wanted not in self.preempted_at:
            return f"preempted at outputs {self.preempted_at}, not at {wanted}"
        return None

    def _step(self) -> None:
        counters = self.session.engine.stats()
        had = len(self.watched[0][0].samples[0].tokens) if self.watched else 0
        self.session.step()
        if self.session.engine.stats()["preemptions"] > counters["preemptions"]:
            self.preempted_at.append(had)

    def _request(self, arrival: Arrival) -> Request:
        job = arrival.job
        index = len(self.watched)
        if job.params.max_tokens is None or job.params.seed is None:
            raise ConfigError("a cell's requests name max_tokens and seed")
        samples = [Observed(len(job.prompt), job.params.max_tokens) for _ in range(job.params.n)]

        def watch(sample: Sample, position: int, row: NDArray[np.float32]) -> None:
            samples[sample.index].rows[position] = fingerprint(row)
            place = Place(index, sample.index, position)
            if place in self.keep:
                self.kept[place] = row.copy()

        request = Request(
            index=index,
            text=None,
            prompt=np.array(job.prompt, np.uint32),
            params=job.params,
            seed=job.params.seed,
            max_tokens=job.params.max_tokens,
            salt=arrival.salt,
            vocab=self.loaded.config.vocab,
            tokenizer=self.loaded.tokenizer,
            recording=Recording(watch=watch) if arrival.watched else Recording(),
            inbox={},
        )
        if arrival.watched:
            self.watched.append((request, samples))
        return request


def truncated(loaded: LoadedModel, layers: int) -> LoadedModel:
    """The model without its layers from `layers` on: embedding, the first layers, norm, head."""
    config = replace(loaded.config, n_layers=layers, windows=loaded.config.windows[:layers])
    tensors: Mapping[str, Any] = loaded.tensors
    return loaded._replace(
        config=config, tensors={name: tensors[name] for name in config.tensor_shapes()}
    )
