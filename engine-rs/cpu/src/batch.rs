//! A step's rows as the engine planned them, checked before anything is written.

use std::ops::Range;

use crate::memory::{with_capacity, Error};

/// Rows of a sequence that attention takes together, so that they share the reading of keys.
pub(crate) const TILE_ROWS: usize = 8;

/// A matrix of `rows * cols` items, row after row.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    pub items: &'a [u32],
    pub rows: usize,
    pub cols: usize,
}

/// The arguments of one step. R rows, S sequences, one list or table per layer group.
#[derive(Clone)]
pub struct Batch<'a> {
    /// `[R]`
    pub token_ids: &'a [u32],
    /// `[R]`, ascending by one within a sequence.
    pub positions: &'a [u32],
    /// Per group `[R]`: where each row's keys and values go.
    pub slots: Vec<&'a [u32]>,
    /// `[S + 1]`: first row of each sequence, then R.
    pub query_start: &'a [u32],
    /// `[S]`: position of the sequence's last row, plus one.
    pub seq_lens: &'a [u32],
    /// `[S]`: row of the block table.
    pub seats: &'a [u32],
    /// Per group `[seats, blocks]`.
    pub tables: Vec<Table<'a>>,
    /// `[L]` ascending: rows whose logits are wanted.
    pub logits_rows: &'a [u32],
}

/// What a batch is checked against.
#[derive(Clone, Debug)]
pub struct Limits {
    pub vocab: usize,
    pub block_size: usize,
    /// Per group.
    pub num_slots: Vec<usize>,
    /// Per group: how many positions a row sees, itself included.
    pub windows: Vec<Option<usize>>,
}

/// A checked batch, owned.
#[derive(Debug)]
pub struct Step {
    pub(crate) tokens: Vec<u32>,
    pub(crate) positions: Vec<u32>,
    /// Sequence of each row.
    pub(crate) sequences: Vec<u32>,
    /// Per group.
    pub(crate) slots: Vec<Vec<u32>>,
    /// Per group and sequence: blocks up to the last position.
    pub(crate) tables: Vec<Vec<Vec<u32>>>,
    pub(crate) logits_rows: Vec<u32>,
    /// Rows that attention takes together: up to `TILE_ROWS` of one sequence.
    pub(crate) tiles: Vec<Range<usize>>,
}

impl Step {
    pub fn rows(&self) -> usize {
        self.tokens.len()
    }

    pub fn logits_rows(&self) -> usize {
        self.logits_rows.len()
    }
}

macro_rules! refuse {
    ($($message:tt)*) => { return Err(Error::new(format!($($message)*))) };
}

fn copy(items: &[u32]) -> Result<Vec<u32>, Error> {
    let mut out = with_capacity(items.len())?;
    out.extend_from_slice(items);
    Ok(out)
}

/// First position that a row at `position` sees.
pub(crate) fn first_seen(position: usize, window: Option<usize>) -> usize {
    window.map_or(0, |window| (position + 1).saturating_sub(window))
}

impl Batch<'_> {
    /// Checks every index; the error says which argument is wrong and where.
    pub fn check(&self, limits: &Limits) -> Result<Step, Error> {
        self.check_lengths(limits)?;
        let sequences = self.check_rows(limits)?;
        let mut tables = with_capacity(self.tables.len())?;
        for group in 0..self.tables.len() {
            tables.push(self.check_table(group, limits)?);
            self.check_slots(group, &sequences, &tables[group], limits)?;
        }
        let rows = self.token_ids.len();
        let mut next = 0;
        for &row in self.logits_rows {
            if (row as usize) < next || row as usize >= rows {
                refuse!("logits_rows must be ascending and below {rows}, but holds {row}");
            }
            next = row as usize + 1;
        }
        Ok(Step {
            tokens: copy(self.token_ids)?,
            positions: copy(self.positions)?,
            sequences,
            slots: self
                .slots
                .iter()
                .map(|slots| copy(slots))
                .collect::<Result<_, _>>()?,
            tables,
            logits_rows: copy(self.logits_rows)?,
            tiles: self.tiles()?,
        })
    }

    /// The rows of each sequence, cut into tiles.
    fn tiles(&self) -> Result<Vec<Range<usize>>, Error> {
        let spans = self
            .query_start
            .windows(2)
            .map(|span| span[0] as usize..span[1] as usize);
        let count = spans
            .clone()
            .map(|span| span.len().div_ceil(TILE_ROWS))
            .sum();
        let mut tiles = with_capacity(count)?;
        tiles.extend(spans.flat_map(|span| {
            let end = span.end;
            span.step_by(TILE_ROWS)
                .map(move |row| row..end.min(row + TILE_ROWS))
        }));
        Ok(tiles)
    }

    fn check_lengths(&self, limits: &Limits) -> Result<(), Error> {
        let (rows, sequences) = (self.token_ids.len(), self.seats.len());
        let groups = limits.num_slots.len();
        if self.slots.len() != groups || self.tables.len() != groups {
            refuse!("slots and tables must have one entry for each of {groups} layer groups");
        }
        if self.positions.len() != rows || self.slots.iter().any(|s| s.len() != rows) {
            refuse!("positions and slots must be as long as token_ids ({rows})");
        }
        if self.seq_lens.len() != sequences || self.query_start.len() != sequences + 1 {
            refuse!("seq_lens must be as long as seats ({sequences}), query_start longer by one");
        }
        if self.query_start[0] != 0 || self.query_start[sequences] as usize != rows {
            refuse!("query_start must begin with 0 and end with the number of rows ({rows})");
        }
        for (group, table) in self.tables.iter().enumerate() {
            if table.rows.checked_mul(table.cols) != Some(table.items.len()) {
                refuse!(
                    "table of group {group} is not {} by {}",
                    table.rows,
                    table.cols
                );
            }
        }
        Ok(())
    }

    /// The sequence of each row.
    fn check_rows(&self, limits: &Limits) -> Result<Vec<u32>, Error> {
        let mut sequences = with_capacity(self.token_ids.len())?;
        if let Some(token) = self.token_ids.iter().find(|&&t| t as usize >= limits.vocab) {
            refuse!(
                "token {token} is not below the vocabulary size {}",
                limits.vocab
            );
        }
        let mut seats = copy(self.seats)?;
        seats.sort_unstable();
        if seats.windows(2).any(|pair| pair[0] == pair[1]) {
            refuse!("two sequences have the same seat");
        }
        for (sequence, span) in self.query_start.windows(2).enumerate() {
            let (start, end) = (span[0] as usize, span[1] as usize);
            if start >= end || end > self.positions.len() {
                refuse!("query_start must ascend: sequence {sequence} has rows {start}..{end}");
            }
            let positions = &self.positions[start..end];
            let first = u64::from(positions[0]);
            if positions
                .iter()
                .zip(first..)
                .any(|(&p, want)| u64::from(p) != want)
            {
                refuse!("positions of sequence {sequence} are not contiguous");
            }
            let len = self.seq_lens[sequence];
            if u64::from(len) != first + positions.len() as u64 {
                refuse!("seq_lens[{sequence}] is {len}, not the last position plus one");
            }
            sequences.extend(std::iter::repeat_n(sequence as u32, end - start));
        }
        Ok(sequences)
    }

    /// The blocks of each sequence, from the first one that its rows see.
    fn check_table(&self, group: usize, limits: &Limits) -> Result<Vec<Vec<u32>>, Error> {
        let (table, size) = (&self.tables[group], limits.block_size);
        let blocks = limits.num_slots[group] / size;
        let mut out = with_capacity(self.seats.len())?;
        for (sequence, &seat) in self.seats.iter().enumerate() {
            let len = self.seq_lens[sequence] as usize;
            let used = len.div_ceil(size);
            if seat as usize >= table.rows || used > table.cols {
                refuse!(
                    "table of group {group} ({} by {}) has no seat {seat} of {used} blocks",
                    table.rows,
                    table.cols
                );
            }
            let row = &table.items[seat as usize * table.cols..][..used];
            let oldest = self.positions[self.query_start[sequence] as usize] as usize;
            let first = first_seen(oldest, limits.windows[group]) / size;
            if let Some(block) = row[first..].iter().find(|&&b| b as usize >= blocks) {
                refuse!("table of group {group}, seat {seat}: no block {block} in {blocks}");
            }
            out.push(copy(row)?);
        }
        Ok(out)
    }

    /// Each slot is where the table puts the row, and no two rows share one.
    fn check_slots(
        &self,
        group: usize,
        sequences: &[u32],
        tables: &[Vec<u32>],
        limits: &Limits,
    ) -> Result<(), Error> {
        let size = limits.block_size;
        for (row, &slot) in self.slots[group].iter().enumerate() {
            let position = self.positions[row] as usize;
            let block = tables[sequences[row] as usize][position / size] as usize;
            if slot as usize != block * size + position % size {
                refuse!(
                    "row {row} of group {group}: slot {slot} is not where the table puts \
                     position {position} (block {block})"
                );
            }
        }
        let mut sorted = copy(self.slots[group])?;
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            refuse!(
                "two rows of group {group} would be written to slot {}",
                pair[0]
            );
        }
        Ok(())
    }
}
