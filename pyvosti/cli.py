"""The command line: `pyvosti generate | chat | check | certify | models | plan | version`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyvosti import terminal
from pyvosti.certify import certify
from pyvosti.errors import ConfigError, PyvostiError, RequestError

if TYPE_CHECKING:
    from pyvosti.llm import LLM
    from pyvosti.params import SamplingParams

app = typer.Typer(
    help="Deterministic LLM inference with a machine-checked proof.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Model = Annotated[str, typer.Option("--model", "-m", help="Folder, GGUF file, Hub id, or smollm2.")]
MaxTokens = Annotated[int, typer.Option(help="Most tokens to generate.")]
Temperature = Annotated[float, typer.Option(help="0: the most likely token.")]
TopK = Annotated[int, typer.Option(help="Keep the k most likely tokens; 0: all.")]
TopP = Annotated[float, typer.Option(help="Keep tokens up to this probability.")]
MinP = Annotated[float, typer.Option(help="Drop tokens below this share of the likeliest.")]
Seed = Annotated[int | None, typer.Option(help="0 to 2**64-1; drawn and reported if missing.")]
Samples = Annotated[int, typer.Option("--n", "-n", help="Samples per prompt.")]
Stop = Annotated[list[str] | None, typer.Option(help="End before this text (repeatable).")]
Backend = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Threads = Annotated[int | None, typer.Option(help="CPU threads; default: all.")]
Isa = Annotated[str | None, typer.Option(help="Build of the CPU kernels; default: the fastest.")]
NumBlocks = Annotated[int | None, typer.Option(help="Blocks in the KV pool.")]
KvTokens = Annotated[int | None, typer.Option(help="Tokens in the KV pool, instead of blocks.")]
BlockSize = Annotated[int | None, typer.Option(help="Tokens of a KV block: 16; GPU: 64.")]
MaxSeqs = Annotated[int | None, typer.Option(help="Most sequences in a step: 128; GPU: 256.")]
MaxBatched = Annotated[int | None, typer.Option(help="Most tokens in a step: 256; GPU: 2048.")]
MaxLen = Annotated[int | None, typer.Option(help="Most tokens of a sequence.")]
PrefixCache = Annotated[bool, typer.Option(help="Reuse the KV of equal prefixes.")]
GpuMemory = Annotated[float, typer.Option(help="Share of free GPU memory for the KV pool.")]
Uncertified = Annotated[bool, typer.Option(help="Run GPU kernels without a certificate.")]
StrictKernels = Annotated[bool, typer.Option(help="One GPU kernel an operation, for any batch.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object per request.")]
Report = Annotated[
    bool,
    typer.Option("--deterministic-report", help="Print the digest of each request's logits."),
]


@app.command()
def generate(
    prompts: Annotated[list[str] | None, typer.Argument(help="Prompts; - reads one.")] = None,
    model: Model = "smollm2",
    prompts_file: Annotated[Path | None, typer.Option(help="One prompt per line.")] = None,
    max_tokens: MaxTokens = 64,
    temperature: Temperature = 0.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    min_p: MinP = 0.0,
    seed: Seed = None,
    n: Samples = 1,
    stop: Stop = None,
    ignore_eos: Annotated[bool, typer.Option(help="Go on after the model's end.")] = False,
    presence_penalty: Annotated[float, typer.Option(help="-2 to 2.")] = 0.0,
    frequency_penalty: Annotated[float, typer.Option(help="-2 to 2.")] = 0.0,
    repetition_penalty: Annotated[float, typer.Option(help="1: none.")] = 1.0,
    logprobs: Annotated[int | None, typer.Option(help="Likeliest tokens to report.")] = None,
    backend: Backend = "auto",
    threads: Threads = None,
    isa: Isa = None,
    num_blocks: NumBlocks = None,
    kv_cache_tokens: KvTokens = None,
    block_size: BlockSize = None,
    max_seqs: MaxSeqs = None,
    max_batched_tokens: MaxBatched = None,
    max_model_len: MaxLen = None,
    prefix_cache: PrefixCache = True,
    gpu_memory_utilization: GpuMemory = 0.9,
    strict_kernels: StrictKernels = False,
    allow_uncertified: Uncertified = False,
    json: Json = False,
    deterministic_report: Report = False,
) -> None:
    """Completes prompts; a single one is printed as it comes."""
    with _one_sentence():
        params = _params(
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            seed=seed,
            n=n,
            stop=stop,
            ignore_eos=ignore_eos,
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
            repetition_penalty=repetition_penalty,
            logprobs=logprobs,
        )
        texts = _read_prompts(prompts or [], prompts_file)
        llm = _load(
            model,
            backend=backend,
            threads=threads,
            isa=isa,
            num_blocks=num_blocks,
            kv_cache_tokens=kv_cache_tokens,
            block_size=block_size,
            max_seqs=max_seqs,
            max_batched_tokens=max_batched_tokens,
            max_model_len=max_model_len,
            prefix_cache=prefix_cache,
            gpu_memory_utilization=gpu_memory_utilization,
            strict_kernels=strict_kernels,
            allow_uncertified=allow_uncertified,
            record_digests=deterministic_report,
        )
        chunks = llm.generate_stream(texts, params)
        one = len(texts) == 1 and n == 1 and not json
        outputs = terminal.live(chunks) if one else terminal.progress(chunks, len(texts) * n)
        if json:
            terminal.print_json(outputs)
        elif not one:
            terminal.print_outputs(outputs)
        if deterministic_report and not json:
            terminal.print_report(outputs)
        _exit_if_refused(terminal.print_errors(outputs))


@app.command()
def chat(
    message: Annotated[str | None, typer.Argument(help="One question; none: a dialogue.")] = None,
    model: Model = "smollm2",
    system: Annotated[str | None, typer.Option(help="System message.")] = None,
    max_tokens: MaxTokens = 512,
    temperature: Temperature = 0.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    min_p: MinP = 0.0,
    seed: Seed = None,
    stop: Stop = None,
    backend: Backend = "auto",
    threads: Threads = None,
    isa: Isa = None,
    num_blocks: NumBlocks = None,
    kv_cache_tokens: KvTokens = None,
    max_model_len: MaxLen = None,
    gpu_memory_utilization: GpuMemory = 0.9,
    strict_kernels: StrictKernels = False,
    allow_uncertified: Uncertified = False,
    json: Json = False,
    deterministic_report: Report = False,
) -> None:
    """Talks to a model through its chat template; answers are printed as they come."""
    with _one_sentence():
        params = _params(
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            seed=seed,
            stop=stop,
        )
        llm = _load(
            model,
            backend=backend,
            threads=threads,
            isa=isa,
            num_blocks=num_blocks,
            kv_cache_tokens=kv_cache_tokens,
            max_model_len=max_model_len,
            gpu_memory_utilization=gpu_memory_utilization,
            strict_kernels=strict_kernels,
            allow_uncertified=allow_uncertified,
            record_digests=deterministic_report,
        )
        messages: list[Any] = [{"role": "system", "content": system}] if system else []
        for question in [message] if message is not None else terminal.questions():
            messages.append({"role": "user", "content": question})
            chunks = llm.chat_stream(messages, params)
            outputs = terminal.progress(chunks, 1) if json else terminal.live(chunks)
            if json:
                terminal.print_json(outputs)
            elif deterministic_report:
                terminal.print_report(outputs)
            messages.append({"role": "assistant", "content": outputs[0].outputs[0].text})


@app.command()
def models(json: Json = False) -> None:
    """Lists the models that can be loaded without a download."""
    from pyvosti.models import SMOLLM2_COMMAND, find_models

    with _one_sentence():
        terminal.print_models(find_models(), json, f"for a small one, run: {SMOLLM2_COMMAND}")


@app.command()
def plan(
    model: Model = "smollm2",
    arch: Annotated[int, typer.Option(help="NVIDIA architecture: 80, 90 or 100.")] = 90,
    rows: Annotated[int, typer.Option(min=1, help="Rows of the step to list.")] = 1,
    block_size: BlockSize = None,
    max_model_len: MaxLen = None,
    strict_kernels: StrictKernels = False,
    json: Json = False,
) -> None:
    """Prints which GPU kernels serve a model, and in which order they add. Needs no GPU."""
    from pyvosti.kernel_plan import kernel_schedule
    from pyvosti.limits import make_limits
    from pyvosti.loader import load_model

    with _one_sentence():
        config = load_model(model).config
        limits = make_limits(config, "cuda", block_size=block_size, max_model_len=max_model_len)
        schedule = kernel_schedule(config, limits, arch, strict_kernels)
        terminal.print_plan(schedule, rows, json)


@app.command()
def check(
    model: Model = "smollm2",
    backend: Backend = "auto",
    full: Annotated[bool, typer.Option("--full/--quick", help="256 outputs or 16.")] = False,
    cells: Annotated[list[str] | None, typer.Option(help="Only these; * as in a shell.")] = None,
    resume: Annotated[Path | None, typer.Option(help="File to go on from and to save to.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Begin no cell after this time.")] = None,
    threads: Threads = None,
    engine: Annotated[str, typer.Option(help="pyvosti or transformers.")] = "pyvosti",
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16, for transformers.")] = "float32",
    server: Annotated[str | None, typer.Option(help="URL of an OpenAI-compatible server.")] = None,
    controls: Annotated[bool, typer.Option(help="Run the planted faults too.")] = True,
    allow_uncertified: Uncertified = False,
    json: Json = False,
    report: Annotated[Path | None, typer.Option(help="Write the report here, as JSON.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write it here, as a page.")] = None,
) -> None:
    """Runs requests in every company and compares their logits, bit for bit."""
    from pyvosti.check.command import Settings, run
    from pyvosti.runner import default_backend

    with _one_sentence():
        settings = Settings(
            model=model,
            backend=default_backend() if backend == "auto" else backend,
            extent="full" if full else "quick",
            cells=[name for entry in cells or [] for name in entry.split(",")],
            resume=resume,
            minutes=minutes,
            threads=threads,
            engine=engine,
            server=server,
            dtype=dtype,
            controls=controls,
            allow_uncertified=allow_uncertified,
            json=json,
            report=report,
            html=html,
        )
        code = run(settings)
    raise typer.Exit(code)


app.command()(certify)


@app.command()
def version() -> None:
    """Prints the version."""
    from pyvosti._core import __version__

    typer.echo(f"pyvosti {__version__}")


def main() -> None:
    """Entry point of the `pyvosti` command."""
    app()


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Turns what is wrong with the input, or missing memory, into one sentence and exit code 2."""
    try:
        yield
    except PyvostiError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    except MemoryError as error:
        typer.echo(f"error: {str(error) or 'not enough memory'}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(130) from None


def _params(**values: Any) -> SamplingParams:
    from pyvosti.params import SamplingParams

    return SamplingParams(**values)


def _load(model: str, **options: Any) -> LLM:
    from pyvosti.llm import LLM

    with terminal.status(f"Loading {model} …"):
        return LLM(model, **options)


def _read_prompts(prompts: list[str], file: Path | None) -> list[str]:
    try:
        texts = [sys.stdin.read() if prompt == "-" else prompt for prompt in prompts]
    except UnicodeDecodeError:
        raise RequestError("the standard input is not UTF-8 text") from None
    if file is not None:
        try:
            texts += file.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise RequestError(f"{file} is not UTF-8 text") from None
    if not texts:
        raise RequestError("give a prompt, - to read one, or --prompts-file")
    return texts


def _exit_if_refused(refused: int) -> None:
    if refused:
        raise typer.Exit(2)
