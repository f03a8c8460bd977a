//! What the tree is, abstractly.
use super::PrefixTree;
use vstd::prelude::*;

verus! {

/// A registered block.
#[verifier::ext_equal]
pub ghost struct Node {
    pub id: u64,
    pub parent: u64,
    pub salt: u64,
    pub toks: Seq<u32>,
}

/// The tree's abstract state.
#[verifier::ext_equal]
pub ghost struct TreeView {
    /// By block.
    pub nodes: Seq<Option<Node>>,
    /// By node id ever given: the tokens from the root to the node's end. Only grows.
    pub prefixes: Seq<Seq<u32>>,
}

impl Node {
    pub open spec fn is(self, parent: u64, salt: u64, toks: Seq<u32>) -> bool {
        self.parent == parent && self.salt == salt && self.toks == toks
    }
}

/// Block `i` of a token sequence.
pub open spec fn block_of(toks: Seq<u32>, size: int, i: int) -> Seq<u32> {
    toks.subrange(i * size, i * size + size)
}

impl TreeView {
    pub open spec fn ok(self, size: int) -> bool {
        &&& self.prefixes.len() >= 1
        &&& self.prefixes[0].len() == 0
        &&& forall|b: int|
            0 <= b < self.nodes.len() && (#[trigger] self.nodes[b]) is Some ==> self.node_ok(
                size,
                self.nodes[b]->0,
            )
        &&& self.nodes_distinct()
    }

    /// A node's prefix is its parent's and its own tokens; parents are older.
    pub open spec fn node_ok(self, size: int, x: Node) -> bool {
        &&& x.parent < x.id < self.prefixes.len()
        &&& x.toks.len() == size
        &&& self.prefixes[x.id as int] == self.prefixes[x.parent as int] + x.toks
    }

    /// No two nodes have one id, or one key.
    pub open spec fn nodes_distinct(self) -> bool {
        forall|b: int, c: int|
            #![trigger self.nodes[b], self.nodes[c]]
            0 <= b < c < self.nodes.len() && self.nodes[b] is Some && self.nodes[c] is Some ==> {
                let x = self.nodes[b]->0;
                let y = self.nodes[c]->0;
                x.id != y.id && !x.is(y.parent, y.salt, y.toks)
            }
    }

    /// Block `b` is the node with this key.
    pub open spec fn is_at(self, b: int, parent: u64, salt: u64, toks: Seq<u32>) -> bool {
        &&& 0 <= b < self.nodes.len()
        &&& self.nodes[b] matches Some(x) && x.is(parent, salt, toks)
    }

    pub open spec fn has(self, parent: u64, salt: u64, toks: Seq<u32>) -> bool {
        exists|b: int| #[trigger] self.is_at(b, parent, salt, toks)
    }

    /// The block with this key.
    pub open spec fn find(self, parent: u64, salt: u64, toks: Seq<u32>) -> int {
        choose|b: int| #[trigger] self.is_at(b, parent, salt, toks)
    }

    /// Leading full blocks of `toks` that the tree has, at most `max`: `i` have been found, and
    /// `parent` is the last one's id.
    pub open spec fn hit(
        self,
        size: int,
        salt: u64,
        toks: Seq<u32>,
        parent: u64,
        i: int,
        max: int,
    ) -> int
        decreases max - i,
    {
        if i < max && i * size + size <= toks.len() && self.has(
            parent,
            salt,
            block_of(toks, size, i),
        ) {
            let b = self.find(parent, salt, block_of(toks, size, i));
            self.hit(size, salt, toks, (self.nodes[b]->0).id, i + 1, max)
        } else {
            i
        }
    }

    /// The node that ends the first `k` blocks of `toks`, 0 for none.
    pub open spec fn walk(self, size: int, salt: u64, toks: Seq<u32>, k: int) -> Option<u64>
        decreases k,
    {
        if k <= 0 {
            Some(0)
        } else {
            match self.walk(size, salt, toks, k - 1) {
                None => None,
                Some(parent) => {
                    let block = block_of(toks, size, k - 1);
                    if self.has(parent, salt, block) {
                        Some((self.nodes[self.find(parent, salt, block)]->0).id)
                    } else {
                        None
                    }
                },
            }
        }
    }

    /// Block `b` becomes a node.
    pub open spec fn register(self, b: u32, parent: u64, salt: u64, toks: Seq<u32>) -> TreeView {
        TreeView {
            nodes: self.nodes.update(
                b as int,
                Some(Node { id: self.prefixes.len() as u64, parent, salt, toks }),
            ),
            prefixes: self.prefixes.push(self.prefixes[parent as int] + toks),
        }
    }

    /// Block `b` is no node any more.
    pub open spec fn unregister(self, b: u32) -> TreeView {
        TreeView { nodes: self.nodes.update(b as int, None), prefixes: self.prefixes }
    }

    /// No block is.
    pub open spec fn reset(self) -> TreeView {
        TreeView {
            nodes: Seq::new(self.nodes.len(), |b: int| None::<Node>),
            prefixes: self.prefixes,
        }
    }
}

impl PrefixTree {
    pub open(super) spec fn view(&self) -> TreeView {
        self.state@
    }

    /// Tokens in a block.
    pub open(super) spec fn block_size(&self) -> nat {
        self.block_size as nat
    }
}

} // verus!
