"""`LLM`: a model, an engine and a backend behind one class."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, Literal

from pyvosti import certified
from pyvosti.chat import Message, render_chat
from pyvosti.config import ModelConfig
from pyvosti.errors import ConfigError, RequestError
from pyvosti.limits import make_limits
from pyvosti.loader import load_model
from pyvosti.outputs import RequestOutput, StreamChunk
from pyvosti.params import SamplingParams
from pyvosti.prompts import Prompt, list_params, list_prompts
from pyvosti.request import Recording, Request, Sample
from pyvosti.runner import default_backend, make_runner
from pyvosti.session import Session, make_engine

Backend = Literal["auto", "cpu", "cuda"]
ParamsOrList = SamplingParams | Sequence[SamplingParams]


class LLM:
    """Generates text, the same bits for a request whatever else runs.

    A request's logits and tokens are a function of the model and the request alone. What may
    be varied without changing a bit: pool size, token budget, maximum sequences, prefix cache,
    threads, ISA, and which requests run together.

    Not for several threads at once; several streams of one thread may interleave.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        backend: Backend = "auto",
        num_blocks: int | None = None,
        kv_cache_tokens: int | None = None,
        block_size: int | None = None,
        max_seqs: int | None = None,
        max_batched_tokens: int | None = None,
        max_model_len: int | None = None,
        prefix_cache: bool = True,
        threads: int | None = None,
        isa: str | None = None,
        gpu_memory_utilization: float = 0.9,
        strict_kernels: bool = False,
        allow_uncertified: bool = False,
        record_logits: bool = False,
        record_digests: bool = False,
    ) -> None:
        """Loads a model: a folder, a GGUF file, a Hub id, or "smollm2".

        `backend` "auto" is the GPU where there is one. The KV pool has `num_blocks` blocks of
        `block_size` tokens (16; GPU 64), or as many as hold `kv_cache_tokens`; by default up to
        65,536 tokens within a quarter of memory, and on the GPU `gpu_memory_utilization` of what
        is free there. A step has at most `max_seqs` sequences (128; GPU 256) and
        `max_batched_tokens` rows (256; GPU 2,048). `strict_kernels` pins one GPU kernel for each
        operation, where else a tile of the same schedule class is picked by the number of rows.
        `allow_uncertified` lets GPU kernels run that nothing was proved of; outputs say so.
        `record_*` keep logits (see `CompletionOutput`). Raises ModelError or ConfigError.
        """
        chosen = default_backend() if backend == "auto" else backend
        if allow_uncertified:
            certified.allow_uncertified("it was asked for")
        loaded = load_model(model)
        self.name, self.config, self.tokenizer = loaded.name, loaded.config, loaded.tokenizer
        self.limits = make_limits(
            loaded.config,
            chosen,
            num_blocks=num_blocks,
            kv_cache_tokens=kv_cache_tokens,
            block_size=block_size,
            max_seqs=max_seqs,
            max_batched_tokens=max_batched_tokens,
            max_model_len=max_model_len,
            threads=threads,
            isa=isa,
            gpu_memory_utilization=gpu_memory_utilization,
        )
        self.recording = Recording(record_logits, record_digests)
        try:
            runner = make_runner(
                chosen, self.config, loaded.tensors, self.limits, strict_kernels=strict_kernels
            )
            engine = make_engine(self.config, self.limits, runner.num_blocks, prefix_cache)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        except MemoryError as error:
            raise ConfigError(
                f"{str(error) or 'not enough memory'}: lower num_blocks, max_seqs or max_model_len"
            ) from None
        self.session, self._runner = Session(engine, runner), runner
        self.uncertified: tuple[str, ...] = getattr(runner, "uncertified", ())

    def generate(
        self,
        prompts: str | Sequence[str] | None = None,
        sampling_params: ParamsOrList | None = None,
        *,
        prompt_token_ids: Sequence[int] | Sequence[Sequence[int]] | None = None,
        salt: int = 0,
    ) -> list[RequestOutput]:
        """Completes each prompt; results are in the order of the prompts.

        A prompt is text, or token ids in `prompt_token_ids`; parameters are one for all or one
        each. KV is shared only between requests of the same `salt`. A refused request gives an
        output with `error` set while the others run; the only request of a call raises it.
        """
        return self._generate(list_prompts(prompts, prompt_token_ids), sampling_params, salt)

    def generate_stream(
        self,
        prompts: str | Sequence[str] | None = None,
        sampling_params: ParamsOrList | None = None,
        *,
        prompt_token_ids: Sequence[int] | Sequence[Sequence[int]] | None = None,
        salt: int = 0,
    ) -> Iterator[StreamChunk]:
        """As `generate`, giving text and tokens as they come.

        A request's last chunk carries its whole `RequestOutput`. Closing the iterator aborts
        what is unfinished.
        """
        return self._stream(list_prompts(prompts, prompt_token_ids), sampling_params, salt)

    def chat(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        sampling_params: ParamsOrList | None = None,
        *,
        salt: int = 0,
        **template: Any,
    ) -> list[RequestOutput]:
        """Answers a conversation, or each of several, by the model's chat template.

        `template` goes to `pyvosti.chat.render_chat`: add_generation_prompt, chat_template,
        template_kwargs.
        """
        return self._generate(self._render(messages, template), sampling_params, salt)

    def chat_stream(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        sampling_params: ParamsOrList | None = None,
        *,
        salt: int = 0,
        **template: Any,
    ) -> Iterator[StreamChunk]:
        """As `chat`, giving text and tokens as they come."""
        return self._stream(self._render(messages, template), sampling_params, salt)

    def reset_prefix_cache(self) -> None:
        """Forgets what finished requests left; running ones keep their own."""
        self.session.engine.reset_cache()

    def load_weights(self, model: str | os.PathLike[str]) -> None:
        """Goes on with other weights of the same architecture, as after a training step.

        `model` as for the constructor. From then on outputs are, bit for bit, those of a new `LLM`
        with these weights; no KV of the old ones is used. Raises RequestError while a stream is
        open, ModelError or ConfigError when the weights cannot be had: the old ones stay (on the
        GPU, where they are overwritten, a copy that fails midway stops service until one succeeds).
        """
        loaded = load_model(model)
        if loaded.config != self.config:
            raise ConfigError(
                f"{loaded.name} is not of {self.name}'s configuration "
                f"({_differences(self.config, loaded.config)}): make a new LLM"
            )
        try:
            self.session.engine.load_weights()
        except RuntimeError as error:
            raise RequestError(str(error)) from None
        try:
            self._runner.load_weights(loaded.tensors)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        except MemoryError as error:
            raise ConfigError(
                f"no room for other weights: {str(error) or 'not enough memory'}"
            ) from None
        self.name, self.tokenizer = loaded.name, loaded.tokenizer

    def stats(self) -> dict[str, int]:
        """The engine's counters: blocks by state, requests, plans, hits, preemptions."""
        return self.session.engine.stats()

    def _generate(
        self, prompts: list[Prompt], params: ParamsOrList | None, salt: int
    ) -> list[RequestOutput]:
        with self._open(prompts, params, salt, {}) as entries:
            for entry in entries:
                while isinstance(entry, Request) and not entry.finished:
                    self.session.step()
            return [entry.output() if isinstance(entry, Request) else entry for entry in entries]

    def _stream(
        self, prompts: list[Prompt], params: ParamsOrList | None, salt: int
    ) -> Iterator[StreamChunk]:
        inbox: dict[Sample, None] = {}
        with self._open(prompts, params, salt, inbox) as entries:
            for index, entry in enumerate(entries):
                if isinstance(entry, RequestOutput):
                    yield StreamChunk(index, 0, "", [], None, entry)
            for entry in entries:
                while isinstance(entry, Request) and not entry.finished:
                    self.session.step()
                    yield from _take_chunks(inbox)
            yield from _take_chunks(inbox)  # what another stream's steps have finished

    @contextmanager
    def _open(
        self,
        prompts: list[Prompt],
        params: ParamsOrList | None,
        salt: int,
        inbox: dict[Sample, None],
    ) -> Iterator[list[Request | RequestOutput]]:
        """Adds the requests; a refused one is an output with its error. Aborts what is left."""
        if isinstance(salt, bool) or not isinstance(salt, int) or not 0 <= salt < 2**64:
            raise RequestError(f"salt must be a whole number from 0 to 2**64 - 1, not {salt!r}")
        entries: list[Request | RequestOutput] = []
        try:
            for prompt, own in zip(prompts, list_params(params, len(prompts)), strict=True):
                index = len(entries)
                try:
                    request = self._request(index, prompt, own, salt, inbox)
                    entries.append(request)
                    self.session.add(request)
                except RequestError as error:
                    if len(prompts) == 1:
                        raise
                    refused = RequestOutput(index, prompt.text, [], error=error)
                    refused.uncertified = bool(self.uncertified)
                    entries[index:] = [refused]
            yield entries
        finally:
            for entry in entries:
                if isinstance(entry, Request):
                    self.session.abort(entry)

    def _request(
        self,
        index: int,
        prompt: Prompt,
        params: SamplingParams,
        salt: int,
        inbox: dict[Sample, None],
    ) -> Request:
        ids = prompt.encode(self.tokenizer, self.config.vocab)
        room = self.limits.max_model_len - len(ids)
        if room < 1:
            raise RequestError(
                f"the prompt has {len(ids)} tokens, but a sequence may have "
                f"{self.limits.max_model_len}, output included: shorten it or raise max_model_len"
            )
        for name, named in (
            ("stop_token_ids", params.stop_token_ids),
            ("logit_bias", params.logit_bias),
        ):
            if any(token_id >= self.config.vocab for token_id in named):
                raise RequestError(
                    f"{name} has token id {max(named)}, but the model knows 0 to "
                    f"{self.config.vocab - 1}"
                )
        return Request(
            index=index,
            text=prompt.text,
            prompt=ids,
            params=params,
            seed=secrets.randbits(64) if params.seed is None else params.seed,
            max_tokens=room if params.max_tokens is None else min(params.max_tokens, room),
            salt=salt,
            vocab=self.config.vocab,
            tokenizer=self.tokenizer,
            recording=self.recording,
            uncertified=bool(self.uncertified),
            inbox=inbox,
        )

    def _render(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        template: dict[str, Any],
    ) -> list[Prompt]:
        prompts = []
        for conversation in _conversations(messages):
            try:
                text = render_chat(self.tokenizer, conversation, **template)
                prompts.append(Prompt(text=text, add_special_tokens=False))
            except RequestError as error:
                prompts.append(Prompt(error=error))
        return prompts


def _differences(old: ModelConfig, new: ModelConfig) -> str:
    pairs = ((f.name, getattr(old, f.name), getattr(new, f.name)) for f in fields(old))
    return ", ".join(f"{name}: {b}, not {a}" for name, a, b in pairs if a != b)


def _conversations(messages: Any) -> list[Any]:
    """One conversation, or each of several."""
    several = isinstance(messages, Sequence) and messages and isinstance(messages[0], (list, tuple))
    return list(messages) if several else [messages]


def _take_chunks(inbox: dict[Sample, None]) -> Iterator[StreamChunk]:
    while inbox:
        sample = next(iter(inbox))
        del inbox[sample]
        request = sample.request
        chunk = sample.chunk()
        if request.finished and not any(other in inbox for other in request.samples):
            chunk = replace(chunk, output=request.output())
        yield chunk
