"""Kernels that must be rejected: shipped ones with a fault planted, most of them met elsewhere.

Each is an edit of a few lines. The analyzer has to find it unequal, and a pair of launches has to
show it: two that share one row, whose row comes out with different bits. `compiled` holds the
faults that only the compiler's output shows.
"""

from pyvosti.analyzer.corpus.attention import SPLIT_UP, WHOLE
from pyvosti.analyzer.corpus.fault import Fault
from pyvosti.analyzer.corpus.matmul import GATED, LINEAR
from pyvosti.analyzer.corpus.rows import COPIES, NORM, ROPE, SANDWICH
from pyvosti.analyzer.corpus.sampling import DRAWS, LOGITS

FAULTS: tuple[Fault, ...] = (
    *NORM, *SANDWICH, *COPIES, *ROPE, *LINEAR, *GATED, *WHOLE, *SPLIT_UP, *LOGITS, *DRAWS,
)  # fmt: skip
"""All faults above PTX."""

SEEDS = {
    "norm_halves_from_four_rows": 12, "embedding_last_token_of_the_row": 2,
    "embedding_unknown_token_of_the_row_before": 2, "rope_stretched_by_the_longest": 14,
    "sandwich_halves_from_four_rows": 24,
    "linear_one_row_without_tensor_cores": 7, "linear_rounds_parts_when_rows_are_many": 12,
    "linear_starts_at_its_tile": 39, "gate_clamped_by_the_tile": 5,
    "gate_divides_last_when_alone": 6, "attention_state_of_dead_blocks": 8,
    "attention_splits_from_the_chunk": 2, "attention_cascade": 12, "argmax_ties_by_parity": 30,
    "log_softmax_halves_when_alone": 39, "sample_seed_of_the_first_row": 5,
    "sample_noise_by_the_rows_place": 5,
}  # fmt: skip
"""Where the search for a pair of launches begins: 1 unless named. It goes on from 0."""
