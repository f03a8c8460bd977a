"""Schedule classes: the order of every reduction, fixed by the model's shape and the device kind.

A class fixes how a row's terms are added: the split of K, the splits of the keys, lanes and
warps along a reduced axis. Its members differ in what cannot change a bit (tile, pipelining)
and serve different row counts. Nothing here reads a batch: `make_schedule` runs once, at load.

The tiles come from `benchmarks/device_tune.py` on one H200; other devices get the same classes
with fewer stages where shared memory is smaller.
"""

from dataclasses import asdict, dataclass
from math import e, log2, sqrt
from typing import Any

SHARED_MEMORY = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}
"""Bytes of shared memory that one program may use, by NVIDIA architecture."""
ANY_ROWS = 2**31 - 1
"""The bound of a member that serves every row count."""
TRITON_TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


@dataclass(frozen=True)
class Shape:
    """What of a model and its deployment decides how kernels add."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    rms_eps: float
    qkv_bias: bool
    qk_norm: bool
    layer_groups: tuple[int, ...]
    windows: tuple[int, ...]
    """Per layer group: positions that a row sees, 0: all."""
    page: int
    max_model_len: int
    dtype: str = "bfloat16"
    layer_ropes: tuple[int, ...] = ()
    """Per layer: which rotary tables it uses; empty: the first, for all."""
    attention_scale: float | None = None
    """None: 1 / sqrt(head_dim)."""
    embed_scale: float = 1.0
    sandwich_norms: bool = False
    """What attention and feed-forward add is normalised, too; norms' weights are in f32."""
    gelu: bool = False
    """The feed-forward's gate is GELU, in its tanh form; else SiLU."""

    @property
    def max_pages(self) -> int:
        """Entries of a block table's row."""
        return -(-self.max_model_len // self.page)

    def rope(self, layer: int) -> int:
        """Which rotary tables a layer uses."""
        return self.layer_ropes[layer] if self.layer_ropes else 0


@dataclass(frozen=True)
class Tile:
    """One member of a matmul's class: serves steps of up to `rows` rows."""

    rows: int
    block_m: int
    block_n: int
    block_k: int
    group_n: int
    warps: int
    stages: int


@dataclass(frozen=True)
class LinearClass:
    """`out[n] = x[k] @ w[n, k].T`: K in `splits` equal chains, added in ascending order.

    With one chain the result is stored rounded; with more, the kernel that reads it adds them.
    """

    n: int
    k: int
    splits: int
    members: tuple[Tile, ...]

    def member(self, rows: int) -> Tile:
        """The first member that serves `rows` rows."""
        return next(tile for tile in self.members if rows <= tile.rows)


@dataclass(frozen=True)
class AttentionTile:
    """One member of the attention class. The warps divide the rows, never the keys."""

    rows: int
    block_m: int
    warps: int
    stages: int
    programs: int
    """Programs over which a tile's splits are dealt (`attention_splits` only)."""


@dataclass(frozen=True)
class AttentionClass:
    """Keys in splits of `split` absolute positions, `block_n` at a time."""

    split: int
    block_n: int
    scale: float
    decode: tuple[AttentionTile, ...]
    whole: AttentionTile

    def member(self, rows: int) -> AttentionTile:
        """The `attention_splits` member for a step of `rows` rows."""
        return next(tile for tile in self.decode if rows <= tile.rows)


@dataclass(frozen=True)
class Schedule:
    """All classes of one deployment, sealed at load."""

    shape: Shape
    arch: int
    qkv: LinearClass
    o: LinearClass
    gate_up: LinearClass
    down: LinearClass
    head: LinearClass
    attention: AttentionClass
    norm_warps: int
    rope_warps: int
    vocab_block: int
    vocab_warps: int
    precision: str

    def describe(self) -> dict[str, Any]:
        """The schedule as plain data, for printing, hashing and certificates."""
        return asdict(self)


def make_schedule(shape: Shape, arch: int, strict: bool = False) -> Schedule:
    """The classes for a model on an architecture (80, 90 or 100).

    `strict` keeps one member a class, whatever the row count. Raises ValueError for a shape that
    the kernels do not cover.
    """
    check_shape(shape)
    size = 4 if shape.dtype == "float32" else 2
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim

    def linear(n: int, k: int, splits: int | None = None, gated: bool = False) -> LinearClass:
        splits = split_count(n, k) if splits is None else splits
        members = linear_members(n, k, splits, gated, arch, size)
        # sm_100 would mix mma.sync and tcgen05, whose sums no probe has compared.
        return LinearClass(n, k, splits, pinned(members) if strict or arch == 100 else members)

    return Schedule(
        shape=shape,
        arch=arch,
        qkv=linear(q + 2 * kv, shape.hidden),
        o=linear(shape.hidden, q),
        gate_up=linear(shape.ffn, shape.hidden, 1, True),
        down=linear(shape.hidden, shape.ffn),
        head=linear(shape.vocab, shape.hidden, 1),
        # Elsewhere four warps divide the keys (sm_80) or a row lies in other lanes (sm_100).
        attention=attention_class(shape, arch, size, strict or arch != 90),
        norm_warps=8 if shape.hidden >= 2048 else 4,
        rope_warps=2,
        vocab_block=8192 if shape.vocab >= 8192 else 1024,
        vocab_warps=32 if shape.vocab >= 8192 else 4,
        precision="ieee" if shape.dtype == "float32" else "tf32",
    )


def check_shape(shape: Shape) -> None:
    """Raises ValueError, naming the bound, for a shape that the kernels do not cover."""
    if shape.dtype not in TRITON_TYPES:
        raise ValueError(f"the GPU kernels compute in {', '.join(TRITON_TYPES)}, not {shape.dtype}")
    for name, value in (("head_dim", shape.head_dim), ("the block size", shape.page)):
        if value & (value - 1) or not 16 <= value <= 256:
            raise ValueError(f"the GPU kernels need {name} to be 16, 32, 64, 128 or 256: {value}")
    for name, value in (("hidden", shape.hidden), ("ffn", shape.ffn)):
        if value % 16:
            raise ValueError(f"the GPU kernels need {name} to be a multiple of 16: {value}")
    if shape.heads // shape.kv_heads > 64:
        raise ValueError("the GPU kernels serve at most 64 query heads for one KV head")
    if shape.vocab >= 1 << 20:
        raise ValueError(f"the GPU sampler serves vocabularies below 2^20, not {shape.vocab}")


def split_count(n: int, k: int) -> int:
    """How many chains K is cut into, so that a narrow matmul fills the GPU: 1, 2, 3 or 4."""
    wanted = 4 if n < 1536 else 2 if n < 3072 or (n < 5632 and k >= 8192) else 1
    fitting = [s for s in (4, 3, 2, 1) if s <= wanted and k % (64 * s) == 0 and k // s >= 128]
    return fitting[0] if fitting else 1


def linear_members(
    n: int, k: int, splits: int, gated: bool, arch: int, size: int
) -> tuple[Tile, ...]:
    """Members by row count; `size` is the bytes of an element."""
    columns = n * splits  # what the grid has to share out
    wide, huge = columns >= 5632, columns >= 65536
    few = 64 if wide else 32
    if gated:
        rows16 = (16, 16, 32 if n >= 11264 else 16, 256, 4, 3)
        rows64 = (64, 64, 64 if n >= 11264 else 32, 64, 4, 3)
        rows128 = rows256 = (256, 128, 64, 64, 4, 3)
        many = (ANY_ROWS, 128, 64, 64, 4, 3)
    else:
        rows16 = (16, 16, few, 128 if huge else 256, 4, 4)
        rows64 = (64, 64, 128 if huge else few, 128, 4, 4 if huge else 5)
        rows128 = (128, 128, 128, 64, 8, 3) if huge else (128, 128 if wide else 64, 64, 128, 4, 4)
        rows256 = (256, 128, 128, 64, 8, 4) if wide else (256, 128, 64, 128, 4, 4)
        if huge and size == 2:
            rows256 = (256, 128, 256, 64, 8, 4)
        many = (ANY_ROWS, 128, 256, 64, 8, 4) if size == 2 else (ANY_ROWS, 64, 64, 64, 4, 3)
    return tuple(
        fitted_tile(tile, n, k // splits, 2 if gated else 1, arch, size)
        for tile in dict.fromkeys((rows16, rows64, rows128, rows256, many))
    )


def fitted_tile(
    tile: tuple[int, int, int, int, int, int], n: int, k: int, products: int, arch: int, size: int
) -> Tile:
    """Shrinks BLOCK_K until it divides K, and the stages until they fit in shared memory."""
    rows, block_m, block_n, block_k, warps, stages = tile
    while k % block_k:
        block_k //= 2
    stage = (block_m + products * block_n) * block_k * size
    while stages > 1 and stages * stage > SHARED_MEMORY[arch]:
        stages -= 1
    columns = -(-n // block_n)
    group = columns if rows <= 64 else min(8, columns)
    return Tile(rows, block_m, block_n, block_k, group, warps, stages)


def pinned(members: tuple[Tile, ...]) -> tuple[Tile, ...]:
    """The second member alone, for every row count."""
    tile = asdict(members[1]) | {"rows": ANY_ROWS}
    return (Tile(**tile),)


def attention_class(shape: Shape, arch: int, size: int, strict: bool) -> AttentionClass:
    """Splits of 256 keys; a decode member for few rows and one for many, and the whole walk."""
    group = shape.heads // shape.kv_heads
    block_n = min(64, shape.page)
    split = max(256, shape.page)
    small = 16 if group <= 16 else 32 if group <= 32 else 64
    tile_bytes = 2 * block_n * shape.head_dim * size

    def stages(wanted: int, block_m: int) -> int:
        room = SHARED_MEMORY[arch] - 2 * block_m * shape.head_dim * size
        return max(1, min(wanted, room // tile_bytes))

    decode: tuple[AttentionTile, ...] = (
        AttentionTile(8, 64, 4, stages(3, 64), 32),
        AttentionTile(32, small, 1, stages(2, small), 16),
        AttentionTile(128, small, 1, stages(2, small), 8),
        AttentionTile(ANY_ROWS, small, 1, stages(2, small), 2),
    )
    if strict:
        decode = (AttentionTile(ANY_ROWS, 64, 4, stages(3, 64), 8),)
    return AttentionClass(
        split=split,
        block_n=block_n,
        scale=log2(e) * (shape.attention_scale or 1 / sqrt(shape.head_dim)),
        decode=decode,
        whole=AttentionTile(ANY_ROWS, 64, 4, stages(3, 64), 1),
    )
