//! Block tables in one flat array, and the log of what was appended to them.
#[cfg(verus_only)]
use super::spec::*;
use vstd::prelude::*;

verus! {

/// `seats` tables of at most `row_len` blocks.
pub struct BlockTables {
    /// Row `s` is `cells[s * row_len .. s * row_len + lens[s]]`.
    cells: Vec<u32>,
    lens: Vec<u32>,
    row_len: usize,
    /// Seat, index and block of each entry appended since the log was taken.
    log: (Vec<u32>, Vec<u32>, Vec<u32>),
    rows: Ghost<Seq<Seq<u32>>>,
}

impl BlockTables {
    pub closed spec fn rows(&self) -> Seq<Seq<u32>> {
        self.rows@
    }

    pub closed spec fn row_len(&self) -> nat {
        self.row_len as nat
    }

    pub closed spec fn updates(&self) -> Seq<TableUpdate> {
        Seq::new(
            self.log.0@.len(),
            |i: int|
                TableUpdate { seat: self.log.0@[i], index: self.log.1@[i], block: self.log.2@[i] },
        )
    }

    pub closed spec fn inv(&self) -> bool {
        &&& self.rows@.len() == self.lens@.len()
        &&& self.lens@.len() <= 0xffff_ffff
        &&& self.lens@.len() * self.row_len <= 0xffff_ffff
        &&& self.cells@.len() == self.lens@.len() * self.row_len
        &&& self.log.0@.len() == self.log.1@.len() == self.log.2@.len()
        &&& forall|s: int| 0 <= s < self.rows@.len() ==> #[trigger] self.row_ok(s)
    }

    /// Row `s` is stored in its place.
    pub closed spec fn row_ok(&self, s: int) -> bool {
        &&& self.lens@[s] == self.rows@[s].len()
        &&& self.rows@[s].len() <= self.row_len
        &&& forall|i: int|
            0 <= i < self.rows@[s].len() ==> #[trigger] self.rows@[s][i] == self.cells@[s
                * self.row_len + i]
    }

    /// Bounds that the group's counting rests on.
    pub proof fn lemma_bounds(&self)
        requires
            self.inv(),
        ensures
            self.rows().len() <= 0xffff_ffff,
            self.row_len() <= usize::MAX,
            self.rows().len() * self.row_len() <= 0xffff_ffff,
            forall|s: int|
                0 <= s < self.rows().len() ==> (#[trigger] self.rows()[s]).len() <= self.row_len(),
    {
        assert forall|s: int| 0 <= s < self.rows@.len() implies (#[trigger] self.rows@[s]).len()
            <= self.row_len by {
            assert(self.row_ok(s));
        }
    }

    /// Empty tables.
    pub fn new(seats: u32, row_len: u32) -> (t: Self)
        requires
            seats * row_len <= 0xffff_ffff,
        ensures
            t.inv(),
            t.rows() == Seq::new(seats as nat, |s: int| Seq::<u32>::empty()),
            t.row_len() == row_len,
            t.updates().len() == 0,
    {
        let cells = vec![0; (seats * row_len) as usize];
        let rows = Ghost(Seq::new(seats as nat, |s: int| Seq::<u32>::empty()));
        let log = (Vec::new(), Vec::new(), Vec::new());
        BlockTables { cells, lens: vec![0; seats as usize], row_len: row_len as usize, log, rows }
    }

    /// Number of blocks in the table of seat `s`.
    pub fn len(&self, s: usize) -> (n: usize)
        requires
            self.inv(),
            s < self.rows().len(),
        ensures
            n == self.rows()[s as int].len(),
    {
        proof {
            assert(self.row_ok(s as int));
        }
        self.lens[s] as usize
    }

    /// Most blocks in a table.
    pub fn max_len(&self) -> (n: usize)
        ensures
            n == self.row_len(),
    {
        self.row_len
    }

    /// Entry `i` of the table of seat `s`.
    pub fn get(&self, s: usize, i: usize) -> (b: u32)
        requires
            self.inv(),
            s < self.rows().len(),
            i < self.rows()[s as int].len(),
        ensures
            b == self.rows()[s as int][i as int],
    {
        proof {
            assert(self.row_ok(s as int));
            lemma_cell(self.lens@.len() as int, self.row_len as int, s as int, i as int);
        }
        self.cells[s * self.row_len + i]
    }

    /// Appends `b` to the table of seat `s`, and logs it.
    pub fn push(&mut self, s: usize, b: u32)
        requires
            old(self).inv(),
            s < old(self).rows().len(),
            old(self).rows()[s as int].len() < old(self).row_len(),
        ensures
            final(self).inv(),
            final(self).row_len() == old(self).row_len(),
            final(self).rows() == old(self).rows().update(
                s as int,
                old(self).rows()[s as int].push(b),
            ),
            final(self).updates() == old(self).updates().push(
                TableUpdate {
                    seat: s as u32,
                    index: old(self).rows()[s as int].len() as u32,
                    block: b,
                },
            ),
    {
        let ghost was = *self;
        proof {
            assert(self.row_ok(s as int));
            let i = self.lens@[s as int] as int;
            lemma_cell(self.lens@.len() as int, self.row_len as int, s as int, i);
        }
        let i = self.lens[s];
        self.cells.set(s * self.row_len + i as usize, b);
        self.lens.set(s, i + 1);
        self.log.0.push(s as u32);
        self.log.1.push(i);
        self.log.2.push(b);
        self.rows = Ghost(was.rows@.update(s as int, was.rows@[s as int].push(b)));
        proof {
            assert forall|t: int| 0 <= t < self.rows@.len() implies #[trigger] self.row_ok(t) by {
                assert(was.row_ok(t));
                assert forall|j: int|
                    0 <= j < self.rows@[t].len() implies #[trigger] self.rows@[t][j]
                    == self.cells@[t * self.row_len + j] by {
                    lemma_cell(self.lens@.len() as int, self.row_len as int, t, j);
                    if t != s {
                        lemma_cells_apart(self.row_len as int, s as int, i as int, t, j);
                    }
                    if t != s || j < i {
                        assert(self.rows@[t][j] == was.rows@[t][j]);
                    }
                }
            }
        }
    }

    /// Removes and returns the last entry of the table of seat `s`.
    pub fn pop(&mut self, s: usize) -> (b: u32)
        requires
            old(self).inv(),
            s < old(self).rows().len(),
            old(self).rows()[s as int].len() > 0,
        ensures
            final(self).inv(),
            final(self).row_len() == old(self).row_len(),
            final(self).rows() == old(self).rows().update(
                s as int,
                old(self).rows()[s as int].drop_last(),
            ),
            final(self).updates() == old(self).updates(),
            b == old(self).rows()[s as int].last(),
    {
        let ghost was = *self;
        proof {
            assert(self.row_ok(s as int));
            let i = self.lens@[s as int] - 1;
            lemma_cell(self.lens@.len() as int, self.row_len as int, s as int, i);
        }
        let i = self.lens[s] - 1;
        self.lens.set(s, i);
        self.rows = Ghost(was.rows@.update(s as int, was.rows@[s as int].drop_last()));
        proof {
            assert forall|t: int| 0 <= t < self.rows@.len() implies #[trigger] self.row_ok(t) by {
                assert(was.row_ok(t));
            }
        }
        self.cells[s * self.row_len + i as usize]
    }

    /// Empties the table of seat `s`.
    pub fn clear(&mut self, s: usize)
        requires
            old(self).inv(),
            s < old(self).rows().len(),
        ensures
            final(self).inv(),
            final(self).row_len() == old(self).row_len(),
            final(self).rows() == old(self).rows().update(s as int, Seq::empty()),
            final(self).updates() == old(self).updates(),
    {
        let ghost was = *self;
        self.lens.set(s, 0);
        self.rows = Ghost(was.rows@.update(s as int, Seq::empty()));
        proof {
            assert forall|t: int| 0 <= t < self.rows@.len() implies #[trigger] self.row_ok(t) by {
                assert(was.row_ok(t));
            }
        }
    }

    /// Logs entry `i` of the table of seat `s` once more.
    pub fn relog(&mut self, s: usize, i: usize)
        requires
            old(self).inv(),
            s < old(self).rows().len(),
            i < old(self).rows()[s as int].len(),
        ensures
            final(self).inv(),
            final(self).row_len() == old(self).row_len(),
            final(self).rows() == old(self).rows(),
            final(self).updates() == old(self).updates().push(
                TableUpdate {
                    seat: s as u32,
                    index: i as u32,
                    block: old(self).rows()[s as int][i as int],
                },
            ),
    {
        let ghost was = *self;
        let b = self.get(s, i);
        self.log.0.push(s as u32);
        self.log.1.push(i as u32);
        self.log.2.push(b);
        proof {
            assert forall|t: int| 0 <= t < self.rows@.len() implies #[trigger] self.row_ok(t) by {
                assert(was.row_ok(t));
            }
        }
    }

    /// Takes the log: seats, indices and blocks of what was appended, in order.
    pub fn take_log(&mut self) -> (log: (Vec<u32>, Vec<u32>, Vec<u32>))
        requires
            old(self).inv(),
        ensures
            final(self).inv(),
            final(self).row_len() == old(self).row_len(),
            final(self).rows() == old(self).rows(),
            final(self).updates() == Seq::<TableUpdate>::empty(),
            log.0@.len() == old(self).updates().len(),
            log.1@.len() == old(self).updates().len(),
            log.2@.len() == old(self).updates().len(),
            forall|i: int|
                0 <= i < log.0@.len() ==> #[trigger] old(self).updates()[i] == (TableUpdate {
                    seat: log.0@[i],
                    index: log.1@[i],
                    block: log.2@[i],
                }),
    {
        let ghost was = *self;
        let mut log = (Vec::new(), Vec::new(), Vec::new());
        core::mem::swap(&mut log, &mut self.log);
        proof {
            assert forall|t: int| 0 <= t < self.rows@.len() implies #[trigger] self.row_ok(t) by {
                assert(was.row_ok(t));
            }
        }
        log
    }
}

/// A cell's place is in the array.
proof fn lemma_cell(seats: int, row_len: int, s: int, i: int)
    requires
        0 <= s < seats,
        0 <= i < row_len,
    ensures
        0 <= s * row_len,
        s * row_len + i < seats * row_len,
{
    assert(0 <= s * row_len && s * row_len + i < seats * row_len) by (nonlinear_arith)
        requires
            0 <= s < seats,
            0 <= i < row_len,
    ;
}

/// Cells of two rows have two places.
proof fn lemma_cells_apart(row_len: int, s: int, i: int, t: int, j: int)
    requires
        s != t,
        0 <= i < row_len,
        0 <= j < row_len,
    ensures
        s * row_len + i != t * row_len + j,
{
    assert(s * row_len + i != t * row_len + j) by (nonlinear_arith)
        requires
            s != t,
            0 <= i < row_len,
            0 <= j < row_len,
    ;
}

} // verus!
