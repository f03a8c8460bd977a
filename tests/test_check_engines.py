"""The battery on other engines: transformers must fail it; a server is read in either format."""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pyvosti import ConfigError
from pyvosti.check.battery import Battery
from pyvosti.check.cells import make_cells, make_requests, select_cells
from pyvosti.check.engines.hf import TransformersEngine
from pyvosti.check.engines.own import OwnEngine
from pyvosti.check.engines.server import LISTED, ServerEngine
from pyvosti.check.explain import explain

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def outcomes(engine: Any, *names: str) -> dict[str, Any]:
    requests = make_requests(engine.prompt_ids(), engine.page, "quick")
    battery = Battery(engine, explain)
    for cell in select_cells(make_cells(requests, "quick"), names):
        battery.run(cell)
    return battery.outcomes


@pytest.fixture(scope="module")
def hf(tiny_folder: Path) -> TransformersEngine:
    return TransformersEngine(str(tiny_folder), "float32", 1)


def test_b75_transformers_differ_by_batch(hf: TransformersEngine) -> None:
    """The negative control: stock kernels are chosen by the shape of the batch."""
    found = outcomes(hf, "neighbours-7", "order-together", "rows-copies", "crowd")
    assert "different" in {outcome.status for outcome in found.values()}
    assert {outcome.status for outcome in found.values()} <= {"equal", "different"}
    told = next(o.difference for o in found.values() if o.difference)
    assert "of 400 logits differ" in told["bits"] and "cannot be looked at" in told["layer"]


def test_b76_transformers_differ_between_prefill_and_decode(hf: TransformersEngine) -> None:
    found = outcomes(hf, "prefill-whole", "prefill-by-2", "prefill-each")
    assert "different" in {outcome.status for outcome in found.values()}


def test_transformers_compute_the_same_model(hf: TransformersEngine, tiny_folder: Path) -> None:
    """What differs are last bits: the control is no other model."""
    names = ("alone-again", "repeat-step")
    assert {o.status for o in outcomes(hf, *names).values()} == {"equal"}
    own = OwnEngine(str(tiny_folder), "cpu")
    requests = make_requests(own.prompt_ids(), own.page, "quick")
    tokens = [Battery(e)._alone(requests.greedy)[0].tokens for e in (own, hf)]
    assert tokens[0] == tokens[1]


def test_transformers_take_over_a_cache(hf: TransformersEngine) -> None:
    found = outcomes(hf, "hit-half", "hit-all", "length-4-pages", "next-turn", "chunks-7")
    assert {outcome.status for outcome in found.values()} <= {"equal", "different"}, found


def test_transformers_skip_with_a_reason(hf: TransformersEngine) -> None:
    found = outcomes(hf, "preempted-often", "poison-nan", "order-staggered", "warm")
    assert {outcome.status for outcome in found.values()} == {"skipped"}
    assert "has no KV pool" in str(found["preempted-often"].reason)
    assert "a lone request only" in str(found["warm"].reason)


Fault = Callable[[int, dict[str, Any]], float]
"""What is added to a log-probability: takes open requests and the body."""


class Answers(BaseHTTPRequestHandler):
    """A model whose log-probabilities are a hash of the prompt and the output so far."""

    fault: Fault = staticmethod(lambda running, body: 0.0)
    style = "content"
    takes_ids = True
    running = 0
    lock = threading.Lock()

    def do_GET(self) -> None:
        name = "/version" if self.style == "tokens" else "/props"
        if self.path != name:
            self.send_error(404)
            return
        self._send(json.dumps({"version": "1", "build_info": "1"}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize" and self.takes_ids:
            self._send(json.dumps({"tokens": list(range(100))}).encode())
        elif self.path != "/v1/completions" or (
            not self.takes_ids and isinstance(body["prompt"], list)
        ):
            self.send_error(404)
        elif body.get("stream"):
            self._stream(body)
        else:
            self._send(b"{}")

    def _stream(self, body: dict[str, Any]) -> None:
        with self.lock:
            Answers.running += 1
        try:
            time.sleep(0.01)
            error = self.fault(Answers.running, body)
            self.send_response(200)
            self.end_headers()
            given = body["prompt"]
            tokens = list(given) if isinstance(given, list) else [given]
            for _ in range(body["max_tokens"]):
                state = zlib.crc32(json.dumps(tokens).encode()).to_bytes(4, "little")
                tops = [(state[i % 4] + i, -0.5 * i - error) for i in range(LISTED)]
                tokens.append(tops[0][0])
                time.sleep(0.001)
                event = {"choices": [{"logprobs": self._logprobs(tops)}]}
                self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            self.wfile.write(b"data: [DONE]\n\n")
        finally:
            with self.lock:
                Answers.running -= 1

    def _logprobs(self, tops: list[tuple[int, float]]) -> dict[str, Any]:
        if self.style == "tokens":
            return {
                "tokens": [f"token_id:{tops[0][0]}"], "token_logprobs": [tops[0][1]],
                "top_logprobs": [{f"token_id:{token}": value for token, value in tops}],
            }  # fmt: skip
        listed = [{"id": token, "token": "x", "logprob": value} for token, value in tops]
        return {"content": [listed[0] | {"top_logprobs": listed}]}

    def _send(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None: ...


class Server(ThreadingHTTPServer):
    """Takes as many connections at once as a cell opens."""

    request_queue_size = 512
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what some cells are about."""


@contextmanager
def serving(**settings: Any) -> Iterator[str]:
    handler = type("Handler", (Answers,), settings)
    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


CELLS = ("neighbours-7", "order-*", "prefill-each", "warm", "same-seed", "prefill-beside-9")


@pytest.mark.parametrize("style", ["content", "tokens"])
@pytest.mark.parametrize("takes_ids", [True, False])
def test_a_server(style: str, takes_ids: bool) -> None:
    with serving(style=style, takes_ids=takes_ids) as url:
        engine = ServerEngine(url, "some-model")
        found = outcomes(engine, *CELLS)
    assert engine.title == ("vLLM 1" if style == "tokens" else "llama.cpp 1")
    skipped = {name for name, o in found.items() if o.status == "skipped"}
    assert {o.status for o in found.values()} == ({"equal", "skipped"} if skipped else {"equal"})
    assert skipped == (set() if takes_ids else {"prefill-each"})
    assert found["neighbours-7"].rows == 16


def test_a_server_that_differs_by_company() -> None:
    fault = staticmethod(lambda running, body: 1e-6 * (body["max_tokens"] > 1 and running > 3))
    with serving(fault=fault) as url:
        engine = ServerEngine(url, "some-model")
        found = outcomes(engine, "neighbours-63", "alone-again")
    assert found["alone-again"].status == "equal"
    assert found["neighbours-63"].status == "different"
    assert "listed log-probabilities differ" in found["neighbours-63"].difference["bits"]


def test_a_server_that_reuses_what_it_must_not() -> None:
    fault = staticmethod(lambda running, body: 1e-6 * bool(body["cache_prompt"]))
    with serving(fault=fault) as url:
        found = outcomes(ServerEngine(url, "some-model"), "length-page", "neighbours-1")
    assert found["length-page"].status == "different", "cells about caches use the cache"
    assert found["neighbours-1"].status == "equal", "the others ask for none"


def test_a_server_that_breaks_off() -> None:
    def fault(running: int, body: dict[str, Any]) -> float:
        raise OSError("out of memory")

    with serving(fault=staticmethod(fault)) as url:
        found = outcomes(ServerEngine(url, "some-model"), "alone-again")
    assert found["alone-again"].status == "failed"


def test_no_server() -> None:
    with pytest.raises(ConfigError, match="no OpenAI-compatible server"):
        ServerEngine("http://127.0.0.1:9", "x")
