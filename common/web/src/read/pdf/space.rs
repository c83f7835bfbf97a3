//! Places on a page.

use lopdf::{Document, Object};

/// `[a b c d e f]`: x' = ax + cy + e, y' = bx + dy + f.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix(pub(super) [f32; 6]);

impl Matrix {
    pub(super) const NONE: Matrix = Matrix([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// Applies `self` first, then `other`.
    pub(super) fn then(self, other: Matrix) -> Matrix {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, other.0);
        Matrix([a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + l])
    }

    pub(super) fn moved(self, x: f32, y: f32) -> Matrix {
        Matrix([1.0, 0.0, 0.0, 1.0, x, y]).then(self)
    }

    pub(super) fn of(operands: &[Object]) -> Option<Matrix> {
        let mut numbers = [0.0; 6];
        for (index, number) in numbers.iter_mut().enumerate() {
            *number = operands.get(index)?.as_float().ok()?;
        }
        Some(Matrix(numbers))
    }

    pub(super) fn apply(self, x: f32, y: f32) -> (f32, f32) {
        let [a, b, c, d, e, f] = self.0;
        (a * x + c * y + e, b * x + d * y + f)
    }

    pub(super) fn origin(self) -> (f32, f32) {
        (self.0[4], self.0[5])
    }

    pub(super) fn scale(self) -> f32 {
        let [a, b, c, d, ..] = self.0;
        (a * d - b * c).abs().sqrt()
    }

    /// Boxes stay boxes under it.
    pub(super) fn is_upright(self) -> bool {
        let [a, b, c, d, ..] = self.0.map(f32::abs);
        let least = 0.001 * (a + b + c + d);
        (b <= least && c <= least) || (a <= least && d <= least)
    }
}

/// An upright box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area([f32; 4]);

impl Area {
    /// Holds no point.
    pub(super) const NOTHING: Area = Area([0.0, 0.0, -1.0, -1.0]);

    /// The box between two corners.
    pub(super) fn new(x: f32, y: f32, other_x: f32, other_y: f32) -> Area {
        Area([x.min(other_x), y.min(other_y), x.max(other_x), y.max(other_y)])
    }

    pub(super) fn of(document: &Document, object: &Object) -> Option<Area> {
        let list = document.dereference(object).ok()?.1.as_array().ok()?;
        let mut numbers = [0.0; 4];
        for (index, number) in numbers.iter_mut().enumerate() {
            *number = document.dereference(list.get(index)?).ok()?.1.as_float().ok()?;
        }
        let [x, y, other_x, other_y] = numbers;
        Some(Area::new(x, y, other_x, other_y))
    }

    pub(super) fn within(self, other: Area) -> Area {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Area([a.max(e), b.max(f), c.min(g), d.min(h)])
    }

    /// The smallest box around both.
    pub(super) fn and(self, other: Area) -> Area {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Area([a.min(e), b.min(f), c.max(g), d.max(h)])
    }

    pub(super) fn grown(self, by: f32) -> Area {
        let [a, b, c, d] = self.0;
        Area([a - by, b - by, c + by, d + by])
    }

    /// The smallest box around the place where the matrix puts it.
    pub(super) fn under(self, matrix: Matrix) -> Area {
        let [a, b, c, d] = self.0;
        let [first, second, third, fourth] =
            [(a, b), (c, b), (c, d), (a, d)].map(|(x, y)| matrix.apply(x, y)).map(|(x, y)| Area::new(x, y, x, y));
        first.and(second).and(third).and(fourth)
    }

    /// What moves and stretches it onto another box.
    pub(super) fn fitted_to(self, other: Area) -> Matrix {
        let part = |wanted: f32, own: f32| if own > 0.0 { wanted / own } else { 1.0 };
        let (x, y) = (part(other.width(), self.width()), part(other.height(), self.height()));
        Matrix([x, 0.0, 0.0, y, other.0[0] - self.0[0] * x, other.0[1] - self.0[1] * y])
    }

    pub(super) fn holds(self, (x, y): (f32, f32)) -> bool {
        let [a, b, c, d] = self.0;
        a <= x && x <= c && b <= y && y <= d
    }

    pub(super) fn left(self) -> f32 {
        self.0[0]
    }

    pub(super) fn bottom(self) -> f32 {
        self.0[1]
    }

    pub(super) fn width(self) -> f32 {
        self.0[2] - self.0[0]
    }

    pub(super) fn height(self) -> f32 {
        self.0[3] - self.0[1]
    }

    /// Zero if there is nothing in it.
    pub(super) fn size(self) -> f32 {
        self.width().max(0.0) * self.height().max(0.0)
    }
}
