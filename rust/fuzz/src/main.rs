//! A driver that needs neither libFuzzer nor a nightly compiler.
//!
//! It changes sound inputs at random, and keeps those with a fate that none had before.

use std::collections::HashSet;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Seek, Write};
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use omnizarr_native_fuzz::{HEADER, LARGEST, TARGETS, Target};

const USAGE: &str = "\
usage: fuzz <target|all> [--seconds N] [--seed N]   try inputs
       fuzz <target|all> --input FILE               try one
       fuzz <target|all> --seeds FOLDER             write the sound inputs";

/// Inputs longer than this are cut off.
const LONGEST: usize = 1 << 14;
/// As many inputs are kept at most.
const MOST_KEPT: usize = 1 << 14;

struct Arguments {
    targets: Vec<&'static Target>,
    time: Duration,
    seed: u64,
    input: Option<PathBuf>,
    seeds: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("{USAGE}\ntargets: {}", names.join(", "));
        return ExitCode::from(2);
    };
    if let Err(error) = run(&arguments) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Arguments> {
    let name = arguments.next()?;
    let targets: Vec<_> = TARGETS.iter().filter(|target| name == "all" || name == target.name).collect();
    let mut parsed = Arguments {
        targets,
        time: Duration::from_secs(60),
        seed: RandomState::new().hash_one("omnizarr"),
        input: None,
        seeds: None,
    };
    while let Some(option) = arguments.next() {
        let value = arguments.next()?;
        match option.as_str() {
            "--seconds" => parsed.time = Duration::from_secs(value.parse().ok()?),
            "--seed" => parsed.seed = value.parse().ok()?,
            "--input" => parsed.input = Some(value.into()),
            "--seeds" => parsed.seeds = Some(value.into()),
            _ => return None,
        }
    }
    (!parsed.targets.is_empty()).then_some(parsed)
}

fn run(arguments: &Arguments) -> io::Result<()> {
    if let Some(path) = &arguments.input {
        let input = fs::read(path)?;
        for target in &arguments.targets {
            println!("{}: {:#x}", target.name, (target.run)(&input));
        }
        return Ok(());
    }
    if let Some(folder) = &arguments.seeds {
        for target in &arguments.targets {
            let folder = folder.join(target.name);
            fs::create_dir_all(&folder)?;
            for (number, seed) in (target.seeds)().iter().enumerate() {
                fs::write(folder.join(format!("seed-{number}")), seed)?;
            }
        }
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts");
    fs::create_dir_all(&folder)?;
    let share = arguments.time / u32::try_from(arguments.targets.len()).unwrap_or(1);
    for target in &arguments.targets {
        fuzz(target, share, arguments.seed, &folder)?;
    }
    Ok(())
}

/// Try inputs for some time. The one that is tried lies in a file, which stays if it fails.
fn fuzz(target: &Target, time: Duration, seed: u64, folder: &Path) -> io::Result<()> {
    let path = folder.join(format!("{}-{seed}", target.name));
    let mut kept = (target.seeds)();
    let seeds = kept.len();
    let mut fates = HashSet::new();
    let mut file = File::create(&path)?;
    for input in &kept {
        write(&mut file, input)?;
        fates.insert((target.run)(input));
    }
    let mut random = Random(seed | 1);
    let start = Instant::now();
    let mut count = 0_u64;
    while start.elapsed() < time {
        let input = random.input(&kept);
        write(&mut file, &input)?;
        let Ok(fate) = panic::catch_unwind(|| (target.run)(&input)) else {
            return Err(io::Error::other(format!("{} fails for {}", target.name, path.display())));
        };
        if fates.insert(fate) && kept.len() < MOST_KEPT {
            kept.push(input);
        }
        count += 1;
    }
    fs::remove_file(&path)?;
    println!(
        "{}: {count} inputs in {:.0?} from {seeds} seeds, {} kept, seed {seed}",
        target.name,
        start.elapsed(),
        kept.len() - seeds,
    );
    Ok(())
}

/// Make `input` all that is in the file.
fn write(file: &mut File, input: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(input)?;
    file.set_len(input.len() as u64)
}

/// Numbers that look random (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number less than `bound`; 0 if there is none.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 32).unwrap_or_default() % bound.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[7]
    }

    /// A number that programs easily get wrong.
    fn number(&mut self, near: u32) -> u32 {
        let step = u32::from(self.byte() % 5);
        match self.below(8) {
            0 => step,
            1 => u32::MAX - step,
            2 => (1 << 31) - 2 + step,
            3 => near.wrapping_add(step),
            4 => near.wrapping_sub(step),
            5 => near ^ 1 << self.below(32),
            6 => 1 << self.below(32),
            _ => u32::from(self.byte()) << (8 * self.below(4)),
        }
    }

    /// One of the inputs, changed a little.
    fn input(&mut self, kept: &[Vec<u8>]) -> Vec<u8> {
        let mut input = kept[self.below(kept.len())].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut input, kept);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, kept: &[Vec<u8>]) {
        let at = self.below(input.len());
        // most of what is decided is decided by the first bytes
        let early = HEADER + self.below(input.len().saturating_sub(HEADER).min(48));
        match self.below(11) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.byte(),
            2 if early < input.len() => input[early] ^= 1 << self.below(8),
            3 if early < input.len() => input[early] = self.byte(),
            4 => input.truncate(at),
            5 => input.extend((0..self.below(40)).map(|_| 0)),
            6 => {
                // a number somewhere
                let at = if self.below(2) == 0 { at } else { early };
                if let Some(bytes) = input.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>()) {
                    *bytes = self.number(u32::from_le_bytes(*bytes)).to_le_bytes();
                }
            }
            7 => {
                // how many bytes are asked for
                if let Some(bytes) = input.first_chunk_mut::<HEADER>() {
                    let size = self.number(u32::from_le_bytes(*bytes)) & u32::try_from(LARGEST).unwrap_or(u32::MAX);
                    bytes[..3].copy_from_slice(&size.to_le_bytes()[..3]);
                }
            }
            8 => {
                // go on as another input does
                let other = &kept[self.below(kept.len())];
                input.truncate(at);
                input.extend_from_slice(&other[self.below(other.len())..]);
            }
            9 => {
                // some bytes again
                let length = self.below((input.len() - at).min(64));
                let bytes = input[at..at + length].to_vec();
                let to = self.below(input.len());
                input.splice(to..to, bytes);
            }
            _ => {
                let stop = (at + self.below(16)).min(input.len());
                input.drain(at..stop);
            }
        }
    }
}
