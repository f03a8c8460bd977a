"""Chat messages to a prompt, by the model's own Jinja template.

The template comes with the weights, so it runs in Jinja's sandbox. The environment is the one
that Hugging Face's `apply_chat_template` gives it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from pyvosti.errors import RequestError
from pyvosti.tokenizer import Tokenizer


class Message(TypedDict):
    """One turn: who speaks (system, user, assistant) and what is said."""

    role: str
    content: str


def render_chat(
    tokenizer: Tokenizer,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = True,
    chat_template: str | None = None,
    template_kwargs: dict[str, Any] | None = None,
) -> str:
    """The prompt's text, special tokens included: encode it without adding them again.

    Raises RequestError for messages that are not a conversation or that the template refuses,
    and when there is no template.
    """
    from jinja2 import TemplateError
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    template = chat_template or tokenizer.chat_template
    if template is None:
        raise RequestError("the model has no chat template: use generate, or give chat_template")
    _check_messages(messages)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    try:
        return environment.from_string(template).render(
            messages=list(messages),
            add_generation_prompt=add_generation_prompt,
            **tokenizer.special_tokens,
            **(template_kwargs or {}),
        )
    except TemplateError as error:
        raise RequestError(f"the chat template refuses the messages: {error}") from None
    except (
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise RequestError(f"the chat template fails on the messages: {error}") from None


def _check_messages(messages: Sequence[Message]) -> None:
    if isinstance(messages, (str, bytes, dict)) or not messages:
        raise RequestError('messages must be a list like [{"role": "user", "content": "Hello"}]')
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RequestError(f"the message {message!r} has no role")
        if not isinstance(message.get("content"), str):
            raise RequestError(f"the message {message!r} has no content")


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(reason: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(reason)
