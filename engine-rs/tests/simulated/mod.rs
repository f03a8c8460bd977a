//! The engine with a device that is simulated, and a bookkeeper that knows from outside what the
//! engine must know.
pub mod blocks;
pub mod calls;
pub mod device;
pub mod model;
pub mod plans;
pub mod sequence;
pub mod world;

/// What a check found wrong.
pub type Check = Result<(), String>;

/// Returns from the function with an error unless the condition holds.
#[macro_export]
macro_rules! check {
    ($holds:expr, $($message:tt)*) => {
        if !$holds {
            return Err(format!($($message)*));
        }
    };
}

/// xorshift64*: the same numbers on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(mix(seed ^ 0x5eed) | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A bijection of 64-bit integers whose bits look random (splitmix64's finaliser).
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What a position, or a key, contributes to a hash.
pub fn at(position: usize) -> u64 {
    (position as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
