"""An OpenAI-compatible server: what it tells of a request are tokens and some log-probabilities.

Requests go to `/v1/completions` as streams, each in a thread of its own. A row is the list of the
likeliest tokens with their log-probabilities, as the server writes them. The request alone, and the
cells that are not about caches, are sent so that the server reuses nothing, where it can be asked
for that (llama.cpp: `cache_prompt`, vLLM: `cache_salt`, SGLang: `/flush_cache`).
"""

from __future__ import annotations

import itertools
import json
import struct
import threading
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyvosti.check.engines import Place, Sighting
from pyvosti.check.engines.own import TEXT
from pyvosti.check.observation import Observed, fingerprint
from pyvosti.check.scenario import Arrival, Cell
from pyvosti.errors import ConfigError

LISTED = 5
"""Log-probabilities that are asked for at each position."""
_CAN = {"batch", "arrivals", "abort", "cache", "drawing"}
_TIMEOUT = 600.0


class ServerEngine:
    """A server that somebody has started."""

    row_of = "listed log-probabilities"
    page = 16
    context = 2048

    def __init__(self, url: str, model: str) -> None:
        """Raises ConfigError when nothing answers at the URL, or refuses a first request."""
        self.url = url.rstrip("/").removesuffix("/v1")
        self.model = model
        self.kind, version = self._kind()
        self.can = frozenset(_CAN)
        self._salts = itertools.count()
        self.words: list[str] | None = None
        if self._takes_ids():
            self.can |= {"prompt ids"}
        else:
            self.words = TEXT.split()
        self.title = f"{self.kind} {version}".strip()

    def prompt_ids(self) -> list[int]:
        """Token ids of a text; of a server that takes none, numbers of its words."""
        if self.words is not None:
            return list(range(len(self.words)))
        answer = self._post("/tokenize", {"content": TEXT, "prompt": TEXT, "model": self.model})
        return list(answer["tokens"])

    def describe(self) -> dict[str, Any]:
        """Where it is, and how prompts are given."""
        prompts = "token ids" if self.words is None else "text"
        return {"model": self.model, "prompts": prompts, "listed": LISTED}

    def close(self) -> None:
        """Nothing is held between cells."""

    def observe(self, cell: Cell, keep: frozenset[Place] = frozenset()) -> Sighting:
        """Sends the phases one after the other, the requests of a phase at once."""
        cold = cell.options.get("prefix_cache") is False or "cache" not in cell.needs
        if cold and self.kind == "SGLang":
            self._post("/flush_cache", {})
        sighting = Sighting([])
        for phase in cell.phases:
            streams = [_Stream(self, arrival, cold) for arrival in phase]
            with ThreadPoolExecutor(len(streams)) as pool:
                for done in [pool.submit(stream.run, streams[0]) for stream in streams]:
                    done.result()
            for stream in streams:
                if stream.arrival.watched:
                    self._take(sighting, stream, keep)
        return sighting

    def body(self, arrival: Arrival, cold: bool) -> dict[str, Any]:
        """What is sent for a request."""
        params, ids = arrival.job.params, arrival.job.prompt
        body: dict[str, Any] = {
            "model": self.model,
            "prompt": list(ids) if self.words is None else " ".join(self.words[i] for i in ids),
            "max_tokens": params.max_tokens,
            "temperature": params.temperature,
            "top_p": params.top_p,
            "seed": (params.seed or 0) % 2**31,
            "logprobs": LISTED,
            "stream": True,
            "ignore_eos": True,
            "presence_penalty": params.presence_penalty,
            "frequency_penalty": params.frequency_penalty,
        }
        if params.top_k:
            body["top_k"] = params.top_k
        if params.min_p:
            body["min_p"] = params.min_p
        if params.repetition_penalty != 1:
            name = "repeat_penalty" if self.kind.startswith("llama") else "repetition_penalty"
            body[name] = params.repetition_penalty
        if self.kind == "llama.cpp":
            body["cache_prompt"] = not cold
        if self.kind == "vLLM":
            body |= {"return_tokens_as_token_ids": True}
            body |= {"cache_salt": f"alone {next(self._salts)}"} if cold else {}
        return body

    def open(self, body: dict[str, Any]) -> Any:
        """The response, whose lines are server-sent events."""
        request = urllib.request.Request(
            f"{self.url}/v1/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": "Bearer none"},
        )
        return urllib.request.urlopen(request, timeout=_TIMEOUT)

    def _take(self, sighting: Sighting, stream: _Stream, keep: frozenset[Place]) -> None:
        index = len(sighting.samples)
        sighting.samples.append([stream.seen])
        for place in keep:
            if place.watched == index and place.position in stream.lists:
                sighting.kept[place] = stream.lists[place.position]

    def _kind(self) -> tuple[str, str]:
        """The server's name and version, from addresses that only it has."""
        for path, kind, name in (
            ("/props", "llama.cpp", "build_info"),
            ("/version", "vLLM", "version"),
            ("/get_server_info", "SGLang", "version"),
        ):
            answer = self._get(path)
            if answer is not None:
                return kind, str(answer.get(name, ""))
        if self._get("/v1/models") is None:
            raise ConfigError(f"no OpenAI-compatible server answers at {self.url}")
        return "server", ""

    def _get(self, path: str) -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(self.url + path, timeout=30) as response:
                answer = json.loads(response.read())
        except (urllib.error.URLError, OSError, ValueError):
            return None
        return answer if isinstance(answer, dict) else None

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        data = json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            text = response.read()
        return json.loads(text) if text.startswith((b"{", b"[")) else text

    def _takes_ids(self) -> bool:
        body = {"model": self.model, "max_tokens": 1, "temperature": 0}
        try:
            self._post("/v1/completions", body | {"prompt": [1, 2, 3]})
            self._post("/tokenize", {"content": "a", "prompt": "a", "model": self.model})
            return True
        except (urllib.error.URLError, OSError):
            pass
        try:
            self._post("/v1/completions", body | {"prompt": "a b c"})
            return False
        except (urllib.error.URLError, OSError) as error:
            raise ConfigError(
                f"the server at {self.url} refuses a completion of {self.model!r}: {error}"
            ) from None


class _Stream:
    """One request on its way."""

    def __init__(self, engine: ServerEngine, arrival: Arrival, cold: bool) -> None:
        self.engine, self.arrival, self.cold = engine, arrival, cold
        self.seen = Observed(len(arrival.job.prompt), arrival.job.params.max_tokens or 0)
        self.lists: dict[int, NDArray[np.float32]] = {}
        self.moved = threading.Condition()
        self.ended = False

    def run(self, leader: _Stream) -> None:
        """Waits for its time, sends, reads to the end or to where it is given up."""
        leader.wait_for(self.arrival.after)
        try:
            with self.engine.open(self.engine.body(self.arrival, self.cold)) as response:
                for event in _events(response):
                    self._take(event)
                    limit = self.arrival.abort_after
                    if limit is not None and len(self.seen.tokens) >= limit:
                        break
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{error}: {error.read(300)!r}") from None
        finally:
            with self.moved:
                self.ended = True
                self.moved.notify_all()

    def wait_for(self, outputs: int) -> None:
        """Returns when so many outputs have come, or when no more will."""
        with self.moved:
            self.moved.wait_for(lambda: self.ended or len(self.seen.tokens) >= outputs)

    def _take(self, event: dict[str, Any]) -> None:
        choices = event.get("choices") or [{}]
        with self.moved:
            for token, listed in _positions(choices[0].get("logprobs") or {}):
                position = self.seen.prompt_length - 1 + len(self.seen.tokens)
                self.seen.tokens.append(token)
                self.lists[position] = np.array([value for _, value in listed], np.float32)
                packed = b"".join(struct.pack("<qf", *pair) for pair in listed)
                self.seen.rows[position] = fingerprint(packed)
            self.moved.notify_all()


def _events(response: Any) -> Iterator[dict[str, Any]]:
    for line in response:
        if line.startswith(b"data:") and b"[DONE]" not in line:
            event = json.loads(line[5:])
            if "error" in event:
                raise RuntimeError(f"the server says: {event['error']}")
            yield event


def _positions(logprobs: dict[str, Any]) -> Iterator[tuple[int, list[tuple[int, float]]]]:
    """(token, [(token, log-probability), …]) of each position, in either form that is in use."""
    if "content" in logprobs:
        for entry in logprobs["content"] or []:
            listed = [(_number(top), float(top["logprob"])) for top in entry["top_logprobs"]]
            yield _number(entry), listed
        return
    tokens = logprobs.get("tokens") or []
    values = logprobs.get("token_logprobs") or []
    tops = logprobs.get("top_logprobs") or [{}] * len(tokens)
    for token, value, top in zip(tokens, values, tops, strict=True):
        listed = [(_id(token), float(value))]
        yield _id(token), listed + [(_id(text), float(v)) for text, v in sorted(top.items())]


def _number(entry: dict[str, Any]) -> int:
    return int(entry["id"]) if "id" in entry else _id(entry["token"])


def _id(text: str) -> int:
    """A token's id as vLLM writes it on request, or a number of its text where none is given."""
    prefix, _, number = text.partition(":")
    return int(number) if prefix == "token_id" else zlib.crc32(text.encode())
