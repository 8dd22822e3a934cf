//! What the plans of several pools come to together.
//!
//! # Why
//! GPUs of one pool do not serve the jobs of another: a fleet may have enough in all and a pool too
//! few, and steps of two pools in different weeks look like a trend of the fleet. So what is bought
//! is the sum of what the pools must buy, and the load of all is never held against the GPUs of all.

use super::{Advice, Meets, Plan, Wait};

/// What the plans of several pools come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Together {
    /// Buy where any pool must buy; else not yet where any lacks GPUs ahead; else the loads fit.
    pub advice: Advice,
    /// GPUs that pools lack ahead, each at its largest shortfall.
    pub gpus_needed: u32,
    /// Those of them that are to be bought.
    pub gpus_to_buy: u32,
    /// The first of the instants by which those must be ordered, milliseconds UTC.
    pub order_by_ms: Option<i64>,
    /// That has passed for at least one of them.
    pub order_late: bool,
    /// When the first of the pools that the advice is of meets its capacity.
    pub meets: Meets,
    /// A trend beyond chance stands behind at least one of them.
    pub trend: bool,
}

/// What plans and what to do about each come to; `None` without any.
#[must_use]
pub fn together<'a>(plans: impl IntoIterator<Item = (&'a Plan, Advice)>) -> Option<Together> {
    let plans: Vec<(&Plan, Advice)> = plans.into_iter().collect();
    let most = plans.iter().map(|(_, advice)| advice.weight()).max()?;
    let of: Vec<&(&Plan, Advice)> =
        plans.iter().filter(|(_, advice)| advice.weight() == most).collect();
    let first = of.iter().min_by_key(|(plan, _)| plan.meets.order())?;
    let advice = match most {
        1 => Advice::NotYet(wait(&of)),
        _ => first.1,
    };
    let sum = |asked: &dyn Fn(Advice) -> bool| {
        let of = plans.iter().filter(|(_, advice)| asked(*advice));
        of.fold(0_u32, |sum, (plan, _)| sum.saturating_add(plan.gpus_needed))
    };
    Some(Together {
        advice,
        gpus_needed: sum(&|advice| advice != Advice::Fits),
        gpus_to_buy: sum(&|advice| advice == Advice::Buy),
        order_by_ms: of.iter().filter_map(|(plan, _)| plan.order_by_ms).min(),
        order_late: of.iter().any(|(plan, _)| plan.order_late),
        meets: first.0.meets,
        trend: of.iter().any(|(plan, _)| plan.ground.is_trend()),
    })
}

/// The reason that is nearest to buying: a rule that says no weighs more than one not known.
fn wait(of: &[&(&Plan, Advice)]) -> Wait {
    let has = |asked: Wait| of.iter().any(|(_, advice)| *advice == Advice::NotYet(asked));
    let known = [Wait::Rule, Wait::RuleUnknown, Wait::NoTrend];
    known.into_iter().find(|asked| has(*asked)).unwrap_or(Wait::NoTrend)
}

#[cfg(test)]
mod tests {
    use super::super::{PlanSettings, Rule, advise, plan};
    use super::*;
    use crate::series::Series;

    fn made(levels: &[f64], capacity_gpus: f64) -> Plan {
        let values = levels.iter().flat_map(|level| vec![Some(*level); 168]).collect();
        let series = Series::new("pool", 0, 3_600, values).unwrap();
        plan(&series, capacity_gpus, &PlanSettings::default()).unwrap()
    }

    #[test]
    fn steps_of_two_pools_are_no_trend_of_the_fleet() {
        // Breaks if the fleet's line is asked: its two steps rise as steadily as a trend.
        let a = [20.0, 20.0, 20.0, 31.0, 31.0, 31.0, 31.0, 31.0, 31.0];
        let b = [20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 31.0, 31.0, 31.0];
        let sum: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let (a, b, fleet) = (made(&a, 30.0), made(&b, 40.0), made(&sum, 70.0));
        let plans = [(&a, advise(&a, Rule::Expand)), (&b, advise(&b, Rule::Expand))];
        let told = together(plans).unwrap();
        // Pool a is full by one GPU since six weeks; pool b has 9 GPUs free; the fleet fits.
        assert_eq!((told.advice, told.gpus_to_buy), (Advice::Buy, a.gpus_needed));
        assert!(a.gpus_needed >= 1 && fleet.gpus_needed != told.gpus_to_buy);
        assert_eq!(told.meets, Meets::Already);
        let spare = b.spare_gpus().unwrap();
        assert!(!told.trend && (spare - b.weeks[0].headroom_gpus).abs() < 1e-9);
        assert!(spare > 0.0 && spare <= 9.0, "{spare}");
    }

    #[test]
    fn the_sum_is_that_of_the_pools_that_buy() {
        // Breaks if a pool that only watches is bought for, or the first date is lost.
        let (full, fuller) = (made(&[112.0; 5], 110.0), made(&[120.0; 5], 110.0));
        let buy = |plan| (plan, advise(plan, Rule::Expand));
        let watch = |plan| (plan, advise(plan, Rule::No));
        let told = together([buy(&full), buy(&fuller), watch(&fuller)]).unwrap();
        assert_eq!((told.gpus_to_buy, told.gpus_needed), (2 + 10, 2 + 10 + 10));
        assert_eq!(told.order_by_ms, full.order_by_ms);
        let told = together([watch(&full), (&fuller, Advice::NotYet(Wait::NoTrend))]).unwrap();
        assert_eq!((told.advice, told.gpus_to_buy), (Advice::NotYet(Wait::Rule), 0));
        assert_eq!(told.gpus_needed, 12);
        assert_eq!(together([]), None);
        let free = made(&[80.0; 8], 110.0);
        let told = together([buy(&free), buy(&free)]).unwrap();
        assert_eq!((told.advice, told.gpus_needed), (Advice::Fits, 0));
        assert_eq!((free.spare_gpus(), full.spare_gpus()), (Some(30.0), Some(0.0)));
    }
}
