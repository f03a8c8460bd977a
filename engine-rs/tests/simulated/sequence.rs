//! What is known of one sequence. Positions and lengths are in tokens.
use super::model::{Model, Solo};
use super::Check;
use crate::check;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Waiting,
    Running,
    /// Over, with rows in flight.
    Draining,
}

pub struct Sequence {
    pub id: u64,
    pub solo: Solo,
    pub max_len: usize,
    pub stop: Vec<u32>,
    pub logits_from: usize,
    pub parent: Option<u64>,
    pub phase: Phase,
    pub seat: usize,
    /// Tokens that were committed, the prompt's among them.
    pub known: usize,
    /// Sampled tokens in flight.
    pub pending: usize,
    pub computed: usize,
    pub planned: usize,
    /// Plans in flight with rows of it.
    pub in_flight: usize,
    /// First position whose logits were not delivered.
    pub need_from: usize,
    pub delivered: usize,
}

impl Sequence {
    pub fn new(id: u64, solo: Solo, max_len: usize, stop: Vec<u32>, logits_from: usize) -> Self {
        Sequence {
            id,
            max_len,
            stop,
            logits_from,
            parent: None,
            phase: Phase::Waiting,
            seat: usize::MAX,
            known: solo.prompt_len,
            pending: 0,
            computed: 0,
            planned: 0,
            in_flight: 0,
            need_from: logits_from,
            delivered: 0,
            solo,
        }
    }

    pub fn live(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Running)
    }

    pub fn resumes(&self) -> bool {
        self.known > self.solo.prompt_len
    }

    /// Rows `first..end` of a committed plan gave these logits.
    pub fn deliver(&mut self, model: &Model, first: usize, logits: &[Option<u64>]) -> Check {
        let end = first + logits.len();
        for position in first.max(self.need_from)..end {
            let wanted = self.solo.logits(model, position);
            check!(
                logits[position - first] == Some(wanted),
                "sequence {:#x}: logits differ at position {position}",
                self.id
            );
            self.delivered += 1;
        }
        self.need_from = self.need_from.max(end);
        Ok(())
    }

    /// It is over; every row that was asked for was delivered once.
    pub fn check_complete(&self) -> Check {
        let wanted = self.known - 1 - self.logits_from;
        let (id, delivered) = (self.id, self.delivered);
        check!(
            delivered == wanted,
            "sequence {id:#x}: {delivered} rows of {wanted} were delivered"
        );
        Ok(())
    }
}
