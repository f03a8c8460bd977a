//! A model without floats, and what it gives for a prompt on its own.
use super::{at, mix};

/// Where KV is kept.
pub trait Kv {
    fn get(&self, layer: usize, position: usize) -> u64;
    fn put(&mut self, layer: usize, position: usize, kv: u64);
}

/// A decoder with one layer in each group. The KV of a position is a hash of the salt and of all
/// tokens up to it, because each row hashes the KV that it gathers; a row's logits are a hash too.
/// The salt is hashed like an adapter's weights: KV of another salt is another number.
pub struct Model {
    /// For each layer: how many positions a row sees, its own included; `None`: all.
    pub windows: Vec<Option<usize>>,
    pub vocab: u32,
    /// How often other ones were loaded.
    pub weights: u64,
}

impl Model {
    /// The logits of a row, whose own KV is stored on the way.
    pub fn forward(&self, salt: u64, token: u32, position: usize, kv: &mut impl Kv) -> u64 {
        let seen = mix(mix(u64::from(token)) ^ mix(salt ^ 0x5a17));
        let mut x = mix(seen ^ mix(self.weights) ^ at(position));
        for (layer, window) in self.windows.iter().enumerate() {
            let first = window.map_or(0, |seen| (position + 1).saturating_sub(seen));
            let past = (first..position).fold(0u64, |sum, p| {
                sum.wrapping_add(mix(kv.get(layer, p) ^ at(p)))
            });
            kv.put(layer, position, mix(x ^ past));
            let own = mix(kv.get(layer, position) ^ at(position));
            x = mix(x ^ past.wrapping_add(own));
        }
        x
    }

    /// The token that the sample with this key draws from a row of logits.
    pub fn sample(&self, logits: u64, key: u64) -> u32 {
        (mix(logits ^ mix(key ^ 0x0005_a3e9)) % u64::from(self.vocab)) as u32
    }
}

/// What a prompt gives alone: tokens and logits, position by position, as far as was asked.
pub struct Solo {
    tokens: Vec<u32>,
    pub prompt_len: usize,
    pub salt: u64,
    pub key: u64,
    logits: Vec<u64>,
    kv: Contiguous,
}

struct Contiguous(Vec<Vec<u64>>);

impl Kv for Contiguous {
    fn get(&self, layer: usize, position: usize) -> u64 {
        self.0[layer][position]
    }

    fn put(&mut self, layer: usize, position: usize, kv: u64) {
        assert_eq!(position, self.0[layer].len());
        self.0[layer].push(kv);
    }
}

impl Solo {
    pub fn new(model: &Model, prompt: Vec<u32>, salt: u64, key: u64) -> Self {
        Solo {
            prompt_len: prompt.len(),
            tokens: prompt,
            salt,
            key,
            logits: Vec::new(),
            kv: Contiguous(vec![Vec::new(); model.windows.len()]),
        }
    }

    pub fn prompt(&self) -> Vec<u32> {
        self.tokens[..self.prompt_len].to_vec()
    }

    pub fn logits(&mut self, model: &Model, position: usize) -> u64 {
        while self.logits.len() <= position {
            let next = self.logits.len();
            let x = model.forward(self.salt, self.tokens[next], next, &mut self.kv);
            self.logits.push(x);
            if next + 1 == self.tokens.len() {
                self.tokens.push(model.sample(x, self.key));
            }
        }
        self.logits[position]
    }

    /// The prompt's token at this position, or the one that was drawn for it.
    pub fn token(&mut self, model: &Model, position: usize) -> u32 {
        if position >= self.tokens.len() {
            self.logits(model, position - 1);
        }
        self.tokens[position]
    }

    /// The token at this position, which was asked for before or is the prompt's.
    pub fn known(&self, position: usize) -> u32 {
        self.tokens[position]
    }

    /// A hash of the first `end` tokens, all of them known.
    pub fn prefix(&self, end: usize) -> u64 {
        let known = &self.tokens[..end];
        known.iter().fold(end as u64, |hash, token| {
            mix(hash ^ mix(u64::from(*token) + 1))
        })
    }
}
