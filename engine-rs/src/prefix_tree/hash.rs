//! The hash that picks a bucket. It decides speed alone: equality decides what is found.
use vstd::prelude::*;
#[cfg(verus_only)]
use vstd::wrapping::u64_specs;

verus! {

/// 2^64 divided by the golden ratio: odd, its bits look random.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

pub open spec fn mix_spec(h: u64, x: u64) -> u64 {
    u64_specs::wrapping_mul(h ^ x, 0x9e37_79b9_7f4a_7c15)
}

/// Folds `x` into the hash `h`.
#[inline(always)]
pub fn mix(h: u64, x: u64) -> (r: u64)
    ensures
        r == mix_spec(h, x),
{
    (h ^ x).wrapping_mul(MULTIPLIER)
}

/// The hash of a token sequence, from a seed.
pub open spec fn fold(seed: u64, toks: Seq<u32>) -> u64
    decreases toks.len(),
{
    if toks.len() == 0 {
        seed
    } else {
        mix_spec(fold(seed, toks.drop_last()), toks.last() as u64)
    }
}

/// The bucket of a key: the upper half of its hash, which all tokens reach.
pub open spec fn bucket_of(mask: u64, parent: u64, salt: u64, toks: Seq<u32>) -> u64 {
    (fold(mix_spec(mix_spec(0, parent), salt), toks) >> 32) & mask
}

/// [`bucket_of`] of `tokens[start..start + size]`.
pub fn bucket(mask: u64, parent: u64, salt: u64, tokens: &[u32], start: usize, size: usize) -> (r:
    u64)
    requires
        start + size <= tokens@.len(),
    ensures
        r == bucket_of(mask, parent, salt, tokens@.subrange(start as int, start + size)),
        r <= mask,
{
    let seed = mix(mix(0, parent), salt);
    let mut h = seed;
    let ghost toks = tokens@.subrange(start as int, start + size);
    proof {
        assert(tokens.len() <= usize::MAX);
    }
    let mut o: usize = 0;
    while o < size
        invariant
            o <= size,
            start + size <= tokens@.len() <= usize::MAX,
            toks == tokens@.subrange(start as int, start + size),
            h == fold(seed, toks.take(o as int)),
        decreases size - o,
    {
        proof {
            assert(toks.take(o + 1).drop_last() =~= toks.take(o as int));
            assert(toks.take(o + 1).last() == tokens@[start + o]);
        }
        h = mix(h, tokens[start + o] as u64);
        o += 1;
    }
    proof {
        assert(toks.take(size as int) =~= toks);
        assert((h >> 32) & mask <= mask) by (bit_vector);
    }
    (h >> 32) & mask
}

} // verus!
