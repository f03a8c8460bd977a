//! Any calls in any order, each checked: rows of logits against the solo run of the request, every
//! plan against what is known from outside, blocks against who holds them.
//!
//! A failure prints the line that repeats it. `VOSTI_CALLS` asks for more calls for each shape,
//! `VOSTI_SEED` for others: `VOSTI_CALLS=2000000 cargo test --release -p vosti-engine --test
//! random_calls -- --nocapture` prints how many were made in a minute.

mod simulated;

use simulated::device::Fault;
use simulated::world::{Shape, World};
use simulated::{Check, Random};
use std::time::Instant;

const CALLS: usize = 8_000;
const IN_FLIGHT: usize = 4;

fn number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().expect(variable))
}

/// Pools that hold two requests, a few, or more than are ever asked for; groups with windows.
fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    let mut both = |groups: &[(u32, Option<usize>)], sizes: [u32; 4]| {
        let [block_size, max_seqs, budget, max_len] = sizes;
        for prefix_cache in [true, false] {
            shapes.push(Shape {
                groups: groups.to_vec(),
                block_size,
                max_seqs,
                budget,
                max_len,
                prefix_cache,
            });
        }
    };
    both(&[(8, None)], [4, 6, 9, 24]);
    both(&[(30, None), (26, Some(5))], [1, 4, 5, 24]);
    both(&[(13, Some(3)), (40, None), (14, Some(9))], [2, 5, 7, 24]);
    both(&[(200, None)], [3, 8, 32, 24]);
    both(&[(9, None), (9, Some(4))], [5, 3, 3, 24]);
    both(&[(4, Some(1))], [8, 2, 1, 32]);
    both(&[(5_000, None), (3_000, Some(20))], [4, 24, 64, 80]);
    shapes
}

/// One call of a random kind, mostly to schedule and to commit.
fn call(world: &mut World, random: &mut Random) -> Check {
    let unfinished = world.unfinished();
    let roomy = unfinished.len() < 2 * world.shape.max_seqs as usize;
    let flies = !world.flights.is_empty();
    world.seen.calls += 1;
    match random.below(1000) {
        0..200 if roomy => world.add(random),
        200..230 if roomy && !unfinished.is_empty() => world.fork(random.pick(&unfinished)),
        230..240 if !unfinished.is_empty() => world.abort(random.pick(&unfinished)),
        240..242 => world.reset_cache(),
        242 => {
            if random.one_in(2) {
                world.drain()?;
            }
            world.load_weights()
        }
        243..250 => world.call_wrongly(),
        250..275 if flies => world.cancel(random.one_in(2)),
        275..400 if flies => {
            world.run_next();
            Ok(())
        }
        400..680 if flies => world.commit(),
        _ if world.flights.len() < IN_FLIGHT => world.schedule().map(|_| ()),
        _ => world.commit(),
    }
}

/// This many calls, then every sequence ends.
fn random_calls(world: &mut World, seed: u64, calls: usize) -> Check {
    let mut random = Random::new(seed);
    for n in 0..calls {
        call(world, &mut random).map_err(|why| format!("call {n}: {why}"))?;
    }
    world.drain().map_err(|why| format!("at the end: {why}"))
}

#[test]
fn any_calls_in_any_order() {
    let (seed, calls) = (
        number("VOSTI_SEED", 1),
        number("VOSTI_CALLS", CALLS as u64) as usize,
    );
    let (start, mut made, mut delivered) = (Instant::now(), 0, 0);
    for shape in shapes() {
        let mut world = World::new(shape.clone(), None);
        if let Err(why) = random_calls(&mut world, seed, calls) {
            let again = format!("VOSTI_SEED={seed} VOSTI_CALLS={calls}");
            panic!(
                "{why}\n{shape:?}\nagain: {again} cargo test -p vosti-engine --test random_calls"
            );
        }
        println!("{:?} {:?} {}", shape.groups, world.seen, world.preemptions);
        made += world.seen.calls;
        delivered += world.seen.delivered;
    }
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    let (per_minute, rows) = (made as f64 / minutes, delivered as f64 / minutes);
    println!("{per_minute:.0} calls and {rows:.0} compared rows a minute");
}

#[test]
fn all_kinds_of_calls_were_made() {
    let [tiny, roomy, windows] = [0, 6, 2].map(|shape: usize| {
        let mut world = World::new(shapes()[shape].clone(), None);
        random_calls(&mut world, 3, CALLS).expect("no difference");
        world
    });
    let seen = &tiny.seen;
    assert!(tiny.preemptions > 100 && seen.preempted_with_output > 50);
    assert!(seen.placeholders > 500 && seen.finished > 200 && seen.delivered > 2_000);
    assert!(seen.cancelled > 50 && seen.aborted > 20 && seen.forked > 50 && seen.resets > 5);
    assert!(seen.loads > 2);
    assert!(seen.refused > 20 && seen.resumed_with_hit > 20);
    assert!(roomy.seen.hits > 500);
    assert!(windows.seen.slid > 1_000 && windows.seen.hits > 100);
}

/// Blocks that the engine holds for nobody, or gives away too early, are noticed.
#[test]
fn the_audit_counts_references() {
    let mut world = World::new(shapes()[0].clone(), None);
    world.add(&mut Random::new(1)).expect("a request that fits");
    assert_eq!(world.schedule(), Ok(true));
    assert_eq!(world.audit(), Ok(()));
    let held = world.groups[0].rows[0].clone();
    world.groups[0].release(0);
    let leak = format!("{} blocks are referenced, 0 held", held.len());
    assert_eq!(world.audit(), Err(leak));
    world.groups[0].rows[0] = (0..8).collect();
    world.groups[0].holders.fill(1);
    assert!(world.audit().is_err_and(|why| why.ends_with("8 held")));
}

/// However long a sequence gets, a group with a window holds the blocks that its next rows see, the
/// block before these at most, and those that the rows in flight are written to.
#[test]
fn a_window_holds_a_bounded_number_of_blocks() {
    let (size, window, budget) = (4, 10, 8);
    let shape = Shape {
        groups: vec![(100, None), (100, Some(window))],
        block_size: size as u32,
        max_seqs: 1,
        budget: budget as u32,
        max_len: 400,
        prefix_cache: false,
    };
    let mut world = World::new(shape, None);
    let prompt = (0..200).map(|p| p % 3).collect();
    let added = world.add_request(prompt, 199, vec![], 0, 0);
    assert_eq!(added, Ok(()));
    let bound = (window - 1 + budget).div_ceil(size) + 2;
    let (mut most, mut longest) = ([0, 0], 0);
    while world.schedule().expect("no difference") {
        for (most, group) in most.iter_mut().zip(&world.groups) {
            *most = group.held().max(*most);
        }
        longest = world
            .sequences
            .values()
            .map(|s| s.planned)
            .fold(longest, usize::max);
        world.commit().expect("no difference");
    }
    assert_eq!(longest, 398);
    assert_eq!(most[0], 100);
    assert!(most[1] <= bound, "{} blocks, more than {bound}", most[1]);
}

const FAULTS: [Fault; 10] = [
    Fault::ForgetsWrite,
    Fault::LosesUpdate,
    Fault::SharesBlock,
    Fault::StaleToken,
    Fault::KeepsCancelled,
    Fault::SwapsRows,
    Fault::IgnoresSalt,
    Fault::CommitsOther,
    Fault::LoadsSilently,
    Fault::NarrowWindow,
];

/// Each mistake is found, and by what it does to a request's rows or tokens.
#[test]
fn planted_faults_are_found() {
    for fault in FAULTS {
        let mut world = World::new(shapes()[4].clone(), Some(fault));
        let found = random_calls(&mut world, 5, 50 * CALLS);
        assert!(world.device.planted > 0, "{fault:?} had no chance");
        let why = found.expect_err(&format!("{fault:?} was not found"));
        println!("{fault:?}: {why}");
        let seen = ["logits differ", "another token", "another salt"];
        assert!(
            seen.iter().any(|said| why.contains(said)),
            "{fault:?}: {why}"
        );
    }
}
