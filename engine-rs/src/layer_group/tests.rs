//! Random operations against a simulated device, whose "KV" is the salt and the token prefix.
use super::LayerGroup;
use std::collections::{HashMap, HashSet};

/// xorshift64*: the tests draw the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

/// What a seat runs: its salt, its tokens, and how many are computed.
#[derive(Clone, Default)]
struct Run {
    salt: u64,
    tokens: Vec<u32>,
    computed: usize,
}

struct World {
    group: LayerGroup,
    size: usize,
    blocks: usize,
    rows: usize,
    runs: Vec<Run>,
    device: HashMap<usize, (u64, Vec<u32>)>,
    /// Full blocks ever committed, by salt and prefix.
    committed: HashSet<(u64, Vec<u32>)>,
    /// The block tables as a runner keeps them.
    mirror: HashMap<(u32, u32), u32>,
}

impl World {
    fn new(blocks: usize, size: usize, seats: usize, rows: usize, mask: u32) -> World {
        let (n, b, s, r) = (blocks as u32, size as u32, seats as u32, rows as u32);
        World {
            group: LayerGroup::with_buckets(n, b, s, r, 0, true, mask),
            size,
            blocks,
            rows,
            runs: vec![Run::default(); seats],
            device: HashMap::new(),
            committed: HashSet::new(),
            mirror: HashMap::new(),
        }
    }

    fn table(&self, seat: usize) -> Vec<u32> {
        let len = self.group.table_len(seat);
        (0..len).map(|i| self.group.table_entry(seat, i)).collect()
    }

    fn slot(&self, seat: usize, p: usize) -> usize {
        self.group.table_entry(seat, p / self.size) as usize * self.size + p % self.size
    }

    /// Every computed position of every seat holds its own prefix under its own salt.
    fn check_content(&self) {
        for (seat, run) in self.runs.iter().enumerate() {
            for p in 0..run.computed {
                let (salt, prefix) = &self.device[&self.slot(seat, p)];
                assert_eq!((*salt, &prefix[..]), (run.salt, &run.tokens[..=p]));
            }
        }
    }

    /// Counts, queue, buckets, private blocks and the runner's mirror.
    fn audit(&mut self) {
        let mut holders = vec![0; self.blocks];
        let (seats, indices, blocks) = self.group.take_updates();
        for ((&s, &i), &b) in seats.iter().zip(&indices).zip(&blocks) {
            self.mirror.insert((s, i), b);
        }
        for seat in 0..self.runs.len() {
            for (i, b) in self.table(seat).into_iter().enumerate() {
                holders[b as usize] += 1;
                assert_eq!(self.mirror[&(seat as u32, i as u32)], b);
            }
        }
        for (b, &count) in holders.iter().enumerate() {
            assert_eq!(
                self.group.pool.count(b as u32),
                count,
                "holders of block {b}"
            );
        }
        for (seat, run) in self.runs.iter().enumerate() {
            for b in self.table(seat).into_iter().skip(run.computed / self.size) {
                assert_eq!(holders[b as usize], 1, "block {b} is written and shared");
                assert!(
                    !self.group.tree.is_registered(b),
                    "block {b} is written and visible"
                );
            }
        }
        let queue = self.group.pool.queue();
        let cached = self.group.count_cached() as usize;
        let plain = queue.len() - cached;
        for (i, &b) in queue.iter().enumerate() {
            assert_eq!(
                self.group.tree.is_registered(b),
                i >= plain,
                "entry {i} of the queue"
            );
        }
        let held = holders.iter().filter(|&&h| h > 0).count();
        assert_eq!(plain + cached + held, self.blocks);
        assert_eq!(self.group.count_free() as usize, plain + cached);
        self.group.tree.audit();
    }

    fn attach(&mut self, seat: usize, salt: u64, tokens: Vec<u32>, max: usize) -> usize {
        let found = self.group.lookup(salt, &tokens, max);
        let k = self.group.attach(seat, salt, &tokens, max);
        assert_eq!(k, found.min(self.rows));
        self.runs[seat] = Run {
            salt,
            tokens,
            computed: k * self.size,
        };
        k
    }

    /// Computes positions up to `to`; false when there is no room.
    fn compute(&mut self, seat: usize, to: usize) -> bool {
        let (from, need) = (self.runs[seat].computed, to.div_ceil(self.size));
        let short = need.saturating_sub(self.group.table_len(seat));
        let room = self.group.count_free() as usize >= short;
        assert_eq!(self.group.grow(seat, need), room);
        if !room {
            return false;
        }
        self.group.dirty(seat, from, to);
        let run = self.runs[seat].clone();
        for p in from..to {
            let at = self.slot(seat, p);
            self.device
                .insert(at, (run.salt, run.tokens[..=p].to_vec()));
        }
        self.group.commit(seat, run.salt, &run.tokens, from, to);
        self.runs[seat].computed = to;
        for end in from / self.size + 1..=to / self.size {
            self.committed
                .insert((run.salt, run.tokens[..end * self.size].to_vec()));
        }
        true
    }

    fn release(&mut self, seat: usize) {
        self.group.release(seat);
        assert_eq!(self.group.table_len(seat), 0);
        self.runs[seat] = Run::default();
    }

    fn share(&mut self, seat: usize, from: usize, k: usize) {
        self.group.share(seat, from, k);
        self.runs[seat] = Run {
            computed: k * self.size,
            ..self.runs[from].clone()
        };
        assert_eq!(self.table(seat), self.table(from)[..k]);
    }

    fn random_step(&mut self, random: &mut Random) {
        let seats = self.runs.len();
        let seat = random.below(seats);
        let free = self.group.table_len(seat) == 0;
        match random.below(100) {
            0 => self.group.reset(),
            1..=14 => self.release(seat),
            15..=24 if free => {
                let from = (seat + 1 + random.below(seats - 1)) % seats;
                let sealed = self.runs[from].computed / self.size;
                self.share(seat, from, random.below(sealed + 1));
            }
            _ if free => {
                let len = 1 + random.below(self.rows * self.size);
                let tokens = (0..len).map(|_| random.below(2) as u32).collect();
                self.attach(
                    seat,
                    random.below(2) as u64,
                    tokens,
                    random.below(self.rows + 2),
                );
            }
            _ => {
                let run = &self.runs[seat];
                let to = run.computed + random.below(run.tokens.len() - run.computed + 1);
                self.compute(seat, to);
            }
        }
    }
}

fn tokens(from: u32, n: u32) -> Vec<u32> {
    (from..from + n).collect()
}

#[test]
fn random_operations_keep_every_count_and_every_prefix() {
    for seed in 1..=24 {
        let mut random = Random(seed);
        let size = 1 + random.below(4);
        let blocks = 1 + random.below(40);
        let mask = if seed % 2 == 0 { 0 } else { 15 };
        let mut world = World::new(blocks, size, 2 + random.below(5), 1 + random.below(8), mask);
        for _ in 0..1500 {
            world.random_step(&mut random);
            world.audit();
            world.check_content();
        }
    }
}

#[test]
fn without_eviction_a_lookup_finds_all_that_the_salt_has_committed() {
    for (seed, mask) in [(7, 0), (8, 1023)] {
        let mut random = Random(seed);
        let mut world = World::new(4000, 2, 6, 6, mask);
        for _ in 0..3000 {
            let seat = random.below(6);
            world.release(seat);
            let prompt: Vec<u32> = (0..12).map(|_| random.below(3) as u32).collect();
            let salt = random.below(2) as u64;
            let known = |k: &usize| world.committed.contains(&(salt, prompt[..k * 2].to_vec()));
            let expected = (1..=6).take_while(known).count();
            assert_eq!(world.attach(seat, salt, prompt, 6), expected);
            let to = (2 * expected).max(random.below(13));
            assert!(world.compute(seat, to));
            if world.group.count_free() < 12 {
                break;
            }
        }
        world.audit();
        world.check_content();
    }
}

#[test]
fn no_hit_across_salts() {
    let mut world = World::new(8, 2, 2, 4, 0);
    world.attach(0, 1, tokens(0, 8), 4);
    assert!(world.compute(0, 8));
    assert_eq!(world.group.lookup(2, &tokens(0, 8), 4), 0);
    assert_eq!(world.group.lookup(1, &tokens(0, 8), 4), 4);
    assert_eq!(world.group.lookup(1, &tokens(0, 7), 4), 3);
    assert_eq!(world.group.lookup(1, &tokens(1, 8), 4), 0);
}

#[test]
fn the_least_recently_used_block_is_evicted_first_and_a_prefix_from_its_end() {
    let mut world = World::new(6, 1, 4, 6, 7);
    for (seat, first) in [(0, 0), (1, 10)] {
        world.attach(seat, 0, tokens(first, 3), 3);
        assert!(world.compute(seat, 3));
    }
    world.release(0);
    world.release(1);
    assert_eq!(world.attach(0, 0, tokens(0, 3), 3), 3);
    world.release(0);
    let lookups = |w: &World| [0, 10].map(|first| w.group.lookup(0, &tokens(first, 3), 3));
    for (taken, expected) in [[3, 2], [3, 1], [3, 0], [2, 0], [1, 0], [0, 0]]
        .iter()
        .enumerate()
    {
        assert!(world.group.grow(3, taken + 1));
        assert_eq!(&lookups(&world), expected);
    }
    assert_eq!(world.group.count_free(), 0);
}

#[test]
fn a_duplicate_continues_the_chain_of_the_first() {
    let mut world = World::new(12, 2, 3, 4, 0);
    for seat in 0..2 {
        world.attach(seat, 0, tokens(0, 8), 0);
        assert!(world.compute(seat, 4));
    }
    assert!(world.compute(1, 8));
    assert_eq!(world.attach(2, 0, tokens(0, 8), 4), 4);
    assert_eq!(world.table(2)[..2], world.table(0)[..2]);
    assert_eq!(world.table(2)[2..], world.table(1)[2..]);
    world.audit();
    world.check_content();
}

#[test]
fn after_a_reset_only_fresh_seats_register() {
    let mut world = World::new(16, 2, 2, 4, 7);
    world.attach(0, 0, tokens(0, 8), 4);
    assert!(world.compute(0, 5));
    world.group.reset();
    assert_eq!(world.group.lookup(0, &tokens(0, 8), 4), 0);
    assert!(world.compute(0, 8));
    assert_eq!(world.group.lookup(0, &tokens(0, 8), 4), 0);
    world.attach(1, 0, tokens(0, 8), 4);
    assert!(world.compute(1, 8));
    assert_eq!(world.group.lookup(0, &tokens(0, 8), 4), 4);
    world.audit();
    world.check_content();
}

#[test]
fn without_ids_or_without_a_cache_nothing_is_registered() {
    let mut world = World::new(8, 2, 1, 4, 7);
    world.group.tree.exhaust_ids();
    world.attach(0, 0, tokens(0, 8), 4);
    assert!(world.compute(0, 8));
    assert_eq!(world.group.lookup(0, &tokens(0, 8), 4), 0);
    let mut plain = World::new(8, 2, 1, 4, 7);
    plain.group = LayerGroup::new(8, 2, 1, 4, 0, false);
    plain.attach(0, 0, tokens(0, 8), 4);
    assert!(plain.compute(0, 8));
    plain.audit();
    plain.release(0);
    assert_eq!(plain.group.count_cached(), 0);
    assert_eq!(plain.attach(0, 0, tokens(0, 8), 4), 0);
}
