"""A request while it runs: its prompt, its samples, and what they have received so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyvosti import digest
from pyvosti.detokenizer import Detokenizer
from pyvosti.draw import Draw
from pyvosti.logprobs import position_logprobs
from pyvosti.outputs import (
    CompletionOutput,
    FinishReason,
    PositionLogprobs,
    RequestOutput,
    StreamChunk,
)
from pyvosti.params import SamplingParams
from pyvosti.tokenizer import Tokenizer

Watch = Callable[["Sample", int, NDArray[np.float32]], None]
"""Takes a sample, a position and the row f32[vocab] there; the row is valid during the call."""


@dataclass(frozen=True)
class Recording:
    """What is kept of the logits besides tokens."""

    logits: bool = False
    digests: bool = False
    watch: Watch | None = None
    """Called with each row, positions ascending, once each, also when a request is preempted."""


class Sample:
    """One of a request's n samples: one sequence of the engine."""

    def __init__(self, request: Request, index: int) -> None:
        params = request.params
        self.request = request
        self.index = index
        self.sequence_id = -1
        """The engine's name for it, once it has been added."""
        self.finish_reason: FinishReason | None = None
        self.stop_reason: int | str | None = None
        self.detokenizer = Detokenizer(
            request.tokenizer, params.stop_strings, params.skip_special_tokens
        )
        first_row = 0 if index == 0 and params.logits_from_start else len(request.prompt) - 1
        self.next_position = first_row
        """Position of the next row to record; a preempted request sees earlier rows again."""
        self._tokens = np.empty(request.max_tokens, np.uint32)
        self._count = 0
        self._streamed = 0
        self._logprobs: list[PositionLogprobs] = []
        self._logits: list[NDArray[np.float32]] = []
        self._link = digest.start(request.prompt)
        self._digests: list[str] = []

    @property
    def tokens(self) -> NDArray[np.uint32]:
        """u32[m]: the output so far."""
        return self._tokens[: self._count]

    @property
    def keeps_logits(self) -> bool:
        """Whether its rows of logits are looked at, besides being drawn from."""
        params, recording = self.request.params, self.request.recording
        listed = params.logprobs is not None or params.prompt_logprobs is not None
        watched = recording.watch is not None
        return listed or watched or recording.logits or recording.digests

    def draw(self, position: int) -> Draw:
        """The draw from the row at `position` of the sequence.

        With penalties, every token up to there must have been recorded.
        """
        request, params = self.request, self.request.params
        return Draw(
            seed=request.seed,
            sample_index=self.index,
            position=position + 1 - len(request.prompt),
            temperature=params.temperature,
            top_k=min(max(params.top_k, 0), request.vocab),
            top_p=params.top_p,
            min_p=params.min_p,
            repetition_penalty=params.repetition_penalty,
            presence_penalty=params.presence_penalty,
            frequency_penalty=params.frequency_penalty,
            logit_bias=params.logit_bias,
            prompt=request.prompt,
            output=self.tokens,
        )

    def record_prompt_row(self, position: int, row: NDArray[np.float32]) -> None:
        """Takes the row f32[vocab] of a prompt position from which nothing is drawn."""
        if position < self.next_position:
            return
        request = self.request
        self._advance(position, row, digest.NO_TOKEN)
        if request.params.prompt_logprobs is not None:
            following = int(request.prompt[position + 1])
            request.prompt_logprobs.append(
                position_logprobs(row, following, request.params.prompt_logprobs, request.tokenizer)
            )
        if request.recording.logits:
            request.prompt_logits.append(row.copy())

    def record_token(self, position: int, row: NDArray[np.float32] | None, token: int) -> None:
        """Takes a committed token and, if `keeps_logits`, the row f32[vocab] it was drawn from."""
        params, recording = self.request.params, self.request.recording
        self._advance(position, row, token)
        self._tokens[self._count] = token
        self._count += 1
        if row is not None and params.logprobs is not None:
            self._logprobs.append(
                position_logprobs(row, token, params.logprobs, self.request.tokenizer)
            )
        if row is not None and recording.logits:
            self._logits.append(row.copy())
        if self.detokenizer.push(token):
            self.stop_reason = self.detokenizer.stopped_by
            self.finish_reason = "stop"

    def finish(self, reason: FinishReason) -> None:
        """Nothing will follow. A stop string that has already ended the text stays the reason."""
        if self.finish_reason is None:
            self.finish_reason = reason
            last = int(self._tokens[self._count - 1]) if self._count else None
            if reason == "stop" and last in self.request.params.stop_token_ids:
                self.stop_reason = last
        self.detokenizer.finish()

    def output(self) -> CompletionOutput:
        """The result so far."""
        recording, vocab = self.request.recording, self.request.vocab
        rows = self._logits or [np.empty((0, vocab), np.float32)]
        return CompletionOutput(
            index=self.index,
            text=self.detokenizer.text,
            token_ids=self.tokens.tolist(),
            finish_reason=self.finish_reason,
            stop_reason=self.stop_reason,
            logprobs=None if self.request.params.logprobs is None else list(self._logprobs),
            logits=np.vstack(rows) if recording.logits else None,
            digests=list(self._digests) if recording.digests else None,
        )

    def chunk(self) -> StreamChunk:
        """What is new since the last chunk."""
        token_ids = self.tokens[self._streamed :].tolist()
        self._streamed = self._count
        return StreamChunk(
            request=self.request.index,
            index=self.index,
            text=self.detokenizer.take(),
            token_ids=token_ids,
            finish_reason=self.finish_reason,
            output=None,
        )

    def _advance(self, position: int, row: NDArray[np.float32] | None, token: int) -> None:
        if position != self.next_position:
            raise RuntimeError(f"row {position} came where {self.next_position} was due")
        self.next_position += 1
        watch = self.request.recording.watch
        if row is not None and watch is not None:
            watch(self, position, row)
        if row is not None and self.request.recording.digests:
            self._link = digest.extend(self._link, position, row, token)
            self._digests.append(self._link.hex())


class Request:
    """A prompt with its parameters and its samples."""

    def __init__(
        self,
        *,
        index: int,
        text: str | None,
        prompt: NDArray[np.uint32],
        params: SamplingParams,
        seed: int,
        max_tokens: int,
        salt: int,
        vocab: int,
        tokenizer: Tokenizer,
        recording: Recording,
        uncertified: bool = False,
        inbox: dict[Sample, None],
    ) -> None:
        self.index = index
        self.text = text
        self.prompt = prompt
        self.params = params
        self.seed = seed
        self.max_tokens = max_tokens
        self.salt = salt
        self.vocab = vocab
        self.tokenizer = tokenizer
        self.recording = recording
        self.uncertified = uncertified
        self.inbox = inbox
        """The samples of its call that have received something since the caller looked."""
        self.prompt_logprobs: list[PositionLogprobs | None] = [None]
        self.prompt_logits: list[NDArray[np.float32]] = []
        self.samples = [Sample(self, sample) for sample in range(params.n)]

    @property
    def finished(self) -> bool:
        """Whether every sample has ended."""
        return all(sample.finish_reason is not None for sample in self.samples)

    @property
    def stop_token_ids(self) -> NDArray[np.uint32]:
        """u32[k]: the tokens that end it, the model's own included unless they are ignored."""
        own = () if self.params.ignore_eos else self.tokenizer.eos_token_ids
        return np.array(sorted({*self.params.stop_token_ids, *own}), np.uint32)

    def output(self) -> RequestOutput:
        """The result so far."""
        rows = np.vstack(self.prompt_logits) if self.prompt_logits else None
        wanted = self.params.prompt_logprobs is not None
        return RequestOutput(
            request_id=self.index,
            prompt=self.text,
            prompt_token_ids=self.prompt.tolist(),
            outputs=[sample.output() for sample in self.samples],
            seed=self.seed,
            prompt_logprobs=list(self.prompt_logprobs) if wanted else None,
            prompt_logits=rows,
            uncertified=self.uncertified,
        )
