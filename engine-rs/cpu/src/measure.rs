//! What the machine can do, for benchmarks: multiplications each followed by an addition, and
//! bytes read from memory.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::isa::{kernel, Isa};
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::lanes::{Block, Lanes, Portable, LANES};
use crate::memory::{zeroed, Error};
use crate::pool::Pool;

/// Independent chains: enough to hide the latency, few enough for the registers.
const CHAINS: usize = 12;
/// Long enough that the threads' start does not count.
const STEPS: usize = 1 << 26;
/// About as long as a benchmark's turn, which is held against it: neither may live on a short burst
/// of the clock, or on the moments in which the machine is left alone.
const TURN: Duration = Duration::from_millis(400);
/// Bytes that each thread reads: far more than a cache holds.
const READ: usize = 512 << 20;

kernel! {
    fn burn(factor: f32) -> f32 =
        burnt::<Portable, 3>, burnt::<Avx2, 6>, burnt::<Avx512, CHAINS>;
}

kernel! {
    fn read_all(blocks: &[Block]) -> f32 =
        total::<Portable>, total::<Avx2>, total::<Avx512>;
}

#[inline(always)]
fn burnt<L: Lanes, const N: usize>(factor: f32) -> f32 {
    let (factor, mut products) = (L::splat(factor), [L::splat(factor); N]);
    let mut sums = [L::splat(0.0); N];
    for _ in 0..STEPS / N {
        for i in 0..N {
            products[i] = products[i].mul(factor);
            sums[i] = sums[i].add(products[i]);
        }
    }
    let mut all = L::splat(0.0);
    for sum in sums {
        all = all.add(sum);
    }
    all.sum()
}

#[inline(always)]
fn total<L: Lanes>(blocks: &[Block]) -> f32 {
    let mut sums = [L::splat(0.0); 8];
    for blocks in blocks.chunks_exact(8) {
        for i in 0..8 {
            sums[i] = sums[i].add(L::load(&blocks[i].0));
        }
    }
    let mut all = L::splat(0.0);
    for sum in sums {
        all = all.add(sum);
    }
    all.sum()
}

/// Multiply-then-adds a second of all threads, and bytes read a second: the best of `rounds`, each
/// as long as `TURN`.
pub fn measure(isa: Isa, threads: usize, rounds: usize) -> Result<(f64, f64), Error> {
    let mut pool = Pool::new(threads, 0)?;
    let memory = zeroed(threads * (READ / 64))?;
    let chains = [3, 6, CHAINS][Isa::available().iter().position(|&i| i == isa).unwrap_or(0)];
    let done = (STEPS / chains * chains * LANES * threads) as f64;
    let (mut macs, mut bytes) = (0.0f64, 0.0f64);
    for _ in 0..rounds {
        let times = times_a_second(|| {
            pool.run(threads, &|_, _| {
                black_box(burn(isa, black_box(1.0 - f32::EPSILON / 2.0)));
            });
        });
        macs = macs.max(done * times);
        // Each piece has its turn on whichever thread is free.
        let piece = memory.len() / (threads * 16);
        let times = times_a_second(|| {
            pool.run(threads * 16, &|_, task| {
                black_box(read_all(isa, &memory[task * piece..][..piece]));
            });
        });
        bytes = bytes.max((memory.len() * 64) as f64 * times);
    }
    Ok((macs, bytes))
}

fn times_a_second(mut work: impl FnMut()) -> f64 {
    let (start, mut times) = (Instant::now(), 0.0);
    while start.elapsed() < TURN {
        work();
        times += 1.0;
    }
    times / start.elapsed().as_secs_f64()
}
