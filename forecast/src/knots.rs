//! The horizons at which a model is fitted; steps between two share the later one's fit.

/// Horizons of the grid up to a week of hours; later ones follow at a ratio.
const GRID: [usize; 25] = [
    1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 30, 36, 42, 48, 60, 72, 84, 96, 108, 120, 132, 144, 156,
    168,
];

/// Most horizons of one knot that are fitted together.
const POOLED_MAX: usize = 6;

/// Horizons in steps, rising from 1 to at least the horizon.
#[derive(Debug, Clone)]
pub(crate) struct Knots {
    ends: Vec<usize>,
    pooled: Vec<Vec<usize>>,
}

impl Knots {
    pub(crate) fn new(horizon: usize) -> Self {
        let mut ends: Vec<usize> = Vec::new();
        let mut next = GRID.iter().copied();
        loop {
            let last = ends.last().copied().unwrap_or(0);
            if last >= horizon {
                break;
            }
            let end = next.next().unwrap_or(last + last / 12 + 1);
            ends.push(end.min(horizon));
        }
        let pooled = (0..ends.len()).map(|k| pool(&ends, k)).collect();
        Self { ends, pooled }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The knot that serves horizon `h` (from 1).
    pub(crate) fn of(&self, h: usize) -> usize {
        self.ends.partition_point(|end| *end < h).min(self.ends.len() - 1)
    }

    pub(crate) fn end(&self, knot: usize) -> usize {
        self.ends[knot]
    }

    /// Horizons whose errors stand for each knot.
    pub(crate) fn pooled(&self) -> &[Vec<usize>] {
        &self.pooled
    }
}

fn pool(ends: &[usize], knot: usize) -> Vec<usize> {
    let from = knot.checked_sub(1).map_or(1, |k| ends[k] + 1);
    let all: Vec<usize> = (from..=ends[knot]).collect();
    let every = all.len().div_ceil(POOLED_MAX);
    all.into_iter().rev().step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_horizon_has_a_knot_at_or_after_it() {
        // Breaks if a step of the horizon would be left without a model.
        for horizon in [1, 5, 24, 168, 500] {
            let knots = Knots::new(horizon);
            assert_eq!(knots.end(knots.len() - 1), horizon);
            assert!((1..=horizon).all(|h| knots.end(knots.of(h)) >= h));
            assert!(knots.pooled().iter().all(|p| !p.is_empty() && p.len() <= POOLED_MAX));
        }
        assert_eq!(Knots::new(24).pooled()[8], [16, 15, 14, 13]);
    }
}
