"""Hugging Face transformers as it comes: the control that a blind battery would pass.

A batch is padded on the left, as `generate` pads it; prompts can be cut into chunks; a lone
request may take over the cache of an earlier one. Tokens are drawn by pyvosti's sampler, so that
only the logits are under test.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyvosti.check.engines import Place, Sighting
from pyvosti.check.engines.own import TEXT
from pyvosti.check.observation import Observed, fingerprint
from pyvosti.check.scenario import Arrival, Cell, Phase
from pyvosti.draw import Draw
from pyvosti.errors import ConfigError
from pyvosti.loader import load_model
from pyvosti.runner import drawn

_CAN = {
    "batch", "budget", "cache", "rows", "prompt ids", "samples", "drawing", "logprobs",
    "raw logits", "threads",
}  # fmt: skip


@dataclass
class _Row:
    """One sequence of a batch."""

    arrival: Arrival
    sample: int
    watched: int
    """Index of its request among the watched; -1 when it is not watched."""
    seen: Observed
    ids: list[int] = field(default_factory=list)
    """Prompt and output so far."""

    @property
    def done(self) -> bool:
        return len(self.seen.tokens) >= self.seen.wanted


class TransformersEngine:
    """A causal model of transformers on the CPU."""

    row_of = "logits"
    page = 16

    def __init__(self, model: str, dtype: str, threads: int | None) -> None:
        """Raises ConfigError when transformers is not installed, ModelError without the model."""
        try:
            import torch
            import transformers
        except ImportError:
            raise ConfigError(
                "--engine transformers needs torch and transformers; run: "
                "pip install 'pyvosti[test]'"
            ) from None
        if dtype not in ("float32", "bfloat16", "float16"):
            raise ConfigError(f"dtype must be float32, bfloat16 or float16, not {dtype!r}")
        loaded = load_model(model)
        file = {} if loaded.path.is_dir() else {"gguf_file": loaded.path.name}
        folder = loaded.path if loaded.path.is_dir() else loaded.path.parent
        make: Any = transformers.AutoModelForCausalLM
        self.model = make.from_pretrained(str(folder), dtype=getattr(torch, dtype), **file).eval()
        self.name, self.dtype = model, dtype
        self.threads = threads or torch.get_num_threads()
        self.title = f"transformers {transformers.__version__} ({dtype})"
        self.can = frozenset(_CAN)
        self.context = loaded.config.context
        self.vocab = loaded.config.vocab
        self.ids = loaded.tokenizer.encode(TEXT).tolist()

    def prompt_ids(self) -> list[int]:
        """Token ids of a text in several scripts."""
        return list(self.ids)

    def describe(self) -> dict[str, Any]:
        """The model, and the library that computes."""
        import torch

        return {"model": self.name, "torch": torch.__version__, "threads": self.threads}

    def close(self) -> None:
        """Nothing is held between cells."""

    def observe(self, cell: Cell, keep: frozenset[Place] = frozenset()) -> Sighting:
        """Runs the phases as batches, one after the other."""
        import torch

        lone = all(len(phase) == 1 for phase in cell.phases)
        if cell.counters.get("hits") and not lone:
            raise NotImplementedError(f"{self.title} reuses the cache of a lone request only")
        torch.set_num_threads(cell.options.get("threads", self.threads))
        run = _Run(self, cell, keep)
        with torch.inference_mode():
            for phase in cell.phases:
                run.phase(phase)
        return Sighting(run.samples, run.kept)


class _Run:
    """One run of a cell."""

    def __init__(self, engine: TransformersEngine, cell: Cell, keep: frozenset[Place]) -> None:
        self.engine, self.cell, self.keep = engine, cell, keep
        self.samples: list[list[Observed]] = []
        self.kept: dict[Place, NDArray[np.float32]] = {}
        self.left: list[tuple[list[int], Any]] = []
        """Token ids of lone requests that have run, and their caches."""

    def phase(self, phase: Phase) -> None:
        """Prefills the batch, then decodes until every request has its outputs."""
        import torch

        rows = self._rows(phase)
        width = max(len(row.ids) for row in rows)
        padding = torch.tensor([width - len(row.ids) for row in rows])
        hit, cache = self._hit(rows)
        tokens = torch.zeros(len(rows), width, dtype=torch.long)
        for i, row in enumerate(rows):
            tokens[i, width - len(row.ids) :] = torch.tensor(row.ids)
        budget = self.cell.options.get("max_batched_tokens", width * len(rows))
        size = max(1, budget // len(rows))
        for start in range(hit, width, size):
            end = min(start + size, width)
            logits = self._forward(tokens[:, start:end], padding, cache)
            self._take(rows, logits, start - padding.numpy())
        while not all(row.done for row in rows):
            last = torch.tensor([[row.ids[-1]] for row in rows])
            logits = self._forward(last, padding, cache)
            self._take(rows, logits, width - padding.numpy())
            width += 1
        if len(rows) == 1:
            self.left.append((rows[0].ids[:width], cache))

    def _rows(self, phase: Phase) -> list[_Row]:
        rows = []
        for arrival in phase:
            wanted = arrival.job.params.max_tokens or 0
            seen = [Observed(len(arrival.job.prompt), wanted) for _ in range(arrival.job.params.n)]
            watched = len(self.samples) if arrival.watched else -1
            if arrival.watched:
                self.samples.append(seen)
            rows += [
                _Row(arrival, i, watched, one, list(arrival.job.prompt))
                for i, one in enumerate(seen)
            ]
        return rows

    def _hit(self, rows: list[_Row]) -> tuple[int, Any]:
        """Tokens of a lone prompt whose keys and values an earlier request has left; a cache."""
        from transformers import DynamicCache

        best, found = 0, None
        if len(rows) == 1 and self.cell.options.get("prefix_cache", True):
            own = rows[0].ids
            for ids, cache in self.left:
                pairs = zip(own[:-1], ids[:-1], strict=False)
                equal = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
                shared = min(len(own), len(ids)) - 1 if equal is None else equal
                shared -= shared % self.engine.page
                if shared > best and not rows[0].arrival.job.params.logits_from_start:
                    best, found = shared, cache
        if found is None:
            return 0, DynamicCache()
        cache = copy.deepcopy(found)
        surplus = cache.get_seq_length() - best
        if surplus:
            cache.crop(-surplus)
        return best, cache

    def _forward(self, tokens: Any, padding: Any, cache: Any) -> NDArray[np.float32]:
        """f32[batch, columns, vocab]: logits of the next columns."""
        import torch

        start = cache.get_seq_length()
        columns = torch.arange(start + tokens.shape[1])
        mask = (columns[None] >= padding[:, None]).long()
        positions = (columns[None, start:] - padding[:, None]).clamp(min=0)
        out = self.engine.model(
            tokens, attention_mask=mask, position_ids=positions, past_key_values=cache
        )
        return out.logits.float().numpy()  # type: ignore[no-any-return]

    def _take(
        self, rows: list[_Row], logits: NDArray[np.float32], first: NDArray[np.int64]
    ) -> None:
        """Looks at the rows of logits; `first`: each sequence's position in the first column."""
        for i, row in enumerate(rows):
            prompt = len(row.arrival.job.prompt)
            wants = 0 if row.arrival.job.params.logits_from_start else prompt - 1
            for column in range(logits.shape[1]):
                position = int(first[i]) + column
                if position < wants or row.done:
                    if position >= prompt - 1 and row.done:
                        row.ids.append(row.ids[-1])
                    continue
                self._look(row, position, logits[i, column])
                if position >= prompt - 1:
                    token = drawn(logits[i, column], self._draw(row))
                    row.seen.tokens.append(token)
                    row.ids.append(token)

    def _look(self, row: _Row, position: int, logits: NDArray[np.float32]) -> None:
        if row.watched < 0:
            return
        row.seen.rows[position] = fingerprint(logits)
        place = Place(row.watched, row.sample, position)
        if place in self.keep:
            self.kept[place] = logits.copy()

    def _draw(self, row: _Row) -> Draw:
        params = row.arrival.job.params
        return Draw(
            seed=params.seed or 0,
            sample_index=row.sample,
            position=len(row.seen.tokens),
            temperature=params.temperature,
            top_k=min(max(params.top_k, 0), self.engine.vocab),
            top_p=params.top_p,
            min_p=params.min_p,
            repetition_penalty=params.repetition_penalty,
            presence_penalty=params.presence_penalty,
            frequency_penalty=params.frequency_penalty,
            logit_bias=params.logit_bias,
            prompt=np.array(row.arrival.job.prompt, np.uint32),
            output=np.array(row.seen.tokens, np.uint32),
        )
