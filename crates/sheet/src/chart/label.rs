//! Where labels go: clear of curves, of each other and of the frame.

/// A rectangle in pixels, y downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Rect {
    /// Right edge.
    pub fn right(self) -> f64 {
        self.left + self.width
    }

    /// Lower edge.
    pub fn bottom(self) -> f64 {
        self.top + self.height
    }

    /// Larger by `by` on every side.
    #[must_use]
    pub fn grown(self, by: f64) -> Self {
        Self {
            left: self.left - by,
            top: self.top - by,
            width: self.width + 2.0 * by,
            height: self.height + 2.0 * by,
        }
    }

    /// Whether the two have any area in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.left < other.right()
            && other.left < self.right()
            && self.top < other.bottom()
            && other.top < self.bottom()
    }

    /// Whether `other` lies in it.
    pub fn holds(self, other: Self) -> bool {
        other.left >= self.left
            && other.right() <= self.right()
            && other.top >= self.top
            && other.bottom() <= self.bottom()
    }

    /// The place in it that is nearest to a point.
    pub fn nearest(self, (x, y): (f64, f64)) -> (f64, f64) {
        (
            x.clamp(self.left, self.right().max(self.left)),
            y.clamp(self.top, self.bottom().max(self.top)),
        )
    }
}

/// Side of a square of the map in pixels: finer than any gap that matters.
const SQUARE: f64 = 3.0;

/// Which parts of a frame are taken.
#[derive(Debug)]
pub(crate) struct Taken {
    frame: Rect,
    columns: usize,
    rows: usize,
    squares: Vec<bool>,
    /// For every square how many are taken above and to the left of it
    /// (a summed-area table: Crow, "Summed-area tables for texture mapping",
    /// 1984); a rectangle is asked in four steps.
    sums: Vec<u32>,
}

impl Taken {
    pub fn new(frame: Rect) -> Self {
        let columns = (frame.width / SQUARE).ceil().max(1.0) as usize;
        let rows = (frame.height / SQUARE).ceil().max(1.0) as usize;
        Self {
            frame,
            columns,
            rows,
            squares: vec![false; columns * rows],
            sums: Vec::new(),
        }
    }

    fn square(&self, x: f64, y: f64) -> (usize, usize) {
        let place = |value: f64, count: usize| ((value / SQUARE).max(0.0) as usize).min(count - 1);
        (
            place(x - self.frame.left, self.columns),
            place(y - self.frame.top, self.rows),
        )
    }

    fn is_inside(&self, x: f64, y: f64) -> bool {
        let slack = self.frame.grown(SQUARE);
        x >= slack.left && x <= slack.right() && y >= slack.top && y <= slack.bottom()
    }

    /// Takes the squares under a line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let steps = (dx.abs().max(dy.abs()) / (SQUARE * 0.7))
            .ceil()
            .clamp(1.0, 1e4);
        for step in 0..=steps as usize {
            let share = step as f64 / steps;
            let (x, y) = (from.0 + dx * share, from.1 + dy * share);
            if self.is_inside(x, y) {
                let (column, row) = self.square(x, y);
                self.squares[row * self.columns + column] = true;
            }
        }
    }

    /// Takes the squares under a rectangle.
    pub fn rect(&mut self, rect: Rect) {
        let (left, top) = self.square(rect.left, rect.top);
        let (right, bottom) = self.square(rect.right(), rect.bottom());
        for row in top..=bottom {
            self.squares[row * self.columns + left..=row * self.columns + right].fill(true);
        }
    }

    /// Counts once all has been taken.
    fn count(&mut self) {
        let width = self.columns + 1;
        self.sums = vec![0; width * (self.rows + 1)];
        for row in 0..self.rows {
            let mut in_row = 0;
            for column in 0..self.columns {
                in_row += u32::from(self.squares[row * self.columns + column]);
                self.sums[(row + 1) * width + column + 1] =
                    self.sums[row * width + column + 1] + in_row;
            }
        }
    }

    fn is_free(&self, rect: Rect) -> bool {
        let (left, top) = self.square(rect.left, rect.top);
        let (right, bottom) = self.square(rect.right(), rect.bottom());
        let at = |row: usize, column: usize| self.sums[row * (self.columns + 1) + column];
        at(bottom + 1, right + 1) + at(top, left) == at(top, right + 1) + at(bottom + 1, left)
    }

    /// The taken squares along a line, without those near its begin.
    fn crossed(&self, from: (f64, f64), to: (f64, f64), near: f64) -> u32 {
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let steps = (length / SQUARE).ceil().max(1.0);
        (0..=steps as usize)
            .map(|step| step as f64 / steps)
            .filter(|share| share * length > near)
            .filter(|share| {
                let x = from.0 + (to.0 - from.0) * share;
                let y = from.1 + (to.1 - from.1) * share;
                let (column, row) = self.square(x, y);
                self.squares[row * self.columns + column]
            })
            .count() as u32
    }
}

/// A label that wants a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LabelWish {
    /// What it says something of.
    pub anchor: (f64, f64),
    /// Its size.
    pub size: (f64, f64),
    /// Whether it must stand right beside its anchor, without a leader line.
    pub beside: bool,
}

/// Room between a label and whatever else there is.
const CLEAR: f64 = 5.0;
/// A leader line of this length is the best one: the label stands near and does
/// not crowd its point.
const LEADER: f64 = 18.0;
/// From an anchor to a label beside it: near, else a little further off, where it
/// is still told which point it belongs to.
const BESIDE: [f64; 2] = [7.0, 11.0];
/// Around an anchor its own curve is in the way of no leader line.
const NEAR: f64 = 12.0;
/// Places that are looked at closely, the nearest ones.
const CLOSELY: usize = 400;

/// A place of a label and how bad it is.
#[derive(Debug, Clone, Copy)]
struct LabelPlace {
    rect: Rect,
    cost: f64,
}

/// Places for all labels, `None` for those for which there is none that is
/// clear of everything. Labels with leader lines go first; of their orders the
/// one that costs least is taken.
pub(crate) fn place(mut taken: Taken, wishes: &[LabelWish]) -> Vec<Option<Rect>> {
    for wish in wishes.iter().filter(|wish| !wish.beside) {
        let (x, y) = wish.anchor;
        taken.rect(Rect {
            left: x - 5.0,
            top: y - 5.0,
            width: 10.0,
            height: 10.0,
        });
    }
    taken.count();
    let places: Vec<Vec<LabelPlace>> = wishes.iter().map(|wish| places(&taken, wish)).collect();
    let (leaders, besides): (Vec<usize>, Vec<usize>) =
        (0..wishes.len()).partition(|&n| !wishes[n].beside);
    let mut best: Option<(f64, Vec<Option<Rect>>)> = None;
    for order in orders(&leaders) {
        let (cost, found) = in_order(wishes, &places, &order);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, found));
        }
    }
    let mut found = best.map_or_else(|| vec![None; wishes.len()], |(_, found)| found);
    for n in besides {
        let clear = places[n].iter().find(|place| {
            if !is_nearest(wishes, n, place.rect) {
                return false;
            }
            let mut others = wishes
                .iter()
                .zip(&found)
                .filter_map(|(w, r)| Some((w, (*r)?)));
            others.all(|(wish, other)| {
                !other.grown(CLEAR).overlaps(place.rect)
                    && (wish.beside || !leader_meets(wish.anchor, other, place.rect))
            })
        });
        found[n] = clear.map(|place| place.rect);
    }
    found
}

/// Whether a label stands nearer to its own point than to any other: one without
/// a leader line is read as that of the nearest.
fn is_nearest(wishes: &[LabelWish], own: usize, rect: Rect) -> bool {
    let center = (rect.left + rect.width / 2.0, rect.top + rect.height / 2.0);
    let away = |(x, y): (f64, f64)| (x - center.0).hypot(y - center.1);
    let anchor = wishes[own].anchor;
    let mut others = wishes.iter().filter(|wish| wish.anchor != anchor);
    others.all(|wish| away(wish.anchor) > away(anchor))
}

/// All orders of a few, the given one of many.
fn orders(items: &[usize]) -> Vec<Vec<usize>> {
    if items.len() > 4 {
        return vec![items.to_vec()];
    }
    let mut orders = vec![Vec::new()];
    for _ in items {
        orders = orders
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                let rest: Vec<usize> = items
                    .iter()
                    .copied()
                    .filter(|n| !order.contains(n))
                    .collect();
                rest.into_iter().map(move |n| {
                    let mut longer = order.clone();
                    longer.push(n);
                    longer
                })
            })
            .collect();
    }
    orders
}

/// What a label without a place costs: more than any place.
const NO_PLACE: f64 = 1e9;

fn in_order(
    wishes: &[LabelWish],
    places: &[Vec<LabelPlace>],
    order: &[usize],
) -> (f64, Vec<Option<Rect>>) {
    let mut found: Vec<Option<Rect>> = vec![None; wishes.len()];
    let mut cost = 0.0;
    for &n in order {
        let anchor = wishes[n].anchor;
        let clear = places[n].iter().find(|place| {
            wishes.iter().zip(&found).all(|(wish, other)| {
                let Some(other) = *other else { return true };
                !other.grown(2.0 * CLEAR).overlaps(place.rect)
                    && !leader_meets(anchor, place.rect, other)
                    && !leader_meets(wish.anchor, other, place.rect)
                    && !cross(
                        (anchor, leader_end(anchor, place.rect)),
                        (wish.anchor, leader_end(wish.anchor, other)),
                    )
            })
        });
        cost += clear.map_or(NO_PLACE, |place| place.cost);
        found[n] = clear.map(|place| place.rect);
    }
    (cost, found)
}

/// Where the leader line of a label ends: in the middle of the side that faces
/// the anchor, or at the nearest place of it when the anchor lies above or below.
pub(crate) fn leader_end(anchor: (f64, f64), label: Rect) -> (f64, f64) {
    label.nearest(anchor)
}

/// Whether the leader line of a label goes through another one.
fn leader_meets(anchor: (f64, f64), label: Rect, other: Rect) -> bool {
    let end = leader_end(anchor, label);
    let other = other.grown(2.0);
    let corner = |right: bool, bottom: bool| {
        (
            if right { other.right() } else { other.left },
            if bottom { other.bottom() } else { other.top },
        )
    };
    let diagonals = [
        (corner(false, false), corner(true, true)),
        (corner(true, false), corner(false, true)),
    ];
    let holds = |(x, y): (f64, f64)| other.nearest((x, y)) == (x, y);
    holds(end)
        || holds(anchor)
        || diagonals
            .iter()
            .any(|&diagonal| cross((anchor, end), diagonal))
}

type Segment = ((f64, f64), (f64, f64));

fn cross(a: Segment, b: Segment) -> bool {
    let side = |(p, q): Segment, r: (f64, f64)| {
        ((q.0 - p.0) * (r.1 - p.1) - (q.1 - p.1) * (r.0 - p.0)).signum()
    };
    side(a, b.0) != side(a, b.1) && side(b, a.0) != side(b, a.1)
}

/// The places of one label that are clear of all curves, the best first.
fn places(taken: &Taken, wish: &LabelWish) -> Vec<LabelPlace> {
    let (width, height) = wish.size;
    let room = taken.frame.grown(-CLEAR);
    let mut found: Vec<LabelPlace> = Vec::new();
    let mut consider = |left: f64, top: f64, cost: f64| {
        let rect = Rect {
            left,
            top,
            width,
            height,
        };
        if room.holds(rect) && taken.is_free(rect.grown(if wish.beside { 2.0 } else { CLEAR })) {
            found.push(LabelPlace { rect, cost });
        }
    };
    let (x, y) = wish.anchor;
    if wish.beside {
        for (round, away) in BESIDE.into_iter().enumerate() {
            for (n, (across, down)) in BESIDES.into_iter().enumerate() {
                let left = x + across * away - (1.0 - across) / 2.0 * width;
                let top = y + down * away - (1.0 - down) / 2.0 * height;
                consider(left, top, (round * BESIDES.len() + n) as f64);
            }
        }
        return found;
    }
    let steps = |room: f64| (room / 6.0).floor().max(0.0) as usize;
    for row in 0..=steps(room.height - height) {
        for column in 0..=steps(room.width - width) {
            let left = room.left + column as f64 * 6.0;
            let top = room.top + row as f64 * 6.0;
            consider(left, top, 0.0);
        }
    }
    for place in &mut found {
        place.cost = cost(wish.anchor, place.rect);
    }
    found.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    // All labels must find a place beside others: the far ones stay, uncosted.
    for place in found.iter_mut().take(CLOSELY) {
        let end = leader_end(wish.anchor, place.rect);
        place.cost += 12.0 * f64::from(taken.crossed(wish.anchor, end, NEAR));
    }
    for place in found.iter_mut().skip(CLOSELY) {
        place.cost += 200.0;
    }
    found.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    found
}

/// Sides on which a label without a leader line may stand, the best first.
const BESIDES: [(f64, f64); 12] = [
    (1.0, 1.0),
    (1.0, 0.0),
    (0.0, 1.0),
    (1.0, -1.0),
    (0.0, -1.0),
    (-1.0, -1.0),
    (-1.0, 0.0),
    (-1.0, 1.0),
    (0.5, 1.0),
    (0.5, -1.0),
    (-0.5, -1.0),
    (-0.5, 1.0),
];

/// How bad a place is: far away, too near, or hard to tie to its point.
fn cost(anchor: (f64, f64), rect: Rect) -> f64 {
    let end = leader_end(anchor, rect);
    let (dx, dy) = (end.0 - anchor.0, end.1 - anchor.1);
    let length = dx.hypot(dy);
    let off = if length < LEADER {
        (LEADER - length) * 3.0
    } else {
        length - LEADER
    };
    // Straight above or below reads best when the label is centred there.
    let middle = rect.left + rect.width / 2.0;
    let aside = (middle - anchor.0).abs() * 0.12;
    let below = if dy > 0.0 { 6.0 } else { 0.0 };
    off + aside + below
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAME: Rect = Rect {
        left: 60.0,
        top: 40.0,
        width: 600.0,
        height: 300.0,
    };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn labels_stay_clear(
            curve in prop::collection::vec((60.0..660.0f64, 40.0..340.0f64), 2..14),
            picks in prop::collection::vec((0usize..14, 40.0..190.0f64, any::<bool>()), 0..6),
        ) {
            let mut curve = curve;
            curve.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut taken = Taken::new(FRAME);
            for pair in curve.windows(2) {
                taken.line(pair[0], pair[1]);
            }
            let wishes: Vec<LabelWish> = picks
                .iter()
                .map(|&(n, width, beside)| LabelWish {
                    anchor: curve[n % curve.len()],
                    size: (width, 30.0),
                    beside,
                })
                .collect();
            let placed = place(taken, &wishes);
            prop_assert_eq!(placed.len(), wishes.len());
            for (n, rect) in placed.iter().enumerate() {
                let Some(rect) = *rect else { continue };
                prop_assert!(FRAME.holds(rect));
                for other in placed[..n].iter().flatten() {
                    prop_assert!(!rect.overlaps(*other));
                }
                for pair in curve.windows(2) {
                    for step in 0..=200 {
                        let share = f64::from(step) / 200.0;
                        let x = pair[0].0 + (pair[1].0 - pair[0].0) * share;
                        let y = pair[0].1 + (pair[1].1 - pair[0].1) * share;
                        prop_assert!(rect.nearest((x, y)) != (x, y), "{:?} on {:?}", rect, pair);
                    }
                }
            }
        }
    }

    #[test]
    fn where_nothing_is_free_nothing_is_covered() {
        let mut taken = Taken::new(FRAME);
        taken.rect(FRAME);
        let wish = LabelWish {
            anchor: (100.0, 100.0),
            size: (80.0, 20.0),
            beside: false,
        };
        assert_eq!(place(taken, &[wish]), [None]);
    }
}
