"""`pyvosti plan`: the GPU kernels as data, without a GPU."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

pytest.importorskip("triton")

from typer.testing import CliRunner

from pyvosti.cli import app


def plan(*options: str) -> dict:
    result = CliRunner().invoke(app, ["plan", "--json", *options])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_schedule_depends_on_model_and_device_kind_only() -> None:
    one, many = plan("--rows", "1"), plan("--rows", "256")
    assert one["schedule"] == many["schedule"]
    assert one["schedule_id"] == many["schedule_id"] == plan()["schedule_id"]
    others = {plan(*o)["schedule_id"] for o in (("--arch", "80"), ("--strict-kernels",))}
    assert len(others | {one["schedule_id"]}) == 3


@pytest.mark.parametrize("sizes", [{}, {"max_model_len": 300}, {"num_blocks": 7}])
def test_one_certificate_serves_every_length(sizes: dict[str, int]) -> None:
    """The kernels that certificates ship for serve whatever a deployment's sequences may be."""
    from pyvosti.analyzer.shapes import SHAPES
    from pyvosti.kernel_plan import kernel_shape
    from pyvosti.limits import make_limits
    from pyvosti.loader import load_model
    from pyvosti.triton_kernels.launches import all_specs
    from pyvosti.triton_kernels.schedule import make_schedule

    config = load_model("smollm2").config
    shape = kernel_shape(config, make_limits(config, "cuda", **sizes))
    shipped = make_schedule(SHAPES["smollm2-135m-gguf"], 90)
    assert set(all_specs(make_schedule(shape, 90))) == set(all_specs(shipped))
    long = replace(config, context=2**20)
    for least, length in ((300, 131_072), (131_073, 131_073)):
        limits = make_limits(long, "cuda", max_model_len=least)
        assert kernel_shape(long, limits).max_model_len == length


def test_every_launch_of_a_step_is_listed() -> None:
    data = plan("--rows", "300")
    layers = data["schedule"]["shape"]["layers"]
    kernels = [launch["kernel"] for launch in data["launches"]]
    assert kernels.count("attention_whole") == kernels.count("gate_up") == layers
    assert kernels.count("linear") == 3 * layers + 1
    assert kernels[0] == "embedding"
    assert kernels[-3:] == ["gather_rows", "linear", "argmax"]


def test_strict_kernels_serve_any_row_count_alike() -> None:
    def specialisations(rows: int) -> list[str]:
        data = plan("--strict-kernels", "--rows", str(rows))
        return [launch["specialisation"] for launch in data["launches"]]

    assert specialisations(1) == specialisations(256)
    assert set(specialisations(1)) < set(specialisations(300))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--arch", "75"], "sm_80, sm_90 and sm_100, not sm_75"),
        (["--block-size", "24"], "the block size to be 16, 32, 64, 128 or 256: 24"),
        (["--max-model-len", "99999999"], "the model was made for"),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_sentence(options: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["plan", *options])
    assert result.exit_code == 2
    assert sentence in result.output
    assert "Traceback" not in result.output


def test_the_table_names_the_order_of_each_sum() -> None:
    result = CliRunner().invoke(app, ["plan"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert "3 chains, added in ascending order" in result.stdout
    assert "splits of 256 positions, 64 keys at a time, ascending" in result.stdout


@pytest.mark.parametrize(
    "wrong", [{"max_batched_tokens": 65537}, {"max_seqs": 16385}, {"max_model_len": 2**20 + 1}]
)
def test_sizes_beyond_the_certificates_premises_are_refused(wrong: dict[str, int]) -> None:
    from pyvosti.analyzer.contracts import MAX_POSITION, MAX_ROWS, MAX_SEATS
    from pyvosti.config import ModelConfig, same_window
    from pyvosti.errors import ConfigError
    from pyvosti.limits import make_limits

    config = ModelConfig(
        "llama", 1, 64, 4, 2, 16, 64, 100, 1e-5, 1e4, None, False, 2**24, same_window(None, 1)
    )
    (name, value), *_ = wrong.items()
    bounds = {"max_batched_tokens": MAX_ROWS, "max_seqs": MAX_SEATS, "max_model_len": MAX_POSITION}
    assert value == bounds[name] + 1
    largest = {"max_model_len": 4096} | {name: value - 1}
    make_limits(config, "cuda", **largest)
    with pytest.raises(ConfigError, match=f"{name} must be at most {value - 1} on a GPU"):
        make_limits(config, "cuda", **largest | wrong)
