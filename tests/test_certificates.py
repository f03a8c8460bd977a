"""No certificate, no launch: what the runtime admits, and what it says when it does not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("triton")

from pyvosti import certified
from pyvosti.analyzer import certificate as store
from pyvosti.analyzer.lowering import family_of, lowering_of
from pyvosti.errors import ConfigError
from pyvosti.outputs import RequestOutput
from pyvosti.triton_kernels import compile as kernels
from pyvosti.triton_kernels.compile import Spec, compiled, fingerprint
from pyvosti.triton_kernels.launches import all_specs
from pyvosti.triton_kernels.schedule import Schedule, Shape, make_schedule

SMALL = Shape(
    layers=1, hidden=64, heads=4, kv_heads=2, head_dim=16, ffn=128, vocab=100, rms_eps=1e-5,
    qkv_bias=False, qk_norm=False, layer_groups=(0,), windows=(0,), page=16, max_model_len=256,
)  # fmt: skip


MAKE = certified._make


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    return make_schedule(SMALL, 90)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty store, nothing admitted, nothing allowed, and no way to make certificates."""
    monkeypatch.setattr(certified, "_admitted", set())
    monkeypatch.setattr(certified, "_uncertified_allowed", False)
    monkeypatch.setattr(certified, "_stores", lambda: [tmp_path])
    monkeypatch.setattr(certified, "_make", lambda schedule, missing: None)
    return tmp_path


def pretend(spec: Spec, arch: int) -> store.Certificate:
    """A certificate that nothing was proved for: what the comparison needs, and no more."""
    described = lowering_of(compiled(spec, arch).asm).describe()
    return {
        "name": store.entry_name(spec, arch), "kernel": spec.kernel, "verdict": "proved",
        "sources": store.sources_of(spec), "artifacts": fingerprint(spec, arch),
        "versions": {"analyzer": store.analyzer_digest()}, "lowering": described, "equal_to": {},
    }  # fmt: skip


@pytest.fixture(scope="module")
def certificates(schedule: Schedule) -> dict[Spec, store.Certificate]:
    made = {spec: pretend(spec, 90) for spec in all_specs(schedule)}
    for spec, one in made.items():
        one["equal_to"] = {s.key(): {} for s in made if family_of(s) == family_of(spec)}
    return made


def test_certified_kernels_are_admitted_and_no_others(schedule, certificates, fresh) -> None:
    store.write_store(fresh, certificates.values())
    assert certified.require(schedule) == ()
    for spec in certificates:
        certified.check_admitted(spec, 90)
        with pytest.raises(ConfigError, match="has no certificate on sm_80"):
            certified.check_admitted(spec, 80)
    with pytest.raises(ConfigError, match=r"linear .* has no certificate"):
        other = next(spec for spec in certificates if spec.kernel == "linear")
        certified.check_admitted(replace(other, num_warps=16), 90)


def test_a_kernel_edited_by_one_sign_is_refused(
    schedule, certificates, fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel stays row-local: it is refused for being another one, not for being wrong."""
    from pyvosti.analyzer.patched import imported, kernel_file

    store.write_store(fresh, certificates.values())
    text = kernel_file("rms_norm").read_text()
    edited = text.replace("rsqrt(mean + EPS)", "rsqrt(mean - EPS)")
    assert edited != text
    monkeypatch.setitem(kernels.KERNELS, "rms_norm", imported(edited, "rms_norm")["rms_norm"])
    compiled.cache_clear()
    try:
        with pytest.raises(ConfigError) as refused:
            certified.require(schedule)
    finally:
        compiled.cache_clear()
    assert "rms_norm" in str(refused.value)
    assert "ttir, ttgir, ptx, cubin changed since it was certified" in str(refused.value)
    assert not certified._admitted


@pytest.mark.parametrize(
    "change,sentence",
    [
        (lambda one: one["artifacts"].update(ptx="0" * 64), "ptx changed since it was certified"),
        (lambda one: one["sources"].update({"linear.py": "0"}), "source linear.py changed"),
        (lambda one: one.update(verdict="unequal"), "it was found unequal"),
        (lambda one: one["versions"].update(analyzer="x"), "another analyzer made its certificate"),
    ],
)
def test_what_does_not_match_is_named(schedule, certificates, fresh, change, sentence) -> None:
    spec = next(spec for spec in certificates if spec.kernel == "linear")
    entries = json.loads(json.dumps(list(certificates.values())))
    change(next(one for one in entries if one["name"] == store.entry_name(spec, 90)))
    store.write_store(fresh, entries)
    with pytest.raises(ConfigError, match=f"linear {spec.key()}.*{sentence}"):
        certified.require(schedule)


def test_a_missing_certificate_is_named(schedule, certificates, fresh) -> None:
    missing = next(spec for spec in certificates if spec.kernel == "gate_up")
    store.write_store(fresh, [one for spec, one in certificates.items() if spec != missing])
    with pytest.raises(ConfigError, match=f"gate_up {missing.key()} has no certificate"):
        certified.require(schedule)


def test_a_new_model_is_certified_at_load_from_the_kernels_that_shipped(
    schedule, certificates, fresh, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    pytest.importorskip("z3")
    from pyvosti.analyzer import certify

    shipped, cache = fresh / "shipped", fresh / "cache"
    other = [one | {"name": f"other {one['kernel']}"} for one in certificates.values()]
    store.write_store(shipped, other)
    monkeypatch.setattr(certified, "_make", MAKE)
    monkeypatch.setattr(certified, "_stores", lambda: [shipped, cache])
    monkeypatch.setattr(store, "shipped_store", lambda: shipped)
    monkeypatch.setattr(store, "cache_store", lambda: cache)

    def prove(specs, arch, folder):
        store.write_store(folder, [certificates[spec] for spec in specs])
        yield from specs

    monkeypatch.setattr(certify, "certify", prove)
    assert certified.require(schedule) == ()
    assert "certifying" in capsys.readouterr().err
    assert set(store.read_store(cache)) == {one["name"] for one in certificates.values()}


def test_a_changed_kernel_is_not_certified_on_the_way(
    schedule, certificates, fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("z3")
    other = json.loads(json.dumps(list(certificates.values())))
    for one in other:
        one["name"] = f"other {one['kernel']}"
        one["sources"] = {name: "0" for name in one["sources"]}
    store.write_store(fresh, other)
    monkeypatch.setattr(certified, "_make", MAKE)
    monkeypatch.setattr(store, "shipped_store", lambda: fresh)
    with pytest.raises(ConfigError, match="is not the one that was shipped, and it has no cert"):
        certified.require(schedule)


def test_members_that_were_not_proved_equal_are_refused(schedule, certificates, fresh) -> None:
    entries = json.loads(json.dumps(list(certificates.values())))
    for one in entries:
        one["equal_to"] = {}
    store.write_store(fresh, entries)
    with pytest.raises(ConfigError, match="was not proved equal to"):
        certified.require(schedule)


def test_attention_in_one_kernel_and_in_two_are_equal_through_the_kernel_that_combines(
    schedule, certificates, fresh
) -> None:
    entries = json.loads(json.dumps(list(certificates.values())))
    whole = next(one for one in entries if one["kernel"] == "attention_whole")
    splits = next(spec for spec in certificates if spec.kernel == "attention_splits")
    combine = next(spec for spec in certificates if spec.kernel == "attention_combine")
    for one in entries:
        one["equal_to"].pop(whole["name"].split("-")[0], None)
    whole["equal_to"] = {splits.key(): {"combine": combine.key()}}
    store.write_store(fresh, entries)
    assert certified.require(schedule) == ()
    whole["equal_to"] = {splits.key(): {"combine": "another"}}
    store.write_store(fresh, entries)
    with pytest.raises(ConfigError, match=r"attention_whole .* was not proved equal to"):
        certified.require(schedule)


def test_members_that_reduce_in_different_trees_are_refused(schedule, certificates, fresh) -> None:
    entries = json.loads(json.dumps(list(certificates.values())))
    one = next(entry for entry in entries if entry["kernel"] == "attention_splits")
    one["lowering"]["reduces"] = [[c, n, "w" * len(t)] for c, n, t in one["lowering"]["reduces"]]
    store.write_store(fresh, entries)
    with pytest.raises(ConfigError, match=r"attention_splits.*reduce in different trees"):
        certified.require(schedule)


def test_uncertified_kernels_are_loud_and_marked(schedule, capsys) -> None:
    certified.allow_uncertified("a test")
    against = certified.require(schedule)
    assert len(against) == len(all_specs(schedule))
    assert capsys.readouterr().err.count("UNCERTIFIED:") == len(against) + 1
    certified.check_admitted(all_specs(schedule)[0], 90)
    assert RequestOutput(0, "x", [], uncertified=True).to_dict()["uncertified"] is True


def test_a_damaged_store_is_named(schedule, fresh) -> None:
    (fresh / "linear.json").write_text("{")
    with pytest.raises(ConfigError, match=r"linear\.json cannot be read"):
        certified.require(schedule)
