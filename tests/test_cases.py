"""Each fault of `cases.tsv` has a test of its kind, which can fail; or it says what is missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from cases import TABLE, Case, read_cases, render
from faulty_engines import ENGINES
from pyvosti import LLM, ModelError, SamplingParams
from pyvosti._core import Engine
from pyvosti.check.battery import Battery
from pyvosti.check.cells import cache as cache_cells
from pyvosti.check.cells import make_cells, make_requests, select_cells
from pyvosti.check.engines.own import OwnEngine
from pyvosti.check.faults import FAULTS, draws, sums
from pyvosti.check.faults.runner import FaultyRunner, Step
from pyvosti.check.requests import Requests
from pyvosti.config import config_from_hf
from pyvosti.loader import load_model
from pyvosti.runner import Runner
from tiny_models import FAMILIES, save_tiny_model

pytestmark = pytest.mark.usefixtures("on_the_cpu")
CASES = read_cases()
RUNNERS = {fault.name: fault.make for fault in FAULTS} | {"block-from-256": sums.BlockFrom256}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a tiny random model by its short name."""

    @cache
    def folder(name: str) -> str:
        path = tmp_path_factory.mktemp("tiny") / name
        family = {"qwen3": "qwen3", "windows": "qwen2-windows"}[name]
        save_tiny_model(FAMILIES[family], path)
        return str(path)

    return folder


@pytest.fixture(scope="module")
def battery(model: Callable[[str], str]) -> Callable[..., Battery]:
    """A battery by model and planted fault; what it has run once is not run again."""

    @cache
    def make(name: str, fault: str | None = None) -> Battery:
        options: dict[str, Any] = {}
        if fault in ENGINES:
            options["scheduler"] = ENGINES[fault]
        elif fault is not None:
            options["wrapper"] = RUNNERS[fault]
        return Battery(OwnEngine(model(name), "cpu", threads=2, **options))

    return make


def requests_of(engine: OwnEngine) -> Requests:
    return make_requests(engine.prompt_ids(), engine.page, "quick")


def status(battery: Battery, name: str) -> str:
    if name not in battery.outcomes:
        engine: Any = battery.engine
        (cell,) = select_cells(make_cells(requests_of(engine), "quick"), [name])
        # A faulty engine need not preempt or hit as the real one does.
        healthy = engine.scheduler not in ENGINES.values()
        battery.run(cell if healthy else replace(cell, counters={}, preempted_at=None))
    return battery.outcomes[name].status


@pytest.mark.parametrize("case", [c for c in CASES if c.kind == "cells"], ids=lambda c: c.id)
def test_case(case: Case, battery: Callable[..., Battery]) -> None:
    """The cells are equal, and at least one of them shows a planted fault of the kind."""
    (name,) = case.part("model") or ["qwen3"]
    healthy = battery(name)
    for cell in case.part("cells"):
        assert status(healthy, cell) == "equal", healthy.outcomes[cell]
    faulty = battery(name, *case.part("fault"))
    seen = [status(faulty, cell) for cell in case.part("cells")]
    assert "different" in seen, f"{case.part('fault')} was not noticed: {seen}"


@pytest.mark.parametrize("fault", ["salt-ignored", "hash-only"])
def test_pages_of_another_salt_show_in_the_hits(
    battery: Callable[..., Battery], fault: str
) -> None:
    """Its keys and values are the same bits, so that no row of logits can tell."""
    assert status(battery("qwen3"), "donor-salted") == "equal"
    faulty = battery("qwen3", fault)
    assert status(faulty, "donor-salted") == "blind"
    assert "hits grew" in (faulty.outcomes["donor-salted"].reason or "")


def test_the_table_is_the_data() -> None:
    assert TABLE.read_text(encoding="utf-8") == render(CASES), "run: python tests/cases.py"


def test_every_case_has_its_test() -> None:
    assert len(CASES) == 81
    root = Path(__file__).resolve().parent
    for case in CASES:
        assert case.kind in ("cells", "test", "none")
        if case.kind == "test":
            file, name = case.part("test")[0].split("::")
            assert case.id.lower() + "_" in name, "a case's id stands in the name of its test"
            assert re.search(rf"^def {name}\(", (root.parent / file).read_text(), re.M), name
        elif case.kind == "none":
            assert len(case.attack) > len("none ") + 10


@pytest.mark.parametrize("name", ["MixtralForCausalLM", "Qwen3MoeForCausalLM"])
def test_b06_mixtures_of_experts_are_refused(name: str) -> None:
    with pytest.raises(ModelError, match="not supported"):
        config_from_hf({"architectures": [name], "num_experts": 8})


def reads_what_it_writes(make: Callable[..., Any]) -> bool:
    """Whether a plan for two equal prompts has one read pages that the other is to write."""
    size = 4
    engine = make([32], size, 4, 64, 64, 100)
    prompt, nothing = np.arange(13, dtype=np.uint32), np.zeros(0, np.uint32)
    for _ in range(2):
        engine.add_request(prompt, 4, nothing, 12)
    plan = engine.schedule()
    assert len(plan.seats) == 2
    table = np.zeros((4, 16), np.uint32)
    seats, indices, blocks = plan.table_updates[0]
    table[seats, indices] = blocks
    written = set((plan.slots[0] // size).tolist())
    firsts = plan.positions[plan.query_start[:-1]]
    past = [table[seat, : first // size] for seat, first in zip(plan.seats, firsts, strict=True)]
    return bool(written & set(np.concatenate(past).tolist()))


def test_b23_twins_in_one_step_do_not_read_each_other(battery: Callable[..., Battery]) -> None:
    assert status(battery("qwen3"), "twins") == "equal"
    assert not reads_what_it_writes(Engine)
    assert reads_what_it_writes(ENGINES["registers-early"])


class FailsOnce(FaultyRunner):
    """Raises in its n-th plan, after the rows have been written."""

    def __init__(self, runner: Runner, nth: int) -> None:
        super().__init__(runner)
        self.left = nth

    def spoil_tokens(self, step: Step, tokens: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise OSError("the page could not be read")
        return tokens


@pytest.mark.parametrize("nth", [1, 2, 5])
def test_b33_a_step_that_fails_after_a_hit(tiny: LLM, tiny_folder: Path, nth: int) -> None:
    """The request is not lost: stepping on gives the same bits as a cold run."""
    params = SamplingParams(max_tokens=8, temperature=0.9, seed=3, ignore_eos=True)
    prompt = list(range(5, 60))
    want = tiny.generate(prompt_token_ids=prompt, sampling_params=params)[0].outputs[0]
    llm = LLM(tiny_folder, num_blocks=64, record_digests=True, max_batched_tokens=16)
    llm.generate(prompt_token_ids=prompt[:40], sampling_params=params)
    healthy = llm.session.runner
    stream = llm.generate_stream(prompt_token_ids=prompt, sampling_params=params)
    llm.session.runner = FailsOnce(healthy, nth)
    step = llm.session.step
    failures = []

    def stepping_on() -> None:
        try:
            step()
        except OSError as error:
            failures.append(error)

    llm.session.step = stepping_on  # type: ignore[method-assign]
    output = list(stream)[-1].output
    assert output is not None and len(failures) == 1
    assert llm.stats()["hits"] > 0
    assert (output.outputs[0].digests, output.outputs[0].token_ids) == (
        want.digests, want.token_ids
    )  # fmt: skip


class TiesFromTheEnd(FaultyRunner):
    """Takes the highest of equally likely tokens, where several rows are drawn at once."""

    def spoil_tokens(self, step: Step, tokens: Any) -> Any:
        return tokens | 1 if len(tokens) > 1 else tokens


def test_b39_ties_give_the_lowest_id_on_every_path(tmp_path: Path) -> None:
    """Each token's row of the head stands there twice: every greedy token has to be even."""
    folder = tmp_path / "ties"
    save_tiny_model(FAMILIES["qwen3"], folder)
    tensors = load_file(folder / "model.safetensors")
    head = tensors["lm_head.weight"].copy()
    head[1::2] = head[0::2]
    save_file(tensors | {"lm_head.weight": head}, folder / "model.safetensors")
    names = ["order-together", "chunks-7", "hit-half", "preempted-often", "prefill-each", "crowd"]

    def run(**options: Any) -> tuple[list[str], list[int]]:
        engine = OwnEngine(str(folder), "cpu", **options)
        battery = Battery(engine)
        found = [status(battery, name) for name in names]
        greedy = battery.alone[requests_of(engine).greedy.key]
        return found, greedy[0].tokens

    found, tokens = run()
    assert set(found) == {"equal"}
    assert tokens and all(token % 2 == 0 for token in tokens)
    assert "different" in run(wrapper=TiesFromTheEnd)[0]


def test_b63_preempted_at_each_output(battery: Callable[..., Battery]) -> None:
    healthy, faulty = battery("qwen3"), battery("qwen3", "noise-repeated")
    requests = requests_of(healthy.engine)  # type: ignore[arg-type]
    for at in range(1, 15):
        cell = cache_cells.preempted_at(requests, at)
        outcome = healthy.run(cell)
        assert outcome.status == "equal", outcome
    assert faulty.run(cell).status == "different"


def penalised_tokens(engine: OwnEngine, penalty: float) -> list[int]:
    job = requests_of(engine).job(9, outputs=24, repetition_penalty=penalty)
    battery = Battery(engine)
    return battery._alone(job)[0].tokens


def test_b65_a_repetition_penalty_counts(battery: Callable[..., Battery]) -> None:
    engine: Any = battery("qwen3").engine
    assert penalised_tokens(engine, 1.0) != penalised_tokens(engine, 1.3)
    forgetful = OwnEngine(engine.model, "cpu", wrapper=draws.HistoryForgotten)
    assert penalised_tokens(forgetful, 1.0) == penalised_tokens(forgetful, 1.3)
    assert status(battery("qwen3"), "samplers-0") == "equal"


def seeded_tokens(engine: OwnEngine, seed: int) -> list[int]:
    job = requests_of(engine).job(6, outputs=16, temperature=1.0, seed=seed)
    return Battery(engine)._alone(job)[0].tokens


def test_b71_a_seed_counts(battery: Callable[..., Battery]) -> None:
    engine: Any = battery("qwen3").engine
    seeds = (0, 1, 2**32 - 1, 2**32, 2**64 - 1)
    outputs = [seeded_tokens(engine, seed) for seed in seeds]
    assert len({tuple(tokens) for tokens in outputs}) == len(seeds)
    assert outputs == [seeded_tokens(engine, seed) for seed in seeds]
    deaf = OwnEngine(engine.model, "cpu", wrapper=draws.SeedIgnored)
    assert len({tuple(seeded_tokens(deaf, seed)) for seed in seeds}) == 1


def test_b97_prompts_are_token_ids(battery: Callable[..., Battery]) -> None:
    """What is prefilled again are the ids that were decoded, not a text that becomes others."""
    healthy = battery("qwen3")
    assert status(healthy, "prefill-each") == "equal"
    engine: Any = healthy.engine
    (cell,) = select_cells(make_cells(requests_of(engine), "quick"), ["prefill-each"])
    prompts = [arrival.job.prompt for arrival in healthy.resolve(cell).watched]
    tokenizer = load_model(engine.model).tokenizer
    changed = [p for p in prompts if tuple(tokenizer.encode(tokenizer.decode(p))) != p]
    assert changed, "every prompt survives its own text: the case is not there"
    job = cell.watched[0].baseline
    outputs = tuple(healthy._alone(job)[0].tokens)
    assert all(p == (job.prompt + outputs)[: len(p)] for p in prompts)
