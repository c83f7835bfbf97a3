//! The subjects of drawings, one function each.

use super::color::{Rgb, mix};
use super::drawing::{Inks, Sheet};

/// Two or three shelves with pots: each is a profile, mirrored, with a band of glaze.
pub fn vessels(sheet: &mut Sheet, inks: &Inks) {
    let (width, height) = (sheet.width, sheet.height);
    let shelves = (height / 330).clamp(1, 3);
    let step = height / shelves;
    for shelf in 0..shelves {
        let floor = shelf * step + step * 86 / 100;
        let mut x = sheet.random.range(20, 70);
        while x < width - 60 {
            let tall = step * sheet.random.range(30, 68) / 100;
            let wide = (tall * sheet.random.range(45, 105) / 100).min(step * 6 / 10);
            let body = *sheet.random.pick(&[inks.main, inks.main, inks.second, inks.deep, inks.pale]);
            let glaze = if body == inks.pale { inks.main } else { mix(body, inks.pale, 0.45) };
            pot(sheet, x, floor, wide, tall, body, glaze);
            x += wide + sheet.random.range(24, 80);
        }
        sheet.rect(0, floor, width, 10, inks.deep);
    }
}

fn pot(sheet: &mut Sheet, x: i32, floor: i32, wide: i32, tall: i32, body: Rgb, glaze: Rgb) {
    let middle = x + wide / 2;
    let neck = wide * sheet.random.range(14, 40) / 100;
    let foot = wide * sheet.random.range(22, 36) / 100;
    let top = floor - tall;
    let belly = top + tall * sheet.random.range(45, 65) / 100;
    let shoulder = top + tall * sheet.random.range(12, 22) / 100;
    let (left, right) = (x, x + wide);
    sheet.shape(
        &format!(
            "M{} {top}L{} {shoulder}C{left} {shoulder} {left} {belly} {left} {belly}C{left} {floor} {} {floor} {} {floor}H{}C{right} {floor} {right} {belly} {right} {belly}C{right} {shoulder} {} {shoulder} {} {shoulder}L{} {top}Z",
            middle - neck - 5,
            middle - neck + 3,
            middle - foot,
            middle - foot,
            middle + foot,
            middle + neck - 3,
            middle + neck - 3,
            middle + neck + 5,
        ),
        body,
    );
    match sheet.random.below(4) {
        0 => sheet.rect(left, belly, wide, (tall / 14).max(4), glaze),
        1 => {
            for band in 0..3 {
                sheet.rect(left, belly - 16 + band * 14, wide, 4, glaze);
            }
        }
        2 => {
            let bow = wide * 52 / 100;
            sheet.line(
                &format!(
                    "M{} {}C{} {} {} {} {} {}",
                    right - 4,
                    shoulder + tall / 7,
                    right + bow,
                    shoulder,
                    right + bow,
                    floor - tall / 6,
                    right - 8,
                    floor - tall / 4
                ),
                body,
                (wide / 10).max(6),
            );
        }
        _ => {}
    }
}

/// A table from above: plates that do not touch, each served in its own way.
pub fn plates(sheet: &mut Sheet, inks: &Inks) {
    let (width, height) = (sheet.width, sheet.height);
    let unit = width.min(height);
    let mut placed: Vec<(i32, i32, i32)> = Vec::new();
    for attempt in 0..260 {
        let r =
            if attempt < 60 { unit * sheet.random.range(17, 25) / 100 } else { unit * sheet.random.range(5, 11) / 100 };
        let (x, y) = (sheet.random.range(0, width), sheet.random.range(0, height));
        let free = placed.iter().all(|(px, py, pr)| {
            let (dx, dy, far) = (i64::from(x - px), i64::from(y - py), i64::from(r + pr + unit / 40));
            dx * dx + dy * dy > far * far
        });
        if free {
            placed.push((x, y, r));
        }
    }
    for (x, y, r) in placed {
        let rim = *sheet.random.pick(&[inks.main, inks.pale, inks.deep, inks.second]);
        let well = *sheet.random.pick(&[inks.ground, inks.second, inks.pale]);
        let well = if well == rim { inks.ground } else { well };
        sheet.circle(x, y, r, rim);
        sheet.circle(x, y, r * 74 / 100, well);
        let food = if well == inks.second || rim == inks.second { inks.deep } else { inks.second };
        let inner = r * 55 / 100;
        match sheet.random.below(4) {
            0 => {
                sheet.circle(x, y, inner, food);
                for turn in 0..4 {
                    sheet.turned(turn * 45, x, y, |s| s.rect(x - inner, y - r / 60 - 1, inner * 2, r / 30 + 2, well));
                }
            }
            1 => {
                for turn in 0..5 {
                    let leaf = format!(
                        "M{x} {y}q{} {} 0 -{inner}q{} {} 0 {inner}z",
                        inner / 2,
                        -inner / 2,
                        -inner / 2,
                        inner / 2
                    );
                    sheet.turned(turn * 72 + 10, x, y, |s| s.shape(&leaf, food));
                }
            }
            2 => sheet.ring(x, y, inner * 8 / 10, food, (r / 9).max(2)),
            _ => {
                for turn in 0..3 {
                    sheet.turned(turn * 120 + r, x, y, |s| s.circle(x, y - inner / 2, inner / 3, food));
                }
            }
        }
    }
}

/// Loaves in rows, each with cuts.
pub fn bread(sheet: &mut Sheet, inks: &Inks) {
    let (width, height) = (sheet.width, sheet.height);
    let rows = (height / 190).clamp(1, 5);
    let step = height / rows;
    for row in 0..rows {
        let floor = row * step + step * 84 / 100;
        let mut x = -sheet.random.range(0, 90);
        while x < width {
            let wide = step * sheet.random.range(80, 165) / 100;
            let tall = step * sheet.random.range(42, 62) / 100;
            let crust = *sheet.random.pick(&[inks.main, inks.main, inks.second, inks.deep]);
            let cut = mix(crust, inks.pale, 0.7);
            let top = floor - tall;
            sheet.shape(
                &format!(
                    "M{x} {}C{x} {} {} {top} {} {top}S{} {} {} {}Q{} {floor} {} {floor}H{}Q{x} {floor} {x} {}Z",
                    floor - tall / 3,
                    top + tall / 5,
                    x + wide / 5,
                    x + wide / 2,
                    x + wide,
                    top + tall / 5,
                    x + wide,
                    floor - tall / 3,
                    x + wide,
                    x + wide - tall / 3,
                    x + tall / 3,
                    floor - tall / 3,
                ),
                crust,
            );
            let cuts = 2 + sheet.random.below(3) as i32;
            for number in 1..=cuts {
                let at = x + wide * number / (cuts + 1);
                let lean = step / 8;
                sheet.line(
                    &format!(
                        "M{} {}Q{} {} {} {}",
                        at - lean,
                        floor - tall * 38 / 100,
                        at - lean / 3,
                        floor - tall * 68 / 100,
                        at + lean,
                        floor - tall * 78 / 100
                    ),
                    cut,
                    (step / 26).max(4),
                );
            }
            x += wide + step / 8;
        }
        sheet.rect(0, floor, width, (step / 40).max(3), inks.deep);
    }
}

/// A street: fronts with gables, arches and windows in rows.
pub fn houses(sheet: &mut Sheet, inks: &Inks) {
    let (width, height) = (sheet.width, sheet.height);
    let sun = width * sheet.random.range(15, 85) / 100;
    sheet.circle(sun, height * 26 / 100, height.min(width) / 9, inks.second);
    let floor = height * 92 / 100;
    let mut x = -20;
    while x < width {
        let wide = width.max(height) * sheet.random.range(12, 22) / 100;
        let tall = height * sheet.random.range(34, 74) / 100;
        let wall = *sheet.random.pick(&[inks.main, inks.pale, inks.deep, inks.main, inks.second]);
        let hole = if wall == inks.deep { inks.pale } else { inks.deep };
        let top = floor - tall;
        sheet.rect(x, top, wide, tall, wall);
        match sheet.random.below(4) {
            0 => sheet
                .shape(&format!("M{x} {}l{} -{}l{} {}z", top + 1, wide / 2, wide / 3, wide - wide / 2, wide / 3), wall),
            1 => sheet.shape(&format!("M{x} {}a{} {} 0 0 1 {wide} 0z", top + 1, wide / 2, wide / 3), wall),
            2 => sheet.shape(&format!("M{x} {}v-{}l{wide} {}z", top + 1, wide / 3, wide / 3), wall),
            _ => {}
        }
        let columns = 2 + sheet.random.below(3) as i32;
        let cell = wide / (columns * 2 + 1);
        let arched = sheet.random.below(2) == 0;
        let high = cell * sheet.random.range(12, 24) / 10;
        let mut y = top + cell;
        while y + high < floor - wide / 2 {
            for column in 0..columns {
                let at = x + cell * (column * 2 + 1);
                sheet.rect(at, y + cell / 2, cell, high - cell / 2, hole);
                if arched {
                    sheet.circle(at + cell / 2, y + cell / 2, cell / 2, hole);
                } else {
                    sheet.rect(at, y, cell, cell, hole);
                }
            }
            y += high + cell;
        }
        let (door, from) = (wide / 3, x + wide / 3);
        sheet.shape(
            &format!("M{from} {floor}v-{}a{} {} 0 0 1 {door} 0v{}z", wide / 4, door / 2, door / 2, wide / 4),
            hole,
        );
        x += wide + if sheet.random.below(3) == 0 { wide / 5 } else { 0 };
    }
    sheet.rect(0, floor, width, height - floor, inks.deep);
}

/// Hills behind hills, each with its own furrows, and a sun.
pub fn hills(sheet: &mut Sheet, inks: &Inks) {
    let (width, height) = (sheet.width, sheet.height);
    let r = width.min(height) * sheet.random.range(13, 20) / 100;
    let sun = width * sheet.random.range(20, 80) / 100;
    sheet.circle(sun, height * 30 / 100, r, inks.second);
    let colors = [inks.pale, mix(inks.pale, inks.main, 0.5), inks.main, inks.deep];
    for (number, color) in colors.into_iter().enumerate() {
        let base = height * (44 + 15 * number as i32) / 100;
        let sway = height * sheet.random.range(6, 14) / 100;
        let (a, b) = (sheet.random.range(-sway, sway), sheet.random.range(-sway, sway));
        let crest = |y: i32| {
            format!(
                "M-10 {}C{} {} {} {} {} {}",
                y + b,
                width / 3,
                y - sway + a,
                width * 2 / 3,
                y + sway - a,
                width + 10,
                y + a
            )
        };
        sheet.shape(&format!("{}V{height}H-10Z", crest(base)), color);
        let furrow = mix(color, inks.ground, 0.28);
        for line in 1..=sheet.random.below(4) as i32 {
            sheet.line(&crest(base + line * height / 26), furrow, (height / 160).max(2));
        }
    }
}

/// Half rings of seats around stages, row upon row.
pub fn rings(sheet: &mut Sheet, inks: &Inks) {
    let (width, height) = (sheet.width, sheet.height);
    let unit = (width.min(height) / 2).max(80);
    let columns = width / (unit * 2) + 2;
    let rows = height / unit + 2;
    for row in 0..rows {
        for column in 0..columns {
            let x = column * unit * 2 + if row % 2 == 0 { 0 } else { unit };
            let y = (row + 1) * unit;
            let mut colors = [inks.main, inks.pale, inks.deep, inks.second, inks.ground];
            let shift = sheet.random.below(5);
            colors.rotate_left(shift);
            for (number, color) in colors.into_iter().enumerate() {
                let r = unit - unit * number as i32 / 5;
                sheet.shape(&format!("M{} {y}a{r} {r} 0 0 1 {} 0z", x - r, r * 2), color);
            }
        }
    }
}

/// Rows of bars of different lengths, and one line through them.
pub fn rows(sheet: &mut Sheet, inks: &Inks) {
    let (width, height) = (sheet.width, sheet.height);
    let step = (width.min(height) / 9).max(28);
    let bar = step * 62 / 100;
    let mut y = step / 2;
    while y < height {
        let mut x = -sheet.random.range(0, step * 3);
        while x < width {
            let wide = step * sheet.random.range(1, 5);
            let color = *sheet.random.pick(&[inks.main, inks.main, inks.pale, inks.pale, inks.deep, inks.second]);
            if sheet.random.below(5) > 0 {
                sheet.rect(x, y, wide - step / 6, bar, color);
            }
            x += wide;
        }
        y += step;
    }
}

/// Stems side by side, with pairs of leaves.
pub fn leaves(sheet: &mut Sheet, inks: &Inks) {
    let (width, height) = (sheet.width, sheet.height);
    let gap = (width.max(height) / 9).max(60);
    let mut x = gap / 2;
    while x < width {
        let color = *sheet.random.pick(&[inks.main, inks.deep, inks.main, inks.second]);
        let top = height * sheet.random.range(6, 45) / 100;
        sheet.line(&format!("M{x} {height}V{top}"), color, 5);
        let leaf = gap * sheet.random.range(42, 56) / 100;
        let rise = leaf * sheet.random.range(50, 110) / 100;
        let round = sheet.random.below(3) == 0;
        let mut y = top;
        while y < height {
            for side in [-1, 1] {
                if round {
                    sheet.circle(x + side * leaf / 2, y, leaf * 36 / 100, color);
                } else {
                    let out = side * leaf;
                    sheet.shape(
                        &format!(
                            "M{x} {}C{} {} {} {} {} {}C{} {} {} {} {x} {}Z",
                            y + rise,
                            x,
                            y,
                            x + out / 2,
                            y - rise / 3,
                            x + out,
                            y - rise / 3,
                            x + out,
                            y + rise / 3,
                            x + out / 2,
                            y + rise,
                            y + rise
                        ),
                        color,
                    );
                }
            }
            y += rise * 13 / 10;
        }
        if !round {
            sheet.circle(x, top, leaf / 5, inks.second);
        }
        x += gap;
    }
}

/// A grid of quarter circles, halves, dots and plain squares.
pub fn tiles(sheet: &mut Sheet, inks: &Inks) {
    let (width, height) = (sheet.width, sheet.height);
    let side = (width.min(height) / if width.max(height) > 3 * width.min(height) { 1 } else { 4 }).max(60);
    for y in (0..height).step_by(side as usize) {
        for x in (0..width).step_by(side as usize) {
            let ground = *sheet.random.pick(&[inks.ground, inks.pale, inks.main, inks.ground]);
            let color = *sheet.random.pick(&[inks.main, inks.second, inks.deep]);
            let color = if color == ground { inks.deep } else { color };
            sheet.rect(x, y, side, side, ground);
            let turn = 90 * sheet.random.below(4) as i32;
            let (half, middle) = (side / 2, (x + side / 2, y + side / 2));
            match sheet.random.below(6) {
                0 | 1 => sheet.turned(turn, middle.0, middle.1, |s| {
                    s.shape(&format!("M{x} {y}h{side}a{side} {side} 0 0 1 -{side} {side}z"), color);
                }),
                2 => sheet.turned(turn, middle.0, middle.1, |s| {
                    s.shape(&format!("M{x} {y}h{side}a{half} {half} 0 0 1 -{side} 0z"), color);
                    s.shape(&format!("M{x} {}h{side}a{half} {half} 0 0 1 -{side} 0z", y + half), color);
                }),
                3 => sheet.circle(middle.0, middle.1, half * 62 / 100, color),
                4 => sheet.turned(turn, middle.0, middle.1, |s| s.shape(&format!("M{x} {y}h{side}v{side}z"), color)),
                _ => {}
            }
        }
    }
}
