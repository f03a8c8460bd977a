//! A small pool of persistent threads with a low-latency start: workers spin for a while after each
//! job and only then sleep. A job is a number of independent tasks; who runs which is free, so a
//! task must write what no other task touches, and no sum is ever split over tasks. Each thread
//! begins with a range of its own, so that it reads adjacent weights, and then helps the others.

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use crate::float_env::FloatEnv;
use crate::lanes::Block;
use crate::memory::{zeroed, Error};

type Task<'a> = &'a (dyn Fn(&mut [Block], usize) + Sync);

/// Spins before a waiting thread sleeps or yields: tens of microseconds.
const SPINS: u32 = 2_000;

#[derive(Clone, Copy)]
struct Job {
    run: Task<'static>,
    tasks: usize,
}

struct Shared {
    /// Number of the job in the upper half, then `OPEN`, then how many workers are in it.
    gate: AtomicU64,
    job: Mutex<Option<Job>>,
    /// Next task of each thread's range, counted from the range's start.
    next: Vec<Counter>,
    sleepers: Mutex<usize>,
    wake: Condvar,
    stop: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// On cache lines of its own, since all threads write.
#[repr(align(128))]
struct Counter(AtomicUsize);

/// Set while workers may enter the job.
const OPEN: u64 = 1 << 31;
/// Workers in the job.
const INSIDE: u64 = OPEN - 1;

/// Threads that run tasks; the calling thread is one of them.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    scratch: Vec<Block>,
}

impl Pool {
    /// `threads` at least 1; each gets `scratch_blocks` blocks that its tasks may use.
    pub fn new(threads: usize, scratch_blocks: usize) -> Result<Self, Error> {
        if threads == 0 || threads > 1024 {
            return Err(Error::new("threads must be between 1 and 1024"));
        }
        let shared = Arc::new(Shared {
            gate: AtomicU64::new(0),
            job: Mutex::new(None),
            next: (0..threads).map(|_| Counter(AtomicUsize::new(0))).collect(),
            sleepers: Mutex::new(0),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let mut pool = Self {
            shared,
            workers: Vec::new(),
            scratch: zeroed(scratch_blocks)?,
        };
        for thread in 1..threads {
            let (shared, mut scratch) = (pool.shared.clone(), zeroed(scratch_blocks)?);
            let worker = std::thread::Builder::new()
                .name("vosti-cpu".into())
                .spawn(move || work(&shared, thread, &mut scratch))
                .map_err(|e| Error::new(format!("a worker thread could not be started: {e}")))?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `run(scratch, task)` for every task in `0..tasks` and returns when all are done. A
    /// worker that comes too late to enter the job is not waited for, so a busy machine costs
    /// little. A panic of a task is raised again here.
    pub fn run(&mut self, tasks: usize, run: Task<'_>) {
        if self.workers.is_empty() || tasks <= 1 {
            (0..tasks).for_each(|task| run(&mut self.scratch, task));
            return;
        }
        let shared = &*self.shared;
        // SAFETY: the lifetime is lengthened only until this call returns, which is after the gate
        // was closed and every worker that had entered has left, whether or not a task panicked.
        let run: Task<'static> = unsafe { std::mem::transmute::<Task<'_>, Task<'static>>(run) };
        let job = Job { run, tasks };
        *shared.job.lock().unwrap() = Some(job);
        for next in &shared.next {
            next.0.store(0, Ordering::Relaxed);
        }
        let number = shared.gate.load(Ordering::Relaxed) >> 32;
        shared
            .gate
            .store((number + 1) << 32 | OPEN, Ordering::SeqCst);
        if *shared.sleepers.lock().unwrap() > 0 {
            shared.wake.notify_all();
        }
        run_tasks(shared, job, 0, &mut self.scratch);
        let mut spins = 0;
        let mut gate = shared.gate.fetch_and(!OPEN, Ordering::AcqRel);
        while gate & INSIDE != 0 {
            pause(&mut spins);
            gate = shared.gate.load(Ordering::Acquire);
        }
        *shared.job.lock().unwrap() = None;
        let panic = shared.panic.lock().unwrap().take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(self.shared.sleepers.lock().unwrap());
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches its tasks' panics, so joining cannot fail.
            let _ = worker.join();
        }
    }
}

fn pause(spins: &mut u32) {
    *spins += 1;
    if *spins < SPINS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

/// Runs the tasks that are left: first those of the thread's own range, then those of the others.
fn run_tasks(shared: &Shared, job: Job, thread: usize, scratch: &mut [Block]) {
    let threads = shared.next.len();
    let start = |range: usize| job.tasks * range / threads;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for range in (thread..threads).chain(0..thread) {
            let (first, end) = (start(range), start(range + 1));
            loop {
                let task = first + shared.next[range].0.fetch_add(1, Ordering::Relaxed);
                if task >= end {
                    break;
                }
                (job.run)(scratch, task);
            }
        }
    }));
    if let Err(panic) = outcome {
        *shared.panic.lock().unwrap() = Some(panic);
    }
}

/// Enters a job other than `seen` and returns its number; None when the pool is dropped.
fn enter(shared: &Shared, seen: u64) -> Option<u64> {
    let try_enter = || {
        let gate = shared.gate.load(Ordering::SeqCst);
        let entered = (gate & OPEN != 0 && gate >> 32 != seen).then_some(gate + 1)?;
        let exchange =
            shared
                .gate
                .compare_exchange(gate, entered, Ordering::AcqRel, Ordering::Relaxed);
        exchange.ok().map(|gate| gate >> 32)
    };
    for _ in 0..SPINS {
        if let Some(number) = try_enter() {
            return Some(number);
        }
        std::hint::spin_loop();
    }
    let mut sleepers = shared.sleepers.lock().unwrap();
    *sleepers += 1;
    let entered = loop {
        if shared.stop.load(Ordering::SeqCst) {
            break None;
        }
        if let Some(number) = try_enter() {
            break Some(number);
        }
        sleepers = shared.wake.wait(sleepers).unwrap();
    };
    *sleepers -= 1;
    entered
}

fn work(shared: &Shared, thread: usize, scratch: &mut [Block]) {
    let _env = FloatEnv::enter();
    let mut seen = 0;
    while let Some(number) = enter(shared, seen) {
        seen = number;
        let job = *shared.job.lock().unwrap();
        if let Some(job) = job {
            run_tasks(shared, job, thread, scratch);
        }
        shared.gate.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for threads in [1, 2, 5] {
            let mut pool = Pool::new(threads, 1).unwrap();
            for tasks in [0, 1, 2, 7, 1000] {
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                pool.run(tasks, &|_, task| {
                    counts[task].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts
                    .iter()
                    .all(|count| count.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn a_panic_is_raised_and_the_pool_lives_on() {
        let mut pool = Pool::new(3, 0).unwrap();
        for bad in [0, 50] {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.run(100, &|_, task| assert!(task != bad, "planted"));
            }));
            assert!(outcome.is_err());
            pool.run(100, &|_, _| {});
        }
    }
}
