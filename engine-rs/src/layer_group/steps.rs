//! The abstract steps that every operation of a group is made of.
use super::inv::*;
#[cfg(verus_only)]
use super::NO_ANCHOR;
#[cfg(verus_only)]
use crate::block_pool::Holder;
use vstd::prelude::*;

verus! {

impl State {
    /// A block that one more table may list: nobody writes it.
    pub open spec fn shareable(self, b: int) -> bool {
        &&& 0 <= b < self.n()
        &&& self.tree.nodes[b] is Some || exists|h: Holder| #[trigger]
            self.pool.holders[b].contains(h) && h.1 < self.sealed[h.0]
    }

    /// A prefix's node that may become the anchor of a seat whose last sealed block is `b`.
    pub open spec fn anchors(self, a: u64, b: int) -> bool {
        a != NO_ANCHOR ==> {
            &&& a < self.tree.prefixes.len()
            &&& self.content[b][self.size - 1] == Some(self.tree.prefixes[a as int])
        }
    }

    /// Seat `s`, all of whose blocks are sealed, gets the sealed block `b`.
    pub open spec fn push_held(self, s: int, b: u32, a: u64) -> State {
        State {
            rows: self.rows.update(s, self.rows[s].push(b)),
            sealed: self.sealed.update(s, (self.sealed[s] + 1) as usize),
            anchor: self.anchor.update(s, a),
            pool: self.pool.acquire(b, (s, self.rows[s].len() as int)),
            ..self
        }
    }

    /// Seat `s` gets the first block of the queue, which is no node any more.
    pub open spec fn push_fresh(self, s: int) -> State {
        let b = self.pool.order[0];
        State {
            rows: self.rows.update(s, self.rows[s].push(b)),
            pool: self.pool.alloc((s, self.rows[s].len() as int)),
            tree: if self.pool.plain == 0 {
                self.tree.unregister(b)
            } else {
                self.tree
            },
            ..self
        }
    }

    /// Seat `s` gives back its last block; after the last that it has, its table is empty.
    pub open spec fn pop(self, s: int) -> State {
        let b = self.rows[s].last();
        let len = self.rows[s].len() - 1;
        let left = len > self.freed[s];
        State {
            rows: self.rows.update(
                s,
                if left {
                    self.rows[s].drop_last()
                } else {
                    Seq::empty()
                },
            ),
            freed: self.freed.update(
                s,
                if left {
                    self.freed[s]
                } else {
                    0
                },
            ),
            sealed: self.sealed.update(
                s,
                if !left {
                    0
                } else if self.sealed[s] > len {
                    len as usize
                } else {
                    self.sealed[s]
                },
            ),
            anchor: self.anchor.update(
                s,
                if left {
                    NO_ANCHOR
                } else {
                    0
                },
            ),
            pool: self.pool.release(b, (s, len), self.tree.nodes[b as int] is Some),
            ..self
        }
    }

    /// Seat `s` gives back its first block, which stays in its table.
    pub open spec fn slide(self, s: int) -> State {
        let i = self.freed[s] as int;
        let b = self.rows[s][i];
        State {
            freed: self.freed.update(s, (i + 1) as usize),
            pool: self.pool.release(b, (s, i), self.tree.nodes[b as int] is Some),
            ..self
        }
    }

    /// The slot of position `p` of seat `s` holds `v`.
    pub open spec fn put(self, s: int, p: int, v: Option<Seq<u32>>) -> State {
        let b = self.rows[s][p / self.size] as int;
        State { content: self.content.update(b, self.content[b].update(p % self.size, v)), ..self }
    }

    /// Positions `from..to` of seat `s` hold what `f` says.
    pub open spec fn put_all(
        self,
        s: int,
        from: int,
        to: int,
        f: spec_fn(int) -> Option<Seq<u32>>,
    ) -> State
        decreases to - from,
    {
        if from < to {
            self.put_all(s, from, to - 1, f).put(s, to - 1, f(to - 1))
        } else {
            self
        }
    }

    /// Seat `s` has one more sealed block.
    pub open spec fn seal(self, s: int, a: u64) -> State {
        State {
            sealed: self.sealed.update(s, (self.sealed[s] + 1) as usize),
            anchor: self.anchor.update(s, a),
            ..self
        }
    }

    /// A sealed block becomes a node.
    pub open spec fn register(self, b: u32, parent: u64, salt: u64, toks: Seq<u32>) -> State {
        State { tree: self.tree.register(b, parent, salt, toks), ..self }
    }

    /// Seat `s` has the anchor `a`.
    pub open spec fn set_anchor(self, s: int, a: u64) -> State {
        State { anchor: self.anchor.update(s, a), ..self }
    }

    /// No block is a node; seats that hold blocks have no anchor.
    pub open spec fn reset(self) -> State {
        State {
            tree: self.tree.reset(),
            pool: self.pool.forget(),
            anchor: Seq::new(
                self.anchor.len(),
                |s: int|
                    if self.rows[s].len() > 0 {
                        NO_ANCHOR
                    } else {
                        0
                    },
            ),
            ..self
        }
    }
}

} // verus!
