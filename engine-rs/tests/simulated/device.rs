//! KV pools and block tables; runs plans as a runner does, or with one mistake.
use super::model::{Kv, Model};
use super::Random;
use vosti_engine::{Plan, UNKNOWN_TOKEN};

/// KV of a slot that was never written, or whose block was given away.
const POISON: u64 = 0xdead_dead_dead_dead;

/// A mistake of the device or of those who call the engine, made now and then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A row's KV is not written in one layer.
    ForgetsWrite,
    /// A table entry is not written.
    LosesUpdate,
    /// A table entry names a block that another entry names already.
    SharesBlock,
    /// A sampled token is not kept for the plan that was made before it was known.
    StaleToken,
    /// A cancelled plan's tokens are kept.
    KeepsCancelled,
    /// Two rows of logits are delivered in each other's place.
    SwapsRows,
    /// A request's salt is forgotten.
    IgnoresSalt,
    /// Another token is committed than was drawn.
    CommitsOther,
    /// The engine is not told that the weights are others.
    LoadsSilently,
    /// The engine is told a window that is one block too narrow.
    NarrowWindow,
}

/// What a plan gave.
pub struct Executed {
    /// Logits of each of `logits_rows`.
    pub logits: Vec<u64>,
    /// A token for each of `sample_seqs`.
    pub tokens: Vec<u32>,
}

pub struct Device {
    block_size: usize,
    /// Entries of a seat's row of a table.
    width: usize,
    pools: Vec<Vec<u64>>,
    tables: Vec<Vec<u32>>,
    /// The token that was last sampled at each seat.
    pub last: Vec<u32>,
    pub fault: Option<Fault>,
    /// How often the fault changed something.
    pub planted: usize,
    random: Random,
}

/// A row of a plan, as a kernel sees it: it gathers through the table, and stores at its slot.
struct Lane<'a> {
    device: &'a mut Device,
    plan: &'a Plan,
    seat: usize,
    row: usize,
    forgotten: Option<usize>,
}

impl Kv for Lane<'_> {
    fn get(&self, layer: usize, position: usize) -> u64 {
        let device = &*self.device;
        let entry = self.seat * device.width + position / device.block_size;
        let block = device.tables[layer][entry] as usize;
        let slot = block * device.block_size + position % device.block_size;
        device.pools[layer].get(slot).copied().unwrap_or(POISON)
    }

    fn put(&mut self, layer: usize, _: usize, kv: u64) {
        if self.forgotten != Some(layer) {
            self.device.pools[layer][self.plan.slots[layer][self.row] as usize] = kv;
        }
    }
}

impl Device {
    pub fn new(blocks: &[u32], block_size: usize, seats: usize, max_len: usize) -> Self {
        let width = max_len.div_ceil(block_size);
        let slots = blocks.iter().map(|n| *n as usize * block_size);
        Device {
            block_size,
            width,
            pools: slots.map(|n| vec![POISON; n]).collect(),
            tables: vec![vec![u32::MAX; seats * width]; blocks.len()],
            last: vec![0; seats],
            fault: None,
            planted: 0,
            random: Random::new(7),
        }
    }

    /// Whether to make this mistake now, where it has something to spoil.
    pub fn errs(&mut self, fault: Fault) -> bool {
        let errs = self.fault == Some(fault) && self.random.one_in(8);
        self.planted += usize::from(errs);
        errs
    }

    /// Runs the plan, whose sequences have these salts and keys.
    pub fn execute(&mut self, model: &Model, plan: &Plan, of: &[(u64, u64)]) -> Executed {
        self.update_tables(plan);
        let mut rows = Vec::with_capacity(plan.token_ids.len());
        let mut sampled = plan.sample_seqs.iter().peekable();
        let mut tokens = Vec::with_capacity(plan.sample_seqs.len());
        for (k, (salt, key)) in of.iter().enumerate() {
            let seat = plan.seats[k] as usize;
            for row in plan.query_start[k]..plan.query_start[k + 1] {
                rows.push(self.run_row(model, plan, seat, row as usize, *salt));
            }
            if sampled.next_if_eq(&&(k as u32)).is_some() {
                let token = model.sample(rows[rows.len() - 1], *key);
                tokens.push(token);
                if self.last[seat] == token || !self.errs(Fault::StaleToken) {
                    self.last[seat] = token;
                }
            }
        }
        let mut logits: Vec<u64> = plan.logits_rows.iter().map(|r| rows[*r as usize]).collect();
        if logits.len() > 1 && self.errs(Fault::SwapsRows) {
            logits.swap(0, 1);
        }
        Executed { logits, tokens }
    }

    /// The plan breaks off half-way: what it wrote is anything, and counts for nothing.
    pub fn break_off(&mut self, plan: &Plan) {
        self.update_tables(plan);
        for (pool, slots) in self.pools.iter_mut().zip(&plan.slots) {
            for slot in slots {
                pool[*slot as usize] = POISON;
            }
        }
    }

    fn run_row(&mut self, model: &Model, plan: &Plan, seat: usize, row: usize, salt: u64) -> u64 {
        let token = match plan.token_ids[row] {
            UNKNOWN_TOKEN => self.last[seat],
            token => token,
        };
        let layer = self.random.below(self.pools.len());
        let forgotten = self.errs(Fault::ForgetsWrite).then_some(layer);
        let position = plan.positions[row] as usize;
        let mut lane = Lane {
            device: self,
            plan,
            seat,
            row,
            forgotten,
        };
        model.forward(salt, token, position, &mut lane)
    }

    /// Writes the entries that changed; blocks that the plan is the first to write are poisoned.
    fn update_tables(&mut self, plan: &Plan) {
        for (layer, updates) in plan.updates.iter().enumerate() {
            let places = updates.seats.iter().zip(&updates.indices);
            for ((seat, index), block) in places.zip(&updates.blocks) {
                let entry = *seat as usize * self.width + *index as usize;
                let table = &self.tables[layer];
                let (old, next) = (table[entry], table[(entry + 1) % table.len()]);
                if old != *block && self.errs(Fault::LosesUpdate) {
                    continue;
                }
                let shares = next != *block && self.errs(Fault::SharesBlock);
                self.tables[layer][entry] = if shares { next } else { *block };
            }
            for k in 0..plan.seats.len() {
                let first = plan.positions[plan.query_start[k] as usize] as usize;
                let end = (plan.seq_lens[k] as usize).div_ceil(self.block_size);
                for index in first.div_ceil(self.block_size)..end {
                    let block = self.tables[layer][plan.seats[k] as usize * self.width + index];
                    self.poison(layer, block as usize);
                }
            }
        }
    }

    pub fn poison(&mut self, layer: usize, block: usize) {
        let first = block * self.block_size;
        if let Some(slots) = self.pools[layer].get_mut(first..first + self.block_size) {
            slots.fill(POISON);
        }
    }
}
