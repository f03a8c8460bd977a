"""The command line: results, exit codes, one sentence for each mistake, a fast start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pyvosti import LLM
from pyvosti.cli import app
from pyvosti.models import SMOLLM2_COMMAND

pytestmark = pytest.mark.usefixtures("on_the_cpu")
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def run(tiny_folder: Path):  # type: ignore[no-untyped-def]
    """Runs a command in this process, on the tiny model."""

    def call(command: str, *arguments: str, given: str | None = None) -> Result:
        model = ["--model", str(tiny_folder)] if command in ("generate", "chat") else []
        return CliRunner().invoke(app, [command, *arguments, *model], input=given)

    return call


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as users do, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pyvosti", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_generate_prints_the_text(run, tiny: LLM) -> None:  # type: ignore[no-untyped-def]
    from pyvosti import SamplingParams

    expected = tiny.generate("fox", SamplingParams(max_tokens=9, temperature=0))[0]
    result = run("generate", "fox", "--max-tokens", "9", "--deterministic-report")
    assert result.exit_code == 0
    text, _, report = result.stdout.rpartition("\nrequest 0 ")
    assert text == expected.outputs[0].text
    assert report.startswith("sample 0 seed ")
    assert report.strip().endswith(f"logits sha256:{expected.outputs[0].digest}")


def test_generate_json(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "prompts.txt"
    file.write_text("quick brown\nêtre\n")
    options = ["--prompts-file", str(file), "--n", "2", "--temperature", "1", "--seed", "4"]
    result = run("generate", "fox", *options, "--json", "--deterministic-report")
    assert result.exit_code == 0
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["prompt"] for line in lines] == ["fox", "quick brown", "être"]
    for line in lines:
        assert line["seed"] == 4
        assert [sample["index"] for sample in line["outputs"]] == [0, 1]
        assert all(len(sample["digest"]) == 64 for sample in line["outputs"])


def test_the_report_does_not_depend_on_the_batch(run) -> None:  # type: ignore[no-untyped-def]
    def digest(*arguments: str) -> str:
        result = run("generate", *arguments, "--deterministic-report")
        assert result.exit_code == 0
        line = next(line for line in result.stdout.splitlines() if line.startswith("request 0 "))
        return line.rpartition("sha256:")[2]

    alone = digest("fox")
    assert digest("fox", "x", "quick", "--max-batched-tokens", "3", "--max-seqs", "2") == alone
    assert digest("fox", "fox", "--no-prefix-cache", "--threads", "1") == alone


def test_many_prompts(run) -> None:  # type: ignore[no-untyped-def]
    result = run("generate", "fox", "quick", "--max-tokens", "3")
    assert result.exit_code == 0
    assert "--- prompt 0\n" in result.stdout
    assert "--- prompt 1\n" in result.stdout


def test_standard_input(run) -> None:  # type: ignore[no-untyped-def]
    piped = run("generate", "-", "--json", given="fox")
    assert json.loads(piped.stdout)["prompt"] == "fox"
    result = CliRunner().invoke(app, ["generate", "-"], input=b"\xff")
    assert (result.exit_code, result.stderr) == (2, "error: the standard input is not UTF-8 text\n")


def test_missing_memory_is_one_sentence(run, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def starve(*_: object) -> None:
        raise MemoryError("not enough memory: 7 MiB")

    monkeypatch.setattr("pyvosti.session.Session.step", starve)
    result = run("generate", "fox")
    assert result.exit_code == 2
    assert result.stderr == "error: not enough memory: 7 MiB\n"


def test_chat(run) -> None:  # type: ignore[no-untyped-def]
    result = run("chat", "Hello", "--system", "Be brief.", "--max-tokens", "5", "--json")
    assert result.exit_code == 0
    prompt = json.loads(result.stdout)["prompt"]
    assert prompt == "<|system|>Be brief.<eos><|user|>Hello<eos><|assistant|>"
    dialogue = run("chat", "--max-tokens", "5", "--json", given="Hello\n\nAgain\n")
    first, second = map(json.loads, dialogue.stdout.splitlines())
    answer = first["outputs"][0]["text"]
    assert second["prompt"].startswith(first["prompt"] + answer + "<eos><|user|>Again<eos>")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a prompt"),
        (["x", "--max-tokens", "-1"], "max_tokens must be at least 1"),
        (["x", "--temperature", "-1"], "temperature"),
        (["x", "--n", "0"], "n must be 1 to 16384, not 0"),
        (["x", "--stop", ""], "stop string is empty"),
        (["x", "--num-blocks", "0"], "num_blocks must be at least 1"),
        (["x", "--block-size", "0"], "block_size"),
        (["x", "--max-model-len", "100000"], "made for 512"),
        (["x", "--backend", "tpu"], "backend"),
        (["x", "--isa", "sse"], "isa"),
        (["x", "--threads", "0"], "threads"),
        (["x", "--prompts-file", "missing.txt"], "missing.txt"),
        (["x" * 600], "shorten it"),
        ([""], "empty"),
        (["x" * 100, "--max-model-len", "50"], "shorten it"),
    ],
)
def test_mistakes(run, arguments: list[str], said: str) -> None:  # type: ignore[no-untyped-def]
    result = run("generate", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


def test_one_refused_prompt(run) -> None:  # type: ignore[no-untyped-def]
    result = run("generate", "", "fox", "--json")
    assert result.exit_code == 2
    assert "error: prompt 0: the prompt is empty" in result.stderr
    refused, fine = map(json.loads, result.stdout.splitlines())
    assert "empty" in refused["error"]
    assert fine["outputs"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["generate", "x", "--model", "nonsense"], "no model 'nonsense'"),
        (["generate", "x", "--no-such-option"], "No such option"),
        (["generate", "x", "--max-tokens", "many"], "Invalid value"),
        (["no-such-command"], "No such command"),
        (["generate", "x", "--model", "README.md"], "not a GGUF file"),
    ],
)
def test_mistakes_of_a_process(arguments: list[str], said: str) -> None:
    result = process(*arguments)
    assert result.returncode == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_models_and_version(smollm2_path: Path) -> None:
    listed = process("models", "--json")
    assert listed.returncode == 0
    found = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {"name": "smollm2", "path": str(smollm2_path), "bytes": 98362432} in found
    assert "smollm2" in process("models").stdout
    assert process("version").stdout.startswith("pyvosti 0.")


def test_models_without_any(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pyvosti.models.find_spec", lambda name: None)
    monkeypatch.setattr("pyvosti.models._cached_snapshots", list)
    result = CliRunner().invoke(app, ["models"])
    assert result.exit_code == 0
    assert SMOLLM2_COMMAND in result.stdout.replace("\n", " ")


def test_the_cpu_path_imports_no_torch() -> None:
    code = (
        "import sys, pyvosti\n"
        "assert 'numpy' not in sys.modules\n"
        "llm = pyvosti.LLM('smollm2', backend='cpu', kv_cache_tokens=64)\n"
        "llm.generate('Hi', pyvosti.SamplingParams(max_tokens=1))\n"
        "heavy = {'torch', 'triton', 'transformers', 'huggingface_hub', 'safetensors', 'gguf'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
