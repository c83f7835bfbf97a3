//! Measures two things in turns, so that anything that slows the machine down affects both.

use std::time::Duration;

/// The result: the medians over all rounds.
pub struct Turns {
    pub a: Duration,
    pub b: Duration,
    /// Median of each round's own ratio of A to B.
    pub ratio: f64,
}

/// Lets A and B take turns. Each call is one round of one side and returns the cost of a single piece of work.
pub fn take_turns<E>(
    rounds: usize,
    mut a: impl FnMut() -> Result<Duration, E>,
    mut b: impl FnMut() -> Result<Duration, E>,
) -> Result<Turns, E> {
    // One unmeasured round first, to warm up caches, branch predictors and allocators.
    a()?;
    b()?;
    let mut both = Vec::with_capacity(rounds);
    for round in 0..rounds {
        // The second one finds a slightly warmer machine, so they alternate.
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

/// The median; of an even number of values, the upper one of the two in the middle.
pub fn median<T: PartialOrd + Copy + Default>(values: impl IntoIterator<Item = T>) -> T {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len() / 2).copied().unwrap_or_default()
}

pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Pieces of work of this duration that a CPU does per second.
pub fn per_cpu_second(duration: Duration) -> u64 {
    (1.0 / duration.as_secs_f64()) as u64
}
