//! The pool's operations, each constant time.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof::*;
#[cfg(verus_only)]
use super::proof_ring::*;
#[cfg(verus_only)]
use super::PoolView;
use super::{BlockPool, Holder};
use vstd::prelude::*;

verus! {

impl BlockPool {
    /// `n` blocks without a holder, to be taken in ascending order.
    pub fn new(n: u32) -> (pool: Self)
        requires
            n < 0xffff_ffff,
        ensures
            pool.inv(),
            pool.view().holders == Seq::new(n as nat, |b: int| Set::<Holder>::empty()),
            pool.view().order == Seq::new(n as nat, |b: int| b as u32),
            pool.view().plain == n,
    {
        let size = n as usize + 1;
        let refs: Vec<u32> = vec![0; n as usize];
        let mut next: Vec<u32> = vec![0; size];
        let mut prev: Vec<u32> = vec![n; size];
        let mut b: u32 = 0;
        while b < n
            invariant
                b <= n < 0xffff_ffff,
                next@.len() == n + 1,
                prev@.len() == n + 1,
                forall|i: int| 0 <= i < b ==> #[trigger] next@[i] == i + 1,
                forall|i: int| 1 <= i <= b ==> #[trigger] prev@[i] == i - 1,
                prev@[0] == n,
            decreases n - b,
        {
            next.set(b as usize, b + 1);
            prev.set(b as usize + 1, b);
            b += 1;
        }
        next.set(n as usize, 0);
        let ghost order = Seq::new(n as nat, |b: int| b as u32);
        let ghost holders = Seq::new(n as nat, |b: int| Set::<Holder>::empty());
        let state = Ghost(PoolView { holders, order, plain: n as nat });
        proof {
            assert forall|b: int| 0 <= b < n implies order.contains(#[trigger] (b as u32)) by {
                assert(order[b] == b as u32);
            }
        }
        BlockPool { refs, next, prev, free: n, plain: n, state }
    }

    /// Takes the first block of the queue; true with it: it was reusable.
    pub fn alloc(&mut self, Ghost(h): Ghost<Holder>) -> (r: (u32, bool))
        requires
            old(self).inv(),
            old(self).view().order.len() > 0,
        ensures
            final(self).inv(),
            final(self).view() == old(self).view().alloc(h),
            r.0 == old(self).view().order[0],
            r.1 <==> old(self).view().plain == 0,
    {
        let ghost v = self.state@;
        let ghost n = v.holders.len() as int;
        let head = self.refs.len();
        proof {
            assert(self.next@[ring(v.order, n, -1) as int] == v.order[0]);
        }
        let b = self.next[head];
        self.unlink(b, Ghost(0));
        self.refs.set(b as usize, 1);
        let reusable = self.plain == 0;
        if !reusable {
            self.plain -= 1;
        }
        self.free -= 1;
        self.state = Ghost(v.alloc(h));
        proof {
            lemma_alloc(v, h);
        }
        (b, reusable)
    }

    /// One more holder of `b`.
    pub fn acquire(&mut self, b: u32, Ghost(h): Ghost<Holder>)
        requires
            old(self).inv(),
            b < old(self).view().holders.len(),
            !old(self).view().holders[b as int].contains(h),
            old(self).view().holders[b as int].len() < 0xffff_ffff,
            old(self).view().order.contains(b) ==> old(self).view().order.index_of(b) >= old(
                self,
            ).view().plain,
        ensures
            final(self).inv(),
            final(self).view() == old(self).view().acquire(b, h),
    {
        let ghost v = self.state@;
        proof {
            lemma_acquire(v, b, h);
        }
        let count = self.refs[b as usize];
        if count == 0 {
            proof {
                v.holders[b as int].lemma_len0_is_empty();
            }
            self.unlink(b, Ghost(v.order.index_of(b)));
            self.free -= 1;
        }
        self.refs.set(b as usize, count + 1);
        self.state = Ghost(v.acquire(b, h));
    }

    /// One holder of `b` less; the last one puts it into the queue.
    pub fn release(&mut self, b: u32, reusable: bool, Ghost(h): Ghost<Holder>)
        requires
            old(self).inv(),
            b < old(self).view().holders.len(),
            old(self).view().holders[b as int].contains(h),
        ensures
            final(self).inv(),
            final(self).view() == old(self).view().release(b, h, reusable),
    {
        let ghost v = self.state@;
        let ghost n = v.holders.len() as int;
        proof {
            lemma_release(v, b, h, reusable);
        }
        let count = self.refs[b as usize] - 1;
        self.refs.set(b as usize, count);
        if count == 0 {
            let head = self.refs.len() as u32;
            proof {
                v.holders[b as int].remove(h).lemma_len0_is_empty();
                lemma_room(v.order, n, b);
            }
            self.free += 1;
            if reusable {
                proof {
                    assert(self.prev@[ring(v.order, n, v.order.len() as int) as int] == ring(
                        v.order,
                        n,
                        v.order.len() - 1,
                    ));
                    assert(v.order.insert(v.order.len() as int, b) =~= v.order.push(b));
                }
                let last = self.prev[head as usize];
                self.link(b, last, head, Ghost(v.order.len() as int));
            } else {
                proof {
                    assert(self.next@[ring(v.order, n, -1) as int] == ring(v.order, n, 0));
                    assert(v.order.insert(0, b) =~= seq![b] + v.order);
                }
                let first = self.next[head as usize];
                self.link(b, head, first, Ghost(0));
                self.plain += 1;
            }
        }
        self.state = Ghost(v.release(b, h, reusable));
    }

    /// No free block is reusable any more.
    pub fn forget(&mut self)
        requires
            old(self).inv(),
        ensures
            final(self).inv(),
            final(self).view() == old(self).view().forget(),
    {
        self.plain = self.free;
        self.state = Ghost(self.state@.forget());
    }

    /// Number of blocks.
    pub fn total(&self) -> (n: u32)
        requires
            self.inv(),
        ensures
            n == self.view().holders.len(),
    {
        self.refs.len() as u32
    }

    /// Blocks in the queue.
    pub fn free(&self) -> (n: u32)
        requires
            self.inv(),
        ensures
            n == self.view().order.len(),
    {
        self.free
    }

    /// Reusable blocks in the queue.
    pub fn reusable(&self) -> (n: u32)
        requires
            self.inv(),
        ensures
            n == self.view().order.len() - self.view().plain,
    {
        self.free - self.plain
    }

    /// Takes the queue's entry `k`, block `b`, out of the ring.
    fn unlink(&mut self, b: u32, Ghost(k): Ghost<int>)
        requires
            old(self).inv(),
            0 <= k < old(self).view().order.len(),
            b == old(self).view().order[k],
        ensures
            final(self).refs == old(self).refs,
            final(self).free == old(self).free,
            final(self).plain == old(self).plain,
            ({
                let n = old(self).view().holders.len() as int;
                let order = old(self).view().order.remove(k);
                next_ok(order, n, final(self).next@) && prev_ok(order, n, final(self).prev@)
            }),
    {
        proof {
            let v = self.state@;
            lemma_unlink(v.order, v.holders.len() as int, self.next@, self.prev@, k);
        }
        let p = self.prev[b as usize];
        let q = self.next[b as usize];
        self.next.set(p as usize, q);
        self.prev.set(q as usize, p);
    }

    /// Puts `b` between the ring's neighbours `p` and `q`, as the queue's entry `k`.
    fn link(&mut self, b: u32, p: u32, q: u32, Ghost(k): Ghost<int>)
        requires
            ({
                let v = old(self).view();
                let n = v.holders.len() as int;
                &&& v.ok()
                &&& b < n
                &&& !v.order.contains(b)
                &&& 0 <= k <= v.order.len()
                &&& p == ring(v.order, n, k - 1)
                &&& q == ring(v.order, n, k)
                &&& next_ok(v.order, n, old(self).next@)
                &&& prev_ok(v.order, n, old(self).prev@)
            }),
        ensures
            final(self).refs == old(self).refs,
            final(self).free == old(self).free,
            final(self).plain == old(self).plain,
            ({
                let n = old(self).view().holders.len() as int;
                let order = old(self).view().order.insert(k, b);
                next_ok(order, n, final(self).next@) && prev_ok(order, n, final(self).prev@)
            }),
    {
        proof {
            let v = self.state@;
            lemma_link(v.order, v.holders.len() as int, self.next@, self.prev@, k, b);
        }
        self.next.set(b as usize, q);
        self.prev.set(b as usize, p);
        self.next.set(p as usize, b);
        self.prev.set(q as usize, b);
    }
}

} // verus!
