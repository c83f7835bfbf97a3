//! Words with nearly the same meaning: a page often answers in other words than the question. They count less than the word
//! itself, and only if that is missing.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::words;

/// Two stems belong to one family if their common prefix has at least this many letters, and this share of the longer stem:
/// `calibrate` and `calibration`, `efficient` and `efficiency`.
const MIN_PREFIX: usize = 5;
const MIN_PREFIX_SHARE: f64 = 0.6;

/// Groups of near words, one per line. A word may be in several groups.
const NEAR: &str = "\
    run manage lead direct head chair operate own boss
    director ceo manager head chief leader president
    employ employee work worker staff crew personnel
    locate located base based office headquarter address seat site place stand lie situated
    found establish create set introduce
    founder found establish create
    close shut stop halt end finish block
    open start begin launch reopen
    allow permit let may legal
    forbid ban prohibit refuse
    keep store last preserve hold remain
    make build produce manufacture create
    made consist material
    remove delete clear clean purge erase
    detect find discover notice recognise spot
    repair fix mend restore renovate
    change alter modify adjust switch set configure
    protect guard safe shield prevent
    damage harm break destroy hurt
    give yield produce deliver generate supply provide
    need require take use demand
    use utilise apply employ
    fund finance pay sponsor
    cost pay expense worth
    win receive gain award get
    allow enable let
    grow increase rise expand
    fall drop decrease decline shrink
    die death dead kill
    birth born
    live reside inhabit dwell
    inhabitant people live resident
    house home household flat dwelling apartment
    road street route way
    ship boat vessel ferry
    car vehicle automobile lorry truck
    firm company business enterprise corporation
    buy purchase acquire order
    sell offer trade
    big large great size
    small little tiny
    fast quick speed rapid
    begin start commence
    maximum most limit largest highest
    minimum least smallest lowest
    carry hold transport contain capacity
    visit see attend
    teach train educate
    study research trial experiment investigate
    author write
    error mistake fault bug
    reason cause why because
    licence license
    colour color
    install setup set
    measure weigh count
    name call title
    test check examine verify inspect
    doctor physician
    child children kid
    photo picture image
    film movie
    money fund cash grant
    happen occur follow
    help assist support aid";

static LINES: LazyLock<HashMap<String, HashSet<usize>>> = LazyLock::new(|| {
    let mut lines: HashMap<String, HashSet<usize>> = HashMap::new();
    for (number, line) in NEAR.lines().enumerate() {
        for word in line.split_whitespace() {
            lines.entry(words::stem(word)).or_default().insert(number);
        }
    }
    lines
});

/// Whether two stems have nearly the same meaning.
pub fn is_near(one: &str, other: &str) -> bool {
    let of = |word: &str| LINES.get(word);
    let share = of(one).zip(of(other)).is_some_and(|(one, other)| !one.is_disjoint(other));
    share || is_family(one, other)
}

fn is_family(one: &str, other: &str) -> bool {
    if one.starts_with(|letter: char| letter.is_ascii_digit()) {
        return false;
    }
    let shared = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let longer = one.chars().count().max(other.chars().count());
    shared >= MIN_PREFIX && shared as f64 >= longer as f64 * MIN_PREFIX_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_recognised() {
        let near = |one: &str, other: &str| is_near(&words::stem(one), &words::stem(other));
        for (one, other) in [
            ("runs", "managed"),
            ("headquarters", "based"),
            ("calibrated", "calibration"),
            ("efficient", "efficiency"),
            ("repairs", "renovated"),
        ] {
            assert!(near(one, other), "{one} {other}");
        }
        for (one, other) in [("runs", "founded"), ("bank", "bread"), ("passenger", "passport"), ("2019", "20190")] {
            assert!(!near(one, other), "{one} {other}");
        }
    }
}
