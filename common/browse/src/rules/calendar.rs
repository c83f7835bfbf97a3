//! Dates, times and colours: set, typed, or chosen in the calendar that a click opens.

use super::Run;
use super::dates::{Date, shown_month, time as clock};
use super::fields::{fill, type_into};
use super::find::{Found, Page};
use super::run::{Memo, Move, click, not_found, wait_or};
use super::step::Value;
use super::target::{Kind, Target};
use super::words::fold;
use crate::action::Action;
use crate::view::Node;

/// A date field: set, typed, or chosen in the calendar that a click opens.
pub fn date(page: &Page<'_>, date: Date, field: Option<&Target>, memo: &mut Memo, run: &mut Run) -> Move {
    let native = page.all_where(|n| n.kind.as_deref() == Some("date"));
    let named = field.filter(|f| !f.is_bare()).and_then(|f| page.one(f, None)).filter(|f| f.sure);
    let named = named.filter(|f| f.node.kind.as_deref() == Some("date"));
    if native.len() > 1 && named.is_none() {
        return wait_or(memo, not_found(field.map_or("which date", |f| &f.said)));
    }
    if let Some(one) = named.as_ref().or(native.first()) {
        if one.node.value.as_deref() == Some(date.iso().as_str()) {
            return Move::Finished;
        }
        return Move::Act(Action::Set { id: one.id.to_owned(), value: date.iso() });
    }
    let said = field.filter(|f| !f.is_bare()).and_then(|f| page.one(f, None));
    let about = |f: &&Found<'_>| {
        [f.node.name.as_str(), page.label(f.index), f.node.hint.as_deref().unwrap_or("")]
            .iter()
            .any(|t| t.to_lowercase().contains("date"))
    };
    let fields = page.all_where(Node::takes_text);
    let found = said
        .or_else(|| fields.iter().find(about).cloned())
        .or_else(|| fields.first().filter(|_| fields.len() == 1).cloned());
    if memo.phase == 3 {
        let held = found.as_ref().and_then(|f| f.node.value.as_deref()).and_then(Date::read);
        run.sure &= held == Some(date);
        return Move::Finished;
    }
    if let Some(move_) = calendar(page, date, memo) {
        return move_;
    }
    let Some(found) = found else { return wait_or(memo, not_found("a date field")) };
    let typed = written(date, found.node.placeholder.as_deref().unwrap_or_default());
    if found.node.value.as_deref().and_then(Date::read) == Some(date) {
        return Move::Finished;
    }
    let picker = found.node.is("readonly") || found.node.hint.as_deref().is_some_and(|h| h.contains("datepicker"));
    if memo.waits > 1 || memo.acted {
        return wait_or(memo, not_found("a calendar"));
    }
    memo.acted = true;
    Move::Act(if picker { click(found.id) } else { type_into(found.id, &typed, false) })
}

/// A date as the field shows that it is written.
fn written(date: Date, placeholder: &str) -> String {
    let low = placeholder.to_lowercase();
    let Date { year, month, day } = date;
    if low.starts_with("yyyy-mm") {
        date.iso()
    } else if low.starts_with("dd/mm") {
        format!("{day:02}/{month:02}/{year:04}")
    } else if low.starts_with("dd.mm") {
        format!("{day:02}.{month:02}.{year:04}")
    } else {
        format!("{month:02}/{day:02}/{year:04}")
    }
}

/// The move in an open calendar; `None` if none is open.
fn calendar(page: &Page<'_>, date: Date, memo: &mut Memo) -> Option<Move> {
    let nodes = &page.view.nodes;
    let shown = (0..nodes.len()).find_map(|at| {
        let two = nodes.get(at + 1).map(|next| format!("{} {}", nodes[at].words(), next.words()));
        shown_month(nodes[at].words()).or_else(|| two.and_then(|two| shown_month(&two)))
    })?;
    let named = |names: &[&str]| {
        page.elements().find(|(_, n, _)| names.iter().any(|name| fold(&n.name).starts_with(name)) && !n.is("disabled"))
    };
    let turn = match shown.cmp(&date.months()) {
        std::cmp::Ordering::Less => named(&["next", ">", "›", "»"]),
        std::cmp::Ordering::Greater => named(&["prev", "<", "‹", "«"]),
        std::cmp::Ordering::Equal => {
            let day = date.day.to_string();
            let cell = page.elements().find(|(_, n, _)| {
                n.name.trim() == day
                    && !n.is("disabled")
                    && (n.cell.is_some() || matches!(n.role.as_str(), "link" | "button" | "gridcell"))
            });
            let (_, _, id) = cell?;
            memo.phase = 3;
            return Some(Move::Act(click(id)));
        }
    };
    Some(turn.map_or_else(|| not_found("the month"), |(_, _, id)| Move::Act(click(id))))
}

/// A field of a time.
pub fn time(page: &Page<'_>, text: &str, field: Option<&Target>, memo: &mut Memo, run: &mut Run) -> Move {
    let Some(value) = clock(text) else { return not_found(text) };
    let native = page.all_where(|n| n.kind.as_deref() == Some("time"));
    if let Some(one) = native.first() {
        if one.node.value.as_deref().is_some_and(|v| v.starts_with(&value)) {
            return Move::Finished;
        }
        return Move::Act(Action::Set { id: one.id.to_owned(), value });
    }
    let field = field.cloned().unwrap_or_else(|| Target { kind: Some(Kind::Field), ..Target::default() });
    fill(page, &Value::Text(text.to_owned()), &field, memo, run)
}

/// A field of a colour: `#0000ff`, as it is written there.
pub fn colour(page: &Page<'_>, colour: &str, memo: &mut Memo) -> Move {
    let hex = match colour {
        "red" => "FF0000",
        "green" => "008000",
        "lime" => "00FF00",
        "blue" => "0000FF",
        "yellow" => "FFFF00",
        "white" => "FFFFFF",
        "black" => "000000",
        "maroon" => "800000",
        "olive" => "808000",
        "navy" => "000080",
        "purple" => "800080",
        "teal" => "008080",
        "aqua" | "cyan" => "00FFFF",
        "fuchsia" | "magenta" => "FF00FF",
        "silver" => "C0C0C0",
        "gray" | "grey" => "808080",
        "orange" => "FFA500",
        "pink" => "FFC0CB",
        "brown" => "A52A2A",
        "gold" => "FFD700",
        "violet" => "EE82EE",
        "indigo" => "4B0082",
        "turquoise" => "40E0D0",
        other => other.trim_start_matches('#'),
    };
    if memo.acted {
        return Move::Finished;
    }
    let of = |n: &Node| {
        n.role == "color"
            || (n.takes_text() && n.hint.as_deref().is_some_and(|h| h.contains("color") || h.contains("colour")))
    };
    let found = page.all_where(of);
    let Some(found) = found.first() else { return wait_or(memo, not_found("a colour field")) };
    memo.acted = true;
    if found.node.role == "color" {
        return Move::Act(Action::Set { id: found.id.to_owned(), value: format!("#{}", hex.to_lowercase()) });
    }
    Move::Act(type_into(found.id, hex, false))
}
