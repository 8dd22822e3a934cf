//! When a job was submitted, could start, started and ended, in a zone whose clock shows an hour twice.

use crate::source::instant::Told;

/// The instants that fit together, of a doubled hour one or the other: in order, with the time from
/// start to end nearest to `held_s` seconds, where the row tells it. Where several do, the earliest.
/// `told` and the answer are submission, eligibility, start and end, in ms since 1970.
pub(super) fn settle(told: [Option<Told>; 4], held_s: Option<f64>) -> [Option<i64>; 4] {
    let readings = told.map(|told| match told {
        None => vec![None],
        Some(told) => std::iter::once(Some(told.at)).chain(told.second.map(Some)).collect(),
    });
    let mut best: Option<(Rank, [Option<i64>; 4])> = None;
    for submitted in &readings[0] {
        for eligible in &readings[1] {
            for started in &readings[2] {
                for ended in &readings[3] {
                    let at = [*submitted, *eligible, *started, *ended];
                    let rank = rank(at, held_s);
                    if best.as_ref().is_none_or(|(known, _)| rank < *known) {
                        best = Some((rank, at));
                    }
                }
            }
        }
    }
    best.map(|(_, at)| at).unwrap_or_default()
}

/// What [`rank`] tells, the least of which fits best.
type Rank = (usize, u64, usize);

/// How badly instants fit: an end before the start, milliseconds off the time held, and how many
/// others are out of order.
fn rank(at: [Option<i64>; 4], held_s: Option<f64>) -> Rank {
    let run = at[2].zip(at[3]);
    let backwards = run.is_some_and(|(started, ended)| ended < started);
    let off = run.zip(held_s).map_or(0, |((started, ended), held_s)| {
        ((ended - started) as f64 - held_s * 1e3).abs().round() as u64
    });
    let known: Vec<i64> = at.into_iter().flatten().collect();
    let disorder = known.windows(2).filter(|pair| pair[1] < pair[0]).count();
    (usize::from(backwards), off, disorder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubled_hour_is_told_by_the_order_and_the_time_held() {
        // Breaks when a job that ended in the second pass is kept aside as one that ended before it
        // began, or the time that it held is off by the hour.
        let minute = 60_000;
        let hour = 60 * minute;
        let once = |at| Some(Told { at: at * minute, second: None });
        let twice = |at| Some(Told { at: at * minute, second: Some(at * minute + hour) });
        let settled = |told, held_s| {
            let at = settle(told, held_s);
            (at[2].map(|at| at / minute), at[3].map(|at| at / minute))
        };
        // 01:30 to 01:10: only the second 01:10 comes after.
        let back = [once(30), once(30), twice(90), twice(70)];
        assert_eq!(settled(back, None), (Some(90), Some(130)));
        assert_eq!(settled(back, Some(2_400.0)), (Some(90), Some(130)));
        // 01:10 to 01:30 is 20 minutes in either pass, or 80 over both.
        let on = [once(30), once(30), twice(70), twice(90)];
        assert_eq!(settled(on, Some(1_200.0)), (Some(70), Some(90)));
        assert_eq!(settled(on, Some(4_800.0)), (Some(70), Some(150)));
        // To 03:00 the start tells how long: 90 minutes or 150.
        let over = [twice(80), twice(80), twice(90), once(240)];
        assert_eq!(settled(over, Some(9_000.0)), (Some(90), Some(240)));
        assert_eq!(settled(over, Some(5_400.0)), (Some(150), Some(240)));
        assert_eq!(settled(over, None), (Some(90), Some(240)));
        // Submitted at 01:40, started at 01:20: in the second pass.
        assert_eq!(settled([twice(100), twice(100), twice(80), None], None), (Some(140), None));
        // No reading fits: it stays for the check of what a job can have run.
        assert_eq!(settled([None, None, once(90), once(70)], None), (Some(90), Some(70)));
    }
}
