//! Which days of a store are history, and which are a slip?
//!
//! Days without a row for more than a year part the history into stretches. A stretch at either end
//! is a slip if it holds, of each table, fewer than one row in a thousand, or one row alone where
//! there are twenty. Two campaigns years apart are both history: neither is that small.
//!
//! In a store of fewer than twenty rows nobody can say which is which: a row that stands alone there
//! counts, and is told all the same.
//!
//! An end counts less than what was submitted or read, since a ledger invents ends (a limit of
//! 2038, a placeholder of 2099): ends more than a year after everything else are a slip as long as
//! they are fewer than half of all.

use std::collections::BTreeMap;

/// Days without a row that part a stretch from the next.
pub(super) const DAYS_APART: i64 = 366;
/// A slip is less than one row in so many.
const ROWS_PER_SLIP: u64 = 1_000;
/// Rows from which one alone may be a slip.
const ROWS_MIN: u64 = 20;
/// Rows from which one alone is worth a word.
const ROWS_DOUBTED: u64 = 3;
/// Tables whose rows are counted apart.
const TABLES: usize = super::INSTANTS.len();

type Rows = [u64; TABLES];

/// Rows by day since 1970, for each table.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    begun: BTreeMap<i64, Rows>,
    ended: BTreeMap<i64, Rows>,
}

/// The days that count, in days since 1970, all included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Core {
    /// First day on which anything was submitted or read.
    pub(super) first: i64,
    /// Last such day.
    pub(super) last: i64,
    /// Last day on which an end counts.
    pub(super) ended: i64,
}

/// Days in a row, with their rows.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    first: i64,
    last: i64,
    rows: Rows,
}

impl Timeline {
    /// Rows that were submitted, started or read on a day.
    pub(super) fn begun(&mut self, table: usize, day: i64, rows: u64) {
        add(&mut self.begun.entry(day).or_default()[table], rows);
    }

    /// Rows that ended on a day.
    pub(super) fn ended(&mut self, table: usize, day: i64, rows: u64) {
        add(&mut self.ended.entry(day).or_default()[table], rows);
    }

    /// The days that count; `None` where all do.
    pub(super) fn core(&self) -> Option<Core> {
        self.core_from(ROWS_MIN)
    }

    /// The days beside which a row stands alone in a store that is too small to leave it out.
    pub(super) fn doubted(&self) -> Option<Core> {
        self.core_from(ROWS_DOUBTED)
    }

    /// The days that count, where one row alone may be a slip from `rows_min` rows on.
    fn core_from(&self, rows_min: u64) -> Option<Core> {
        let stretches = stretches(&self.begun);
        let all = sum(&stretches);
        let store = all.iter().fold(0, |sum: u64, rows| sum.saturating_add(*rows));
        let slip = |rows: &Rows| {
            let few = |(rows, all): (&u64, &u64)| {
                rows.saturating_mul(ROWS_PER_SLIP) < *all
                    || *rows == 0
                    || (*rows == 1 && store >= rows_min)
            };
            rows.iter().zip(&all).all(few)
        };
        let mut kept = &stretches[..];
        while let [rest @ .., _] = kept
            && !rest.is_empty()
            && slip(&sum(&stretches[rest.len()..]))
        {
            kept = rest;
        }
        let until = kept.len();
        while let [_, rest @ ..] = kept
            && !rest.is_empty()
            && slip(&sum(&stretches[..until - rest.len()]))
        {
            kept = rest;
        }
        let (first, last) = (kept.first()?.first, kept.last()?.last);
        let ended = self.last_end(last, store >= rows_min);
        let whole = kept.len() == stretches.len()
            && self.ended.last_key_value().is_none_or(|(day, _)| *day <= ended);
        (!whole).then_some(Core { first, last, ended })
    }

    /// The last day on which an end counts, where everything else is over on `last`.
    fn last_end(&self, last: i64, judged: bool) -> i64 {
        let all = sum(&stretches(&self.ended));
        let mut reached = last;
        for (day, _) in self.ended.range(last + 1..) {
            if day - reached > DAYS_APART && judged {
                let mut late = Rows::default();
                self.ended.range(*day..).for_each(|(_, rows)| total(&mut late, rows));
                let few = |(late, all): (&u64, &u64)| late.saturating_mul(2) < *all || *late == 0;
                if late.iter().zip(&all).all(few) {
                    break;
                }
            }
            reached = *day;
        }
        reached
    }
}

/// Days parted where there is no row for too long.
fn stretches(days: &BTreeMap<i64, Rows>) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    for (day, rows) in days {
        match found.last_mut() {
            Some(stretch) if day - stretch.last <= DAYS_APART => {
                stretch.last = *day;
                total(&mut stretch.rows, rows);
            }
            _ => found.push(Stretch { first: *day, last: *day, rows: *rows }),
        }
    }
    found
}

fn sum(stretches: &[Stretch]) -> Rows {
    let mut all = Rows::default();
    stretches.iter().for_each(|stretch| total(&mut all, &stretch.rows));
    all
}

fn total(sum: &mut Rows, rows: &Rows) {
    sum.iter_mut().zip(rows).for_each(|(sum, rows)| add(sum, *rows));
}

/// Rows of a file that does not tell them count as very many, so a sum may not overflow.
fn add(sum: &mut u64, rows: u64) {
    *sum = sum.saturating_add(rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days since 1970 of the first of January.
    fn year(year: i64) -> i64 {
        (year - 1970) * 365 + (year - 1969) / 4
    }

    fn told(begun: &[(usize, i64, u64)], ended: &[(i64, u64)]) -> Option<Core> {
        let mut timeline = Timeline::default();
        begun.iter().for_each(|(table, day, rows)| timeline.begun(*table, *day, *rows));
        ended.iter().for_each(|(day, rows)| timeline.ended(0, *day, *rows));
        timeline.core()
    }

    #[test]
    fn a_handful_of_rows_far_from_all_others_does_not_count() {
        // Breaks if one row of 2003 or 2099 stretches a store of 2026.
        let now = year(2026);
        let core = Core { first: now, last: now + 30, ended: now + 30 };
        let of = |rows| [(2, now, rows), (2, now + 30, rows)];
        let with = |rows: u64, more: &[(usize, i64, u64)]| {
            told(&of(rows).into_iter().chain(more.iter().copied()).collect::<Vec<_>>(), &[])
        };
        assert_eq!(with(10, &[]), None);
        assert_eq!(with(10, &[(2, year(2099), 1)]), Some(core));
        assert_eq!(with(10, &[(2, year(2003), 1)]), Some(core));
        assert_eq!(with(10, &[(2, year(2003), 1), (2, year(2099), 1)]), Some(core));
        // A job alone in its table stands among the readings of the store.
        assert_eq!(with(10, &[(0, year(2099), 1)]), Some(core));
        // Nine of 18 009 are less than one in a thousand; nineteen are not.
        assert_eq!(with(9_000, &[(2, year(2099), 9)]), Some(core));
        assert_eq!(with(9_000, &[(2, year(2098), 4), (2, year(2099), 5)]), Some(core));
        assert_eq!(with(9_000, &[(2, year(2099), 19)]), None);
        // Too few to say which is which: it counts, and is told.
        assert_eq!(with(5, &[(2, year(2099), 1)]), None);
        let mut few = Timeline::default();
        [(now, 1), (now + 30, 1)].iter().for_each(|(day, rows)| few.begun(2, *day, *rows));
        assert_eq!(few.doubted(), None);
        few.begun(2, year(2099), 1);
        assert_eq!((few.core(), few.doubted()), (None, Some(core)));
        // A year without a row is no gap.
        assert_eq!(with(10, &[(2, now + 30 + DAYS_APART, 1)]), None);
    }

    #[test]
    fn two_campaigns_years_apart_are_both_history() {
        // Breaks if the smaller of two real traces is taken for a slip.
        let (philly, helios) = (year(2017) + 200, year(2020) + 90);
        assert_eq!(told(&[(0, philly, 117_000), (0, helios, 3_300_000)], &[]), None);
        // A table that is small in one of them does not decide for the others.
        let mixed =
            [(0, philly, 117_000), (0, helios, 3_300_000), (2, philly, 5), (2, helios, 9_999)];
        assert_eq!(told(&mixed, &[]), None);
    }

    #[test]
    fn ends_count_less() {
        // Breaks if jobs that are said to end in 2038 move now, or a year of one job is cut off.
        let now = year(2026);
        let begun = [(0, now, 30), (0, now + 10, 30)];
        let core = Core { first: now, last: now + 10, ended: now + 11 };
        assert_eq!(told(&begun, &[(now + 11, 59), (year(2038), 1)]), Some(core));
        assert_eq!(told(&begun, &[(now + 11, 40), (year(2038), 20)]), Some(core));
        assert_eq!(told(&begun, &[(now + 11, 10), (year(2038), 50)]), None);
        assert_eq!(told(&begun, &[(now + 300, 59), (now + 600, 1)]), None);
        assert_eq!(told(&[(0, now, 2)], &[(now + 500, 1)]), None);
    }
}
