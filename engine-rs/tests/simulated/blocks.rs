//! The blocks of one layer group: who holds which, and what the full ones hold.
use super::Check;
use crate::check;

/// What a full block holds: KV of the prefix with this hash, under this salt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sealed {
    pub salt: u64,
    pub prefix: u64,
    /// Resets of the cache before it was committed.
    pub resets: usize,
}

pub struct Group {
    /// The blocks of each seat, in the order of positions.
    pub rows: Vec<Vec<u32>>,
    /// How many seats hold each block.
    pub holders: Vec<u32>,
    pub sealed: Vec<Option<Sealed>>,
}

impl Group {
    pub fn new(blocks: u32, seats: usize) -> Self {
        Group {
            rows: vec![Vec::new(); seats],
            holders: vec![0; blocks as usize],
            sealed: vec![None; blocks as usize],
        }
    }

    pub fn hold(&mut self, seat: usize, block: u32) {
        self.rows[seat].push(block);
        self.holders[block as usize] += 1;
    }

    /// A block that nobody holds, to be written by the sequence at the seat.
    pub fn take(&mut self, seat: usize, block: u32) -> Check {
        let free = self.holders.get(block as usize) == Some(&0);
        check!(
            free,
            "block {block} is held by another sequence, or is none"
        );
        self.sealed[block as usize] = None;
        self.hold(seat, block);
        Ok(())
    }

    pub fn release(&mut self, seat: usize) {
        for block in self.rows[seat].drain(..) {
            self.holders[block as usize] -= 1;
        }
    }

    /// Blocks that some sequence holds.
    pub fn held(&self) -> usize {
        self.holders.iter().filter(|holders| **holders > 0).count()
    }
}
