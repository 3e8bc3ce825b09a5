//! A hostile or broken controller, by the million: bytes go the whole way from the wire to what is in
//! force, and the hard limits (P8) must hold whatever they are.
//!
//! The fuzzer is our own: it makes messages by the contract's structure, with values from the edges
//! of every range, damages their bytes, and keeps what led to something not seen before (a refusal in
//! new words, a new state of a route, a new order of two such events) to damage it further.
//!
//! Five seconds of it are an ordinary test. For longer, in an optimised build:
//!
//! ```text
//! HEDGEROW_FUZZ_SECONDS=300 cargo test --release -p hedgerow-agent --lib fuzz -- --nocapture
//! ```
//!
//! What failed is made small, written to `agent/fuzz/regressions` and played again for ever.

mod dice;
mod frames;
mod messages;
mod world;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::dice::Dice;
use self::frames::{Frame, mutate, read, write};
use self::world::World;

/// Inputs kept to be damaged further. Enough for every outcome seen in an hour.
const CORPUS_MAX: usize = 20_000;

/// Inputs tried at least.
const EXECUTIONS_MIN: u64 = 200;

fn regressions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions")
}

/// Plays an input to its end; what came of it, as numbers that are equal for equal events.
fn play(frames: &[Frame]) -> BTreeSet<u64> {
    let mut world = World::new();
    for frame in frames {
        world.play(frame);
    }
    world.into_outcomes()
}

fn fails(frames: &[Frame]) -> bool {
    catch_unwind(AssertUnwindSafe(|| play(frames))).is_err()
}

/// The same failure with fewer frames.
fn minimised(mut frames: Vec<Frame>) -> Vec<Frame> {
    let mut at = 0;
    while at < frames.len() {
        let mut fewer = frames.clone();
        fewer.remove(at);
        if fails(&fewer) {
            frames = fewer;
        } else {
            at += 1;
        }
    }
    frames
}

/// What a run did.
#[derive(Debug, Default)]
struct Run {
    executions: u64,
    frames: u64,
    outcomes: BTreeSet<u64>,
    corpus: Vec<Vec<Frame>>,
}

impl Run {
    fn next(&self, dice: &mut Dice) -> Vec<Frame> {
        if self.corpus.is_empty() || dice.percent(10) {
            return frames::fresh(dice);
        }
        let any = |dice: &mut Dice| &self.corpus[dice.below(self.corpus.len() as u64) as usize];
        let mut frames = any(dice).clone();
        let other = any(dice).clone();
        mutate(&mut frames, &other, dice);
        frames
    }

    fn step(&mut self, dice: &mut Dice) {
        let frames = self.next(dice);
        self.executions += 1;
        self.frames += frames.len() as u64;
        let Ok(outcomes) = catch_unwind(AssertUnwindSafe(|| play(&frames))) else {
            let small = minimised(frames);
            let bytes = write(&small);
            let name = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
            std::fs::create_dir_all(regressions()).unwrap();
            let path = regressions().join(format!("{name:016x}.bin"));
            std::fs::write(&path, bytes).unwrap();
            panic!("kept as {}: {small:?}", path.display());
        };
        let before = self.outcomes.len();
        self.outcomes.extend(outcomes);
        if self.outcomes.len() > before && self.corpus.len() < CORPUS_MAX {
            self.corpus.push(frames);
        }
    }

    fn summary(&self, took: Duration) -> String {
        let mut text = String::new();
        let (corpus, outcomes) = (self.corpus.len(), self.outcomes.len());
        let rate = self.executions as f64 / took.as_secs_f64();
        write!(
            text,
            "{} executions ({} frames) in {:.0} s, {rate:.0}/s; {outcomes} distinct outcomes; corpus {corpus}",
            self.executions,
            self.frames,
            took.as_secs_f64(),
        )
        .unwrap();
        text
    }
}

#[expect(clippy::print_stdout, reason = "a run of minutes says how far it is")]
fn say(text: &str) {
    println!("{text}");
}

#[test]
fn p08_whatever_bytes_a_controller_sends_the_hard_limits_hold() {
    let seconds = std::env::var("HEDGEROW_FUZZ_SECONDS");
    let seconds = seconds.map_or(5, |text| text.parse().unwrap());
    let seed = std::env::var("HEDGEROW_FUZZ_SEED");
    let seed = seed.map_or_else(|_| crate::chance::draw(), |text| text.parse().unwrap());
    say(&format!(
        "fuzzing for {seconds} s, HEDGEROW_FUZZ_SEED={seed}"
    ));
    let dice = &mut Dice::new(seed);
    let (mut run, began) = (Run::default(), Instant::now());
    let mut told = began;
    // On a machine that is busy with other things it takes longer, and does as much.
    while began.elapsed() < Duration::from_secs(seconds) || run.executions < EXECUTIONS_MIN {
        run.step(dice);
        if told.elapsed() >= Duration::from_secs(30) {
            told = Instant::now();
            say(&run.summary(began.elapsed()));
        }
    }
    say(&run.summary(began.elapsed()));
    assert!(run.outcomes.len() > 100, "it reaches what it is to try");
}

#[test]
fn p08_what_once_failed_holds() {
    let Ok(entries) = std::fs::read_dir(regressions()) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "bin") {
            let frames = read(&std::fs::read(&path).unwrap());
            assert!(!frames.is_empty(), "{} cannot be read", path.display());
            play(&frames);
        }
    }
}

#[test]
fn an_input_is_the_same_when_read_again() {
    let dice = &mut Dice::new(1);
    for _ in 0..200 {
        let frames = frames::fresh(dice);
        assert_eq!(read(&write(&frames)), frames);
    }
}
