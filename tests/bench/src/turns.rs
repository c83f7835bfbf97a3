//! Two things measured in turns, so that whatever slows the machine down slows both.

use std::time::Duration;

/// What came of it: the medians over all rounds.
pub struct Turns {
    pub a: Duration,
    pub b: Duration,
    /// Median of each round's own ratio of A to B.
    pub ratio: f64,
}

/// Lets A and B take turns. Each call is one round's work of one side and returns what a single piece of it cost.
pub fn take_turns<E>(
    rounds: usize,
    mut a: impl FnMut() -> Result<Duration, E>,
    mut b: impl FnMut() -> Result<Duration, E>,
) -> Result<Turns, E> {
    // Once unmeasured: caches, branch predictors and allocators get used to it.
    a()?;
    b()?;
    let mut both = Vec::with_capacity(rounds);
    for round in 0..rounds {
        // Whoever goes second finds the machine a little warmer, so they change places.
        both.push(if round % 2 == 0 {
            let first = a()?;
            (first, b()?)
        } else {
            let first = b()?;
            (a()?, first)
        });
    }
    let ratios = both.iter().map(|(a, b)| a.as_secs_f64() / b.as_secs_f64());
    Ok(Turns {
        a: median(both.iter().map(|(a, _)| *a)),
        b: median(both.iter().map(|(_, b)| *b)),
        ratio: median(ratios),
    })
}

/// The middle value; of an even number, the upper of the two in the middle.
pub fn median<T: PartialOrd + Copy + Default>(values: impl IntoIterator<Item = T>) -> T {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len() / 2).copied().unwrap_or_default()
}

pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// How many such pieces a CPU does in a second.
pub fn per_cpu_second(duration: Duration) -> u64 {
    (1.0 / duration.as_secs_f64()) as u64
}
