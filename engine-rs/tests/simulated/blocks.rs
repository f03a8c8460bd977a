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
    /// How many of these each seat has given back: no later row sees them.
    pub freed: Vec<usize>,
    /// How many seats hold each block.
    pub holders: Vec<u32>,
    pub sealed: Vec<Option<Sealed>>,
}

impl Group {
    pub fn new(blocks: u32, seats: usize) -> Self {
        Group {
            rows: vec![Vec::new(); seats],
            freed: vec![0; seats],
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
        for block in self.rows[seat].drain(..).skip(self.freed[seat]) {
            self.holders[block as usize] -= 1;
        }
        self.freed[seat] = 0;
    }

    /// The seat gives back its first blocks, up to `upto`; those that nobody holds any more.
    pub fn slide(&mut self, seat: usize, upto: usize) -> Vec<u32> {
        let mut left = Vec::new();
        for index in self.freed[seat]..upto {
            let block = self.rows[seat][index];
            self.holders[block as usize] -= 1;
            left.extend((self.holders[block as usize] == 0).then_some(block));
        }
        self.freed[seat] = self.freed[seat].max(upto);
        left
    }

    /// Whether the block is one of the seat's, and not given back.
    pub fn has(&self, seat: usize, block: u32) -> bool {
        self.rows[seat][self.freed[seat]..].contains(&block)
    }

    /// Blocks that some sequence holds.
    pub fn held(&self) -> usize {
        self.holders.iter().filter(|holders| **holders > 0).count()
    }
}
