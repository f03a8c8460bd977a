//! A small pool of persistent threads with a low-latency start: workers spin for a while after each
//! job and only then sleep. A job is a number of independent tasks; who runs which is free, so a
//! task must write what no other task touches, and no sum is ever split over tasks.

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
    /// Counts jobs; workers wait for it to change.
    epoch: AtomicU64,
    job: Mutex<Option<Job>>,
    next_task: AtomicUsize,
    running: AtomicUsize,
    sleepers: Mutex<usize>,
    wake: Condvar,
    stop: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

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
            epoch: AtomicU64::new(0),
            job: Mutex::new(None),
            next_task: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
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
        for _ in 1..threads {
            let (shared, mut scratch) = (pool.shared.clone(), zeroed(scratch_blocks)?);
            let worker = std::thread::Builder::new()
                .name("vosti-cpu".into())
                .spawn(move || work(&shared, &mut scratch))
                .map_err(|e| Error::new(format!("a worker thread could not be started: {e}")))?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `run(scratch, task)` for every task in `0..tasks` and returns when all are done. A
    /// panic of a task is raised again here.
    pub fn run(&mut self, tasks: usize, run: Task<'_>) {
        if self.workers.is_empty() || tasks <= 1 {
            (0..tasks).for_each(|task| run(&mut self.scratch, task));
            return;
        }
        let shared = &*self.shared;
        // SAFETY: the lifetime is lengthened only until this call returns, which is after every
        // worker has left the job (`running` is 0), whether or not a task panicked.
        let run: Task<'static> = unsafe { std::mem::transmute::<Task<'_>, Task<'static>>(run) };
        let job = Job { run, tasks };
        *shared.job.lock().unwrap() = Some(job);
        shared.next_task.store(0, Ordering::Relaxed);
        shared.running.store(self.workers.len(), Ordering::Relaxed);
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        if *shared.sleepers.lock().unwrap() > 0 {
            shared.wake.notify_all();
        }
        run_tasks(shared, job, &mut self.scratch);
        let mut spins = 0;
        while shared.running.load(Ordering::Acquire) != 0 {
            pause(&mut spins);
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
        self.shared.epoch.fetch_add(1, Ordering::SeqCst);
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

fn run_tasks(shared: &Shared, job: Job, scratch: &mut [Block]) {
    let outcome = catch_unwind(AssertUnwindSafe(|| loop {
        let task = shared.next_task.fetch_add(1, Ordering::Relaxed);
        if task >= job.tasks {
            break;
        }
        (job.run)(scratch, task);
    }));
    if let Err(panic) = outcome {
        *shared.panic.lock().unwrap() = Some(panic);
    }
}

/// Waits until the epoch is not `seen`: spins, then sleeps.
fn wait(shared: &Shared, seen: u64) -> u64 {
    for _ in 0..SPINS {
        let epoch = shared.epoch.load(Ordering::Acquire);
        if epoch != seen {
            return epoch;
        }
        std::hint::spin_loop();
    }
    let mut sleepers = shared.sleepers.lock().unwrap();
    *sleepers += 1;
    while shared.epoch.load(Ordering::SeqCst) == seen {
        sleepers = shared.wake.wait(sleepers).unwrap();
    }
    *sleepers -= 1;
    shared.epoch.load(Ordering::Acquire)
}

fn work(shared: &Shared, scratch: &mut [Block]) {
    let _env = FloatEnv::enter();
    let mut seen = 0;
    loop {
        seen = wait(shared, seen);
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let job = *shared.job.lock().unwrap();
        if let Some(job) = job {
            run_tasks(shared, job, scratch);
        }
        shared.running.fetch_sub(1, Ordering::Release);
    }
}
