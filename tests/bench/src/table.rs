//! The printed tables: at most 100 columns, the ratio first.

/// One measured ratio.
pub struct Row {
    pub what: String,
    pub measured: String,
    pub target: String,
    pub verdict: Verdict,
    /// The absolute figures, for information.
    pub figures: String,
}

/// A figure compared with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Over,
    /// There is no target.
    None,
}

impl Verdict {
    pub fn at_most(measured: f64, target: f64) -> Verdict {
        if measured <= target { Verdict::Pass } else { Verdict::Over }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "PASS",
            Verdict::Over => "over",
            Verdict::None => "",
        }
    }
}

/// Prints ratios, one a line.
pub fn ratios(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    println!();
    for Row { what, measured, target, verdict, figures } in rows {
        println!("{what:42} {measured:>6}  {target:8} {:4}  {figures}", verdict.as_str());
    }
}
