"""Token ids to text as they come, never half a character, never past a stop string."""

from __future__ import annotations

from collections.abc import Sequence

from pyvosti.tokenizer import Tokenizer

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
_CHARACTER = 4
"""Tokens that a character spans at most: it has four bytes in UTF-8."""


class Detokenizer:
    """The growing text of one sample.

    Decoding a token needs its neighbours (spaces, characters that span tokens), so the tokens
    after `_known` are decoded together with the run before them, and only what the new ones add
    is taken: `text` is what decoding all ids at once would give. Text that ends inside a
    character, or that may still become a stop string, is held back from `take`.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop: Sequence[str] = (),
        skip_special_tokens: bool = True,
    ) -> None:
        self.text = ""
        self.stopped_by: str | None = None
        self._tokenizer = tokenizer
        self._stop = tuple(stop)
        self._skip_special_tokens = skip_special_tokens
        self._ids: list[int] = []
        self._context = 0  # ids from here on are decoded together with the new ones
        self._known = 0  # ids before this are in `text`
        self._taken = 0  # characters of `text` given out by `take`

    def push(self, token_id: int) -> bool:
        """Adds a token; True when a stop string is complete (`text` then ends before it)."""
        if not self._tokenizer.has_text(token_id, self._skip_special_tokens):
            return False
        self._ids.append(token_id)
        if len(self._ids) - self._known > _CHARACTER:
            # A run of bytes that are no character: it is not decoded anew for each further one.
            if self._decode(len(self._ids) - _CHARACTER, len(self._ids)).endswith(_INCOMPLETE):
                return False
        before = self._decode(self._context, self._known)
        whole = self._decode(self._context, len(self._ids))
        if whole.endswith(_INCOMPLETE) or len(whole) <= len(before):
            return False
        self._context, self._known = self._known, len(self._ids)
        return self._append(whole[len(before) :])

    def finish(self) -> None:
        """No token will follow: what was held back as incomplete becomes text."""
        before = self._decode(self._context, self._known)
        whole = self._decode(self._context, len(self._ids))
        self._known = len(self._ids)
        if self.stopped_by is None:
            self._append(whole[len(before) :])
        self._stop = ()

    def take(self) -> str:
        """The text that is new since the last call and can no longer change."""
        end = len(self.text) - self._may_become_stop()
        new = self.text[self._taken : end]
        self._taken = max(self._taken, end)
        return new

    def _decode(self, start: int, end: int) -> str:
        return self._tokenizer.decode(self._ids[start:end], self._skip_special_tokens)

    def _append(self, new: str) -> bool:
        longest = max(map(len, self._stop), default=1)
        search_from = max(0, len(self.text) - longest + 1)
        self.text += new
        # The stop string that is complete first; of two that begin together, the first given.
        hits = [
            (self.text.index(stop, search_from) + len(stop), order, stop)
            for order, stop in enumerate(self._stop)
            if stop in self.text[search_from:]
        ]
        if not hits:
            return False
        end, _, self.stopped_by = min(hits)
        self.text = self.text[: end - len(self.stopped_by)]
        return True

    def _may_become_stop(self) -> int:
        """Length of the longest end of `text` that begins a stop string."""
        if self.stopped_by is not None:
            return 0
        longest = max((len(stop) - 1 for stop in self._stop), default=0)
        for length in range(min(longest, len(self.text)), 0, -1):
            if any(stop.startswith(self.text[-length:]) for stop in self._stop):
                return length
        return 0
