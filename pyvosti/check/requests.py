"""The requests of the battery: those that are watched, and their company."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyvosti.check.scenario import Arrival, Job
from pyvosti.params import SamplingParams

SAMPLERS: tuple[dict[str, Any], ...] = (
    {"temperature": 0.0},
    {"temperature": 0.8, "top_k": 50},
    {"temperature": 0.0, "repetition_penalty": 1.3, "presence_penalty": 0.4},
    {"temperature": 1.1, "top_p": 0.9},
    {"temperature": 0.7, "min_p": 0.02, "logit_bias": {7: 3.0, 11: -1e30}},
    {"temperature": 0.9, "frequency_penalty": 0.8, "top_k": 20, "top_p": 0.8},
    {"temperature": 1.0},
)
"""Ways to draw, taken in turn."""


@dataclass(frozen=True)
class Requests:
    """Makes requests for one model and one extent of the battery."""

    ids: tuple[int, ...]
    """Token ids of a text, from which prompts are cut."""
    page: int
    outputs: int
    """Outputs of a watched request."""
    long_prompt: int
    """Tokens of a long context."""
    long_outputs: int
    """Outputs of the long request."""

    def prompt(self, length: int, start: int = 0) -> tuple[int, ...]:
        """A piece of the text, repeated as often as needed; other starts give other tokens."""
        start %= len(self.ids)
        turned = self.ids[start:] + self.ids[:start]
        return (turned * (length // len(turned) + 1))[:length]

    def job(self, length: int, start: int = 0, *, outputs: int | None = None, **params: Any) -> Job:
        """A request with a piece of the text as prompt; greedy unless told otherwise."""
        given = {"temperature": 0.0, "seed": 17, "ignore_eos": True} | params
        tokens = self.outputs if outputs is None else outputs
        return Job(self.prompt(length, start), SamplingParams(max_tokens=tokens, **given))

    @property
    def greedy(self) -> Job:
        """A short prompt, the most likely tokens."""
        return self.job(5)

    @property
    def seeded(self) -> Job:
        """Two pages and a token, drawn at a temperature."""
        return self.job(2 * self.page + 1, 3, temperature=0.9, top_p=0.95)

    @property
    def penalised(self) -> Job:
        """A page but one token; each draw depends on all tokens before."""
        return self.job(self.page - 1, 7, temperature=0.8, repetition_penalty=1.2,
                        frequency_penalty=0.3)  # fmt: skip

    @property
    def rows(self) -> Job:
        """Two whole pages; the rows of the prompt are watched too."""
        return self.job(2 * self.page, 11, prompt_logprobs=0)

    @property
    def long(self) -> Job:
        """A long context."""
        return self.job(self.long_prompt, 5)

    @property
    def watched(self) -> tuple[Arrival, ...]:
        """One of each kind but the long one."""
        jobs = (self.greedy, self.seeded, self.penalised, self.rows)
        return tuple(Arrival(job, watched=True) for job in jobs)

    def company(
        self, count: int, *, length: int | None = None, outputs: int | None = None, after: int = 0
    ) -> tuple[Arrival, ...]:
        """Requests of all samplers whose prompts share nothing with the watched ones'.

        By default their prompts have 1 to 40 tokens, and they live as long as the watched.
        """
        return tuple(
            Arrival(
                self.job(
                    1 + 13 * i % 40 if length is None else length, 23 + 5 * i,
                    outputs=outputs, **{"seed": 100 + i} | SAMPLERS[i % len(SAMPLERS)],
                ),
                after=after,
            )
            for i in range(count)
        )  # fmt: skip
