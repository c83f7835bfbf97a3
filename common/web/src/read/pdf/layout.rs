//! Pieces of text, joined into lines and paragraphs by position. Positions are along the line: a turned line is laid out as
//! if it were level.

use std::collections::VecDeque;

use unicode_normalization::UnicodeNormalization;

/// Most comparisons of notes with pieces of one page; otherwise its notes come last.
const MAX_COMPARED: usize = 20_000_000;

/// A piece of text with its start and end.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) text: String,
    /// Direction of the line in degrees.
    pub(super) angle: i32,
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) end: f32,
    pub(super) size: f32,
}

struct Line {
    parts: VecDeque<String>,
    angle: i32,
    start: f32,
    y: f32,
    end: f32,
    size: f32,
    /// It holds letters that run from right to left.
    leftward: bool,
    ends_in_space: bool,
}

/// Puts each note beside or below the text that it was written to, for example the value of a form field beside its label.
pub(super) fn placed(pieces: Vec<Piece>, notes: Vec<Vec<Piece>>) -> Vec<Piece> {
    let mut after: Vec<(usize, f32, Vec<Piece>)> = Vec::new();
    let mut left: Vec<Vec<Piece>> = Vec::new();
    if notes.len().saturating_mul(pieces.len()) > MAX_COMPARED {
        return pieces.into_iter().chain(notes.into_iter().flatten()).collect();
    }
    for mut note in notes {
        let Some(first) = note.first().cloned() else { continue };
        let near = pieces.iter().enumerate().filter(|(_, piece)| {
            let above = piece.y - first.y;
            piece.angle == first.angle
                && !piece.text.trim().is_empty()
                && (above > -0.8 * first.size && above < 3.0 * first.size)
                && (above > 0.8 * first.size || piece.x <= first.x)
        });
        // Beside goes before below; then the nearest counts.
        let rank = |piece: &Piece| {
            let above = piece.y - first.y;
            if above < 0.8 * first.size {
                (0, (first.x - piece.x).abs())
            } else {
                (1, above + 0.1 * (first.x - piece.x).abs())
            }
        };
        let nearest = near.min_by(|(_, one), (_, other)| {
            let (one, other) = (rank(one), rank(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        });
        match nearest {
            Some((index, piece)) => {
                if rank(piece).0 == 0 {
                    let shift = piece.y - first.y;
                    note.iter_mut().for_each(|part| part.y += shift);
                }
                after.push((index, first.x, note));
            }
            None => left.push(note),
        }
    }
    after.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut after = after.into_iter().peekable();
    let mut all = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.into_iter().enumerate() {
        all.push(piece);
        while let Some((_, _, note)) = after.next_if(|(at, _, _)| *at == index) {
            all.extend(note);
        }
    }
    all.extend(left.into_iter().flatten());
    all
}

/// Joins pieces: a gap becomes a space, a line that is nearly full continues in the next one, a larger step starts a
/// paragraph.
pub(super) fn laid_out(pieces: impl Iterator<Item = Piece>) -> String {
    let mut lines: Vec<Line> = Vec::new();
    for piece in pieces.filter(|piece| !piece.text.is_empty()) {
        let leftward = piece.text.chars().any(is_leftward);
        match lines.last_mut() {
            Some(line) if line.is_level_with(&piece) && piece.x >= line.end - piece.size => {
                let gap = piece.x - line.end;
                if gap > 0.18 * piece.size && !line.ends_in_space && !piece.text.starts_with(' ') {
                    line.parts.push_back(" ".to_owned());
                }
                line.ends_in_space = piece.text.ends_with(' ');
                line.parts.push_back(piece.text);
                (line.end, line.size) = (piece.end, line.size.max(piece.size));
                line.leftward |= leftward;
            }
            Some(line)
                if line.is_level_with(&piece)
                    && (line.leftward || leftward)
                    && piece.end <= line.start + 0.5 * piece.size =>
            {
                let spaced = line.parts.front().is_some_and(|text| text.starts_with(' ')) || piece.text.ends_with(' ');
                if line.start - piece.end > 0.18 * piece.size && !spaced {
                    line.parts.push_front(" ".to_owned());
                }
                line.parts.push_front(piece.text);
                (line.start, line.size) = (piece.x, line.size.max(piece.size));
                line.leftward |= leftward;
            }
            _ => lines.push(Line {
                ends_in_space: piece.text.ends_with(' '),
                angle: piece.angle,
                start: piece.x,
                y: piece.y,
                end: piece.end,
                size: piece.size,
                leftward,
                parts: VecDeque::from([piece.text]),
            }),
        }
    }
    lines.retain(|line| line.parts.iter().any(|part| !part.trim().is_empty()));
    let widest = lines.iter().map(|line| line.end).fold(0.0, f32::max);
    let leftmost = lines.iter().map(|line| line.start).fold(f32::INFINITY, f32::min);
    let mut text = String::new();
    let mut before: Option<&Line> = None;
    for line in &lines {
        let words = line.words();
        let words = words.trim();
        if let Some(before) = before {
            let step = before.y - line.y;
            let same =
                before.angle == line.angle && (before.size - line.size).abs() < 0.15 * line.size.max(before.size);
            let follows = same && step > 0.0 && step < 1.6 * line.size;
            let full = match before.leftward {
                true => before.start < leftmost + 0.3 * (widest - leftmost),
                false => before.end > 0.7 * widest,
            };
            let hyphen = text.ends_with('-') && words.chars().next().is_some_and(char::is_lowercase);
            if follows && hyphen {
                text.pop();
            } else if follows && full {
                text.push(' ');
            } else if follows {
                text.push('\n');
            } else {
                text.push_str("\n\n");
            }
        }
        text.push_str(words);
        before = Some(line);
    }
    text
}

impl Line {
    fn is_level_with(&self, piece: &Piece) -> bool {
        self.angle == piece.angle && (self.y - piece.y).abs() < 0.4 * piece.size
    }

    fn words(&self) -> String {
        let shown: String = self.parts.iter().map(String::as_str).collect();
        let read = if self.leftward { in_reading_order(&shown) } else { shown };
        let form = |letter: &char| matches!(letter, '\u{fb00}'..='\u{fb06}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}');
        if !read.chars().any(|letter| form(&letter)) {
            return read;
        }
        // Ligatures and the shapes of letters within words become the letters themselves.
        read.chars().map(|letter| if form(&letter) { letter.nfkc().collect() } else { letter.to_string() }).collect()
    }
}

/// Letters of the scripts that run from right to left.
pub(super) fn is_leftward(letter: char) -> bool {
    matches!(letter, '\u{590}'..='\u{65f}' | '\u{66a}'..='\u{6ef}' | '\u{6fa}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// A line as it is shown from left to right, in the order in which it is read.
fn in_reading_order(shown: &str) -> String {
    let letters: Vec<char> = shown.chars().collect();
    let leftward = letters.iter().filter(|letter| is_leftward(**letter)).count();
    let rightward = letters.iter().filter(|letter| is_rightward(**letter)).count();
    if leftward >= rightward {
        return turned(&letters);
    }
    // Runs from right to left within a line of the other direction.
    let mut read = String::with_capacity(shown.len());
    let mut at = 0;
    while at < letters.len() {
        if !is_leftward(letters[at]) {
            read.push(letters[at]);
            at += 1;
            continue;
        }
        let stop =
            letters[at..].iter().position(|letter| is_rightward(*letter)).map_or(letters.len(), |stop| at + stop);
        let last = letters[at..stop].iter().rposition(|letter| is_leftward(*letter)).map_or(at, |last| at + last);
        read.push_str(&turned(&letters[at..=last]));
        at = last + 1;
    }
    read
}

/// The letters from right to left, but words of other scripts and numbers within them from left to right.
fn turned(letters: &[char]) -> String {
    let mut read = String::with_capacity(letters.len());
    let mut end = letters.len();
    while end > 0 {
        let last = letters[end - 1];
        if !is_rightward(last) && !last.is_numeric() {
            read.push(mirrored(last));
            end -= 1;
            continue;
        }
        // From here to the left: the last place where the run begins with a letter or a digit.
        let mut begin = end - 1;
        let mut words = is_rightward(last);
        let mut at = begin;
        while at > 0 && !is_leftward(letters[at - 1]) {
            at -= 1;
            let letter = letters[at];
            let near = begin - at;
            if is_rightward(letter) {
                words = true;
                begin = at;
            } else if letter.is_numeric() && (words || near == 1 || (near == 2 && ".,:/-".contains(letters[at + 1]))) {
                begin = at;
            } else if !words && near > 1 {
                break;
            }
        }
        read.extend(&letters[begin..end]);
        end = begin;
    }
    read
}

fn is_rightward(letter: char) -> bool {
    letter.is_alphabetic() && !is_leftward(letter)
}

fn mirrored(letter: char) -> char {
    match letter {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '<' => '>',
        '>' => '<',
        '«' => '»',
        '»' => '«',
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_from_right_to_left_are_read_in_order() {
        let cases = [
            ("םלוע םולש", "שלום עולם"),
            ("(2024) תנש", "שנת (2024)"),
            ("12.50 ריחמ", "מחיר 12.50"),
            ("Word 7 תנכות", "תוכנת Word 7"),
            ("The word םולש means peace", "The word שלום means peace"),
        ];
        for (shown, read) in cases {
            assert_eq!(in_reading_order(shown), read, "{shown}");
        }
    }

    #[test]
    fn work_on_a_long_line_is_linear() {
        let begun = std::time::Instant::now();
        for word in ["א1 ", "1 2 ", "- ", "א a "] {
            let line = word.repeat(300_000);
            assert_eq!(in_reading_order(&line).chars().count(), line.chars().count());
        }
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }
}
