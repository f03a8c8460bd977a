//! An audit of the buckets that shares no code with the tree's operations.
use super::{PrefixTree, NONE};
use std::collections::HashSet;

impl PrefixTree {
    pub(crate) fn is_registered(&self, b: u32) -> bool {
        self.id[b as usize] != 0
    }

    /// As if all node ids had been given.
    pub(crate) fn exhaust_ids(&mut self) {
        self.next_id = u64::MAX;
    }

    /// Every node is in its bucket's chain once, and nothing else is; ids and keys are unique.
    pub(crate) fn audit(&self) {
        let mut chained = HashSet::new();
        for (k, &head) in self.heads.iter().enumerate() {
            let mut b = head;
            while b != NONE {
                assert!(chained.insert(b), "block {b} is chained twice");
                assert!(
                    self.is_registered(b),
                    "block {b} is chained and not registered"
                );
                assert_eq!(self.bucket[b as usize] as usize, k);
                b = self.chain[b as usize];
            }
        }
        let mut ids = HashSet::new();
        let mut keys = HashSet::new();
        for b in 0..self.id.len() {
            if self.id[b] == 0 {
                continue;
            }
            assert!(chained.contains(&(b as u32)), "block {b} cannot be found");
            assert!(ids.insert(self.id[b]));
            assert!(self.parent[b] < self.id[b] && self.id[b] < self.next_id);
            let toks = &self.tokens[b * self.block_size..(b + 1) * self.block_size];
            assert!(keys.insert((self.parent[b], self.salt[b], toks.to_vec())));
        }
        assert_eq!(ids.len(), chained.len());
    }
}
