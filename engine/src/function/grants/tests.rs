use proptest::prelude::*;

use super::body::cut;
use super::*;

fn grant(started: i64, ended: i64, share_ratio: f64, mig: Option<i16>) -> Grant {
    Grant { started, ended, mig, share_ratio, suspended: None }
}

fn index(grants: &[Grant]) -> Vec<Stretch> {
    stretches(grants.to_vec(), &Suspensions::default())
}

/// From, until, GPUs and whether shared, of one grant among all.
fn told(grant: Grant, stretches: &[Stretch]) -> Vec<(i64, i64, f64, bool)> {
    let pieces = cut(grant, stretches, &Suspensions::default());
    pieces.into_iter().map(|one| (one.from, one.until, one.gpus, one.shared)).collect()
}

#[test]
fn a_grant_is_cut_where_its_part_changes_and_nowhere_else() {
    // Breaks when two whole grants of one GPU count for two, or stated quarters are cut.
    let whole = [grant(0, 10, 1.0, None), grant(4, 12, 1.0, None)];
    let stretches = index(&whole);
    let first = [(0, 4, 1.0, false), (4, 10, 0.5, true)];
    assert_eq!(told(whole[0], &stretches), first);
    assert_eq!(told(whole[1], &stretches), [(4, 10, 0.5, true), (10, 12, 1.0, false)]);
    let quarters = [grant(0, 10, 0.25, None), grant(4, 12, 0.25, None)];
    let stretches = index(&quarters);
    assert_eq!(told(quarters[0], &stretches), [(0, 10, 0.25, true)]);
    assert_eq!(told(quarters[1], &stretches), [(4, 12, 0.25, true)]);
    // What begins as the other ends is not held together.
    let apart = [grant(0, 4, 1.0, None), grant(4, 8, 1.0, None)];
    assert!(index(&apart).is_empty());
}

#[test]
fn slices_are_divided_among_theirs_and_the_board_among_its_slices() {
    // Breaks when seven slices of one board count for seven boards.
    let all = [grant(0, 8, 1.0, Some(1)), grant(0, 8, 1.0, Some(1)), grant(0, 8, 1.0, Some(2))];
    let stretches = index(&all);
    assert_eq!(told(all[0], &stretches), [(0, 8, 0.25, true)]);
    assert_eq!(told(all[2], &stretches), [(0, 8, 0.5, false)]);
}

/// What each grant counts for at an instant, by an obvious sum.
fn slow(all: &[Grant], at: i64) -> Vec<f64> {
    let holds = |grant: &Grant| grant.started <= at && at < grant.ended;
    let on = |mig: Option<i16>| -> f64 {
        all.iter().filter(|grant| holds(grant) && grant.mig == mig).map(|g| g.share_ratio).sum()
    };
    let own = |grant: &Grant| match grant.mig {
        Some(_) => grant.share_ratio / f64::max(1.0, on(grant.mig)),
        None => grant.share_ratio,
    };
    let board: f64 = all.iter().filter(|grant| holds(grant)).map(own).sum();
    all.iter().map(|g| if holds(g) { own(g) / f64::max(1.0, board) } else { 0.0 }).collect()
}

proptest! {
    #[test]
    fn parts_are_those_of_a_slow_sum_and_never_exceed_the_device(
        drawn in prop::collection::vec(
            (0_i64..20, 1_i64..12, 1_u8..=6, prop::option::of(1_i16..3)), 1..7),
    ) {
        let all: Vec<Grant> = drawn
            .into_iter()
            .map(|(from, long, share, mig)| grant(from, from + long, f64::from(share) / 4.0, mig))
            .collect();
        let stretches = index(&all);
        let parts: Vec<_> = all.iter().map(|grant| told(*grant, &stretches)).collect();
        for (grant, parts) in all.iter().zip(&parts) {
            // Parts tile the grant, and neighbours differ.
            prop_assert_eq!(parts.first().map(|part| part.0), Some(grant.started));
            prop_assert_eq!(parts.last().map(|part| part.1), Some(grant.ended));
            for pair in parts.windows(2) {
                prop_assert_eq!(pair[0].1, pair[1].0);
                prop_assert!((pair[0].2 - pair[1].2).abs() > 1e-12);
            }
        }
        for at in 0..32 {
            let expected = slow(&all, at);
            let mut sum = 0.0;
            for (parts, expected) in parts.iter().zip(expected) {
                let found = parts.iter().find(|part| part.0 <= at && at < part.1);
                let found = found.map_or(0.0, |part| part.2);
                prop_assert!((found - expected).abs() < 1e-9, "at {}: {} not {}", at, found, expected);
                sum += found;
            }
            prop_assert!(sum <= 1.0 + 1e-9, "at {}: {}", at, sum);
        }
    }
}
