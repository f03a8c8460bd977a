//! A new scheduler: every block and every seat free.
use super::*;
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
use std::collections::VecDeque;
use vstd::prelude::*;

verus! {

/// What can be wrong with the sizes of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Structural)]
pub enum ConfigError {
    /// At least one group of layers, at most 2^16, and a window for each.
    Groups,
    /// `block_size` is at least 1.
    BlockSize,
    /// `max_seqs` is at least 1.
    MaxSeqs,
    /// `max_batched_tokens` is at least 1.
    MaxBatchedTokens,
    /// `max_model_len` is at least 2 and below 2^31.
    MaxModelLen,
    /// `vocab_size` is at least 1.
    VocabSize,
    /// Each group has at least one block, and fewer than 2^32 - 1 slots.
    NumBlocks,
    /// `max_seqs` times the blocks of `max_model_len` is below 2^32.
    TableSize,
}

/// Sizes that an engine can have.
pub open spec fn sizes_ok(
    num_blocks: Seq<u32>,
    windows: Seq<u32>,
    block_size: u32,
    max_seqs: u32,
    max_batched_tokens: u32,
    max_model_len: u32,
    vocab_size: u32,
) -> bool {
    &&& 0 < num_blocks.len() <= 0x1_0000 && windows.len() == num_blocks.len()
    &&& block_size > 0 && max_seqs > 0 && max_batched_tokens > 0 && vocab_size > 0
    &&& 2 <= max_model_len < 0x8000_0000
    &&& max_seqs * ((max_model_len + block_size - 1) / block_size as int) <= u32::MAX
    &&& blocks_ok(num_blocks, block_size)
}

/// Each group has blocks, and its slots can be numbered.
pub open spec fn blocks_ok(num_blocks: Seq<u32>, block_size: u32) -> bool {
    forall|g: int|
        0 <= g < num_blocks.len() ==> (#[trigger] num_blocks[g]) > 0 && num_blocks[g] * block_size
            < 0xffff_ffff
}

fn product(a: u32, b: u32) -> (p: u64)
    ensures
        p == a * b,
{
    assert(0 <= a * b <= 0xffff_ffff * 0xffff_ffff) by (nonlinear_arith)
        requires
            a <= 0xffff_ffff,
            b <= 0xffff_ffff,
    ;
    a as u64 * b as u64
}

/// Blocks of the smallest group.
fn smallest(num_blocks: &Vec<u32>) -> (least: u32)
    requires
        num_blocks@.len() > 0,
    ensures
        forall|g: int| 0 <= g < num_blocks@.len() ==> least <= #[trigger] num_blocks@[g],
{
    let mut least = num_blocks[0];
    let mut g: usize = 1;
    while g < num_blocks.len()
        invariant
            g <= num_blocks@.len(),
            forall|h: int| 0 <= h < g ==> least <= #[trigger] num_blocks@[h],
        decreases num_blocks@.len() - g,
    {
        if num_blocks[g] < least {
            least = num_blocks[g];
        }
        g += 1;
    }
    least
}

/// A group of each size; `None` when a size is out of bounds.
fn make_groups(
    c: Config,
    num_blocks: &Vec<u32>,
    windows: &Vec<u32>,
    row_len: u32,
    prefix_cache: bool,
) -> (r: Option<Vec<LayerGroup>>)
    requires
        c.wf(),
        windows@.len() == num_blocks@.len(),
        c.max_seqs * row_len <= u32::MAX,
        row_len * c.block_size >= c.max_model_len,
        forall|g: int| 0 <= g < num_blocks@.len() ==> c.capacity <= #[trigger] num_blocks@[g],
    ensures
        r is Some <==> blocks_ok(num_blocks@, c.block_size),
        r matches Some(groups) ==> {
            &&& groups@.len() == num_blocks@.len()
            &&& forall|g: int|
                0 <= g < groups@.len() ==> group_ok(c, #[trigger] groups@[g])
                    && groups@[g].num_blocks() == num_blocks@[g] && groups@[g].window()
                    == windows@[g]
            &&& forall|g: int, x: int|
                #![trigger groups@[g].cached(x)]
                0 <= g < groups@.len() ==> groups@[g].cached(x) is None
            &&& forall|g: int, s: int|
                #![trigger groups@[g].seat(s)]
                0 <= g < groups@.len() && 0 <= s < c.max_seqs ==> groups@[g].seat(s).table.len()
                    == 0
        },
{
    let mut groups: Vec<LayerGroup> = Vec::with_capacity(num_blocks.len());
    let mut g: usize = 0;
    while g < num_blocks.len()
        invariant
            c.wf(),
            windows@.len() == num_blocks@.len(),
            c.max_seqs * row_len <= u32::MAX,
            row_len * c.block_size >= c.max_model_len,
            forall|h: int| 0 <= h < num_blocks@.len() ==> c.capacity <= #[trigger] num_blocks@[h],
            g <= num_blocks@.len(),
            blocks_ok(num_blocks@.take(g as int), c.block_size),
            groups@.len() == g,
            forall|h: int|
                0 <= h < g ==> group_ok(c, #[trigger] groups@[h]) && groups@[h].num_blocks()
                    == num_blocks@[h] && groups@[h].window() == windows@[h],
            forall|h: int, x: int|
                #![trigger groups@[h].cached(x)]
                0 <= h < g ==> groups@[h].cached(x) is None,
            forall|h: int, s: int|
                #![trigger groups@[h].seat(s)]
                0 <= h < g && 0 <= s < c.max_seqs ==> groups@[h].seat(s).table.len() == 0,
        decreases num_blocks@.len() - g,
    {
        let n = num_blocks[g];
        if n == 0 || product(n, c.block_size) >= 0xffff_ffff {
            return None;
        }
        let group = LayerGroup::new(n, c.block_size, c.max_seqs, row_len, windows[g], prefix_cache);
        groups.push(group);
        g += 1;
    }
    assert(num_blocks@.take(g as int) =~= num_blocks@);
    Some(groups)
}

/// All seats, the first on top.
fn all_seats(n: u32) -> (seats: Vec<u32>)
    ensures
        seats@.len() == n,
        seats@.no_duplicates(),
        forall|k: int| 0 <= k < n ==> #[trigger] seats@[k] == n - 1 - k,
{
    let mut seats: Vec<u32> = Vec::with_capacity(n as usize);
    let mut k = n;
    while k > 0
        invariant
            k <= n,
            seats@.len() == n - k,
            forall|m: int| 0 <= m < seats@.len() ==> #[trigger] seats@[m] == n - 1 - m,
        decreases k,
    {
        k -= 1;
        seats.push(k);
    }
    seats
}

impl Scheduler {
    /// Of each group of layers: `num_blocks`, and `windows`, how many positions, its own included,
    /// a row sees (0: all up to its own).
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        num_blocks: Vec<u32>,
        windows: Vec<u32>,
        block_size: u32,
        max_seqs: u32,
        max_batched_tokens: u32,
        max_model_len: u32,
        vocab_size: u32,
        prefix_cache: bool,
    ) -> (r: Result<Self, ConfigError>)
        ensures
            r is Ok <==> sizes_ok(
                num_blocks@,
                windows@,
                block_size,
                max_seqs,
                max_batched_tokens,
                max_model_len,
                vocab_size,
            ),
            r matches Ok(s) ==> {
                &&& s.inv() && s.settled()
                &&& s.draft == 0
                &&& s.config.block_size == block_size
                &&& s.config.max_seqs == max_seqs
                &&& s.config.max_batched_tokens == max_batched_tokens
                &&& s.config.max_model_len == max_model_len
                &&& s.config.vocab_size == vocab_size
                &&& s.groups@.len() == num_blocks@.len()
                &&& forall|g: int|
                    0 <= g < num_blocks@.len() ==> (#[trigger] s.groups@[g]).num_blocks()
                        == num_blocks@[g] && s.groups@[g].window() == windows@[g]
                &&& windows@.len() == num_blocks@.len()
                &&& linked(s, new_link(s))
                &&& s.waiting@.len() == 0 && s.running@.len() == 0 && s.plans@.len() == 0
            },
    {
        if num_blocks.len() == 0 || num_blocks.len() > 0x1_0000 || windows.len()
            != num_blocks.len() {
            return Err(ConfigError::Groups);
        }
        if block_size == 0 {
            return Err(ConfigError::BlockSize);
        }
        if max_seqs == 0 {
            return Err(ConfigError::MaxSeqs);
        }
        if max_batched_tokens == 0 {
            return Err(ConfigError::MaxBatchedTokens);
        }
        if max_model_len < 2 || max_model_len >= 0x8000_0000 {
            return Err(ConfigError::MaxModelLen);
        }
        if vocab_size == 0 {
            return Err(ConfigError::VocabSize);
        }
        let row_len = blocks_for(max_model_len, block_size);
        assert(row_len <= max_model_len) by (nonlinear_arith)
            requires
                row_len * block_size < max_model_len + block_size,
                max_model_len >= 1,
                block_size >= 1,
        ;
        proof {
            let (n, size) = (max_model_len as int, block_size as int);
            vstd::arithmetic::div_mod::lemma_fundamental_div_mod_converse(
                n + size - 1,
                size,
                row_len as int,
                n + size - 1 - row_len * size,
            );
        }
        if product(max_seqs, row_len as u32) > u32::MAX as u64 {
            return Err(ConfigError::TableSize);
        }
        let capacity = smallest(&num_blocks);
        let config = Config {
            block_size,
            max_seqs,
            max_batched_tokens,
            max_model_len,
            vocab_size,
            capacity,
        };
        let groups = match make_groups(
            config,
            &num_blocks,
            &windows,
            row_len as u32,
            prefix_cache,
        ) {
            Some(groups) => groups,
            None => {
                return Err(ConfigError::NumBlocks);
            },
        };
        let free_seats = all_seats(max_seqs);
        let s = Scheduler {
            config,
            groups,
            seqs: Vec::new(),
            free_entries: Vec::new(),
            free_seats,
            waiting: VecDeque::new(),
            running: Vec::new(),
            queue: VecDeque::new(),
            plans: VecDeque::new(),
            draft: 0,
            draft_rows: 0,
            next_plan: 0,
            preemptions: 0,
            hits: 0,
        };
        Ok(s)
    }
}

} // verus!
