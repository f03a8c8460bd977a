//! An audit of the arrays that shares no code with the pool's operations.
use super::BlockPool;

impl BlockPool {
    /// Number of holders of block `b`.
    pub(crate) fn count(&self, b: u32) -> u32 {
        self.refs[b as usize]
    }

    /// The queue, walked forwards; checked against the walk backwards, the counts and the counters.
    pub(crate) fn queue(&self) -> Vec<u32> {
        let head = self.refs.len() as u32;
        let mut order = Vec::new();
        let mut b = self.next[head as usize];
        while b != head {
            assert!(order.len() < self.refs.len(), "the queue does not end");
            assert_eq!(self.refs[b as usize], 0, "block {b} is queued and held");
            order.push(b);
            b = self.next[b as usize];
        }
        let mut back = Vec::new();
        let mut b = self.prev[head as usize];
        while b != head && back.len() <= order.len() {
            back.push(b);
            b = self.prev[b as usize];
        }
        back.reverse();
        assert_eq!(order, back);
        let unheld = self.refs.iter().filter(|&&r| r == 0).count();
        assert_eq!(
            order.len(),
            unheld,
            "a block that nobody holds is not queued"
        );
        assert_eq!(self.free as usize, order.len());
        assert!(self.plain <= self.free);
        order
    }
}
