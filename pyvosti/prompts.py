"""The forms in which prompts and their parameters are given, made one."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyvosti.errors import RequestError
from pyvosti.params import SamplingParams
from pyvosti.tokenizer import Tokenizer


class Prompt(NamedTuple):
    """One prompt: text or token ids, or the reason why it could not be made."""

    text: str | None = None
    token_ids: Any = None
    add_special_tokens: bool = True
    """False for text in which they are written out, as chat templates do."""
    error: RequestError | None = None

    def encode(self, tokenizer: Tokenizer, vocab: int) -> NDArray[np.uint32]:
        """u32[n], n >= 1, each id below `vocab`. Raises RequestError."""
        if self.error is not None:
            raise self.error
        if self.text is not None:
            ids = tokenizer.encode(self.text, self.add_special_tokens)
        else:
            ids = _checked_ids(self.token_ids)
        if len(ids) == 0:
            raise RequestError("the prompt is empty: give at least one token")
        if int(ids.max()) >= vocab:
            raise RequestError(
                f"the prompt has token id {int(ids.max())}, but the model knows 0 to {vocab - 1}"
            )
        return ids


def list_prompts(prompts: str | Sequence[str] | None, token_ids: Any) -> list[Prompt]:
    """One entry per prompt of a call. Raises RequestError for what is no prompt at all."""
    if (prompts is None) == (token_ids is None):
        raise RequestError("give either prompts or prompt_token_ids")
    if prompts is not None:
        texts: list[Any] = list(prompts) if isinstance(prompts, (list, tuple)) else [prompts]
        for text in texts:
            if not isinstance(text, str):
                raise RequestError(
                    f"prompts must be text, not {type(text).__name__}; "
                    "token ids go into prompt_token_ids"
                )
        return [Prompt(text=text) for text in texts]
    listed = isinstance(token_ids, Sequence) and not isinstance(token_ids, (str, bytes))
    if not listed and getattr(token_ids, "ndim", 0) == 0:  # arrays of any library have an `ndim`
        raise RequestError("prompt_token_ids must be a list of token ids, or a list of such lists")
    if len(token_ids) and isinstance(token_ids[0], Integral):
        return [Prompt(token_ids=token_ids)]
    return [Prompt(token_ids=ids) for ids in token_ids]


def list_params(
    params: SamplingParams | Sequence[SamplingParams] | None, count: int
) -> list[SamplingParams]:
    """One entry per prompt."""
    if params is None:
        params = SamplingParams()
    if isinstance(params, SamplingParams):
        return [params] * count
    listed = list(params)
    if not all(isinstance(entry, SamplingParams) for entry in listed):
        raise RequestError("sampling_params must be SamplingParams, one for all or one per prompt")
    if len(listed) != count:
        raise RequestError(f"{count} prompts came with {len(listed)} sampling_params")
    return listed


def _checked_ids(token_ids: Any) -> NDArray[np.uint32]:
    array = np.asarray(token_ids) if _is_flat(token_ids) else np.empty(0, object)
    if array.size == 0 and hasattr(token_ids, "__len__") and len(token_ids) == 0:
        return np.empty(0, np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise RequestError("a prompt in prompt_token_ids must be a list of whole numbers")
    if int(array.min()) < 0 or int(array.max()) >= 2**32:
        raise RequestError("a prompt in prompt_token_ids has an id outside 0 to 2**32 - 1")
    return array.astype(np.uint32)


def _is_flat(token_ids: Any) -> bool:
    if isinstance(token_ids, np.ndarray):
        return True
    return isinstance(token_ids, Sequence) and all(isinstance(i, Integral) for i in token_ids)
