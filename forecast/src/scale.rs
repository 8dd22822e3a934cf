//! How many GPUs should be on in each of the next steps.
//!
//! # Why
//! *Why look ahead over the lead time?* A GPU asked for now serves only after it has started, so
//! the target of a step is the largest need of that step and of the lead time behind it.
//! *Why does nothing scale down at once?* Starting costs minutes of waiting jobs; keeping a GPU
//! on a little longer costs cents. Down-scaling therefore waits out a cooldown and ignores
//! changes within the hysteresis.

use crate::error::{ForecastError, whole_gpus};
use crate::quantile::{QuantileForecast, QuantileLevel};

/// How to turn demand into GPUs that are on.
///
/// | field | default | meaning | range |
/// | :-- | :-- | :-- | :-- |
/// | `level` | 0.9 | quantile of demand to serve | 0.001-0.999 |
/// | `headroom_ratio` | 0.1 | extra share on top of it | 0-10 |
/// | `gpus_min` | 0 | never fewer, up to whole units | 0 or more |
/// | `gpus_max` | none | never more, down to whole units (a shortfall is said) | at least `gpus_min` |
/// | `lead_steps` | 1 | steps from asking for a GPU to its serving | 0-10000 |
/// | `cooldown_steps` | 2 | steps of lower need before going down | 0-10000 |
/// | `hysteresis_ratio` | 0.1 | a fall of less than this share is ignored | 0-1 |
/// | `unit_gpus` | 1 | GPUs that start together (a node) | 1 or more |
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleSettings {
    /// Quantile of demand to serve.
    pub level: QuantileLevel,
    /// Extra share on top of the quantile.
    pub headroom_ratio: f64,
    /// Never fewer GPUs than this.
    pub gpus_min: u32,
    /// Never more GPUs than this.
    pub gpus_max: Option<u32>,
    /// Steps from asking for a GPU to its serving.
    pub lead_steps: usize,
    /// Steps of lower need before going down.
    pub cooldown_steps: usize,
    /// A fall of less than this share of what is on is ignored.
    pub hysteresis_ratio: f64,
    /// GPUs that start and stop together.
    pub unit_gpus: u32,
}

impl Default for ScaleSettings {
    fn default() -> Self {
        Self {
            level: QuantileLevel::new(900).expect("900 lies in 1 to 999"),
            headroom_ratio: 0.1,
            gpus_min: 0,
            gpus_max: None,
            lead_steps: 1,
            cooldown_steps: 2,
            hysteresis_ratio: 0.1,
            unit_gpus: 1,
        }
    }
}

/// What the metric said last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// GPUs in demand, read in time. A real zero is a reading.
    Fresh(f64),
    /// No reading, or one too old to act on.
    Stale,
}

/// Where the fleet stands before the decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleState {
    /// GPUs that are on.
    pub gpus_on: u32,
    /// Steps in a row for which less was needed than is on.
    pub steps_below: usize,
}

/// Why a target is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleReason {
    /// Need rises within the lead time.
    Up,
    /// Need has been lower for the whole cooldown.
    Down,
    /// Need fits what is on.
    Steady,
    /// Need is lower, the cooldown is not over.
    Cooldown,
    /// Need is lower by less than the hysteresis.
    Hysteresis,
    /// The metric is missing or stale: what is on stays on.
    HeldStale,
    /// The need is above the maximum.
    CappedAtMax,
}

/// GPUs that should be on in one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleStep {
    /// GPUs that should be on.
    pub gpus_on: u32,
    /// GPUs needed now or within the lead time, headroom included, before any limit.
    pub gpus_needed: f64,
    /// GPUs needed above the maximum.
    pub shortfall_gpus: u32,
    /// Why.
    pub reason: ScaleReason,
}

/// GPUs that should be on in each step of a forecast.
///
/// # Input
/// `forecast` may be stale: pass [`Metric::Stale`] where the reading behind it is,
/// and every step holds what is on (raised to `gpus_min`, never lowered). A fresh
/// reading above the first step's quantile counts as that step's demand.
///
/// # Output
/// One row a step. Going up is never delayed: the target at step `t` serves the
/// largest need of steps `t` to `t + lead_steps`.
///
/// # Errors
/// [`ForecastError::Setting`] for a setting outside its range.
pub fn scale(
    forecast: &QuantileForecast,
    metric: Metric,
    state: ScaleState,
    settings: &ScaleSettings,
) -> Result<Vec<ScaleStep>, ForecastError> {
    settings.check()?;
    let mut demand = forecast.path(settings.level);
    let Metric::Fresh(now) = metric else {
        return Ok(hold(demand.len(), state, settings));
    };
    if !now.is_finite() || now < 0.0 {
        return Ok(hold(demand.len(), state, settings));
    }
    demand[0] = demand[0].max(now);
    let mut state = state;
    (0..demand.len())
        .map(|t| {
            let window = &demand[t..(t + settings.lead_steps + 1).min(demand.len())];
            let most = window.iter().copied().fold(0.0, f64::max);
            let step = settings.decide(most * (1.0 + settings.headroom_ratio), &mut state)?;
            state.gpus_on = step.gpus_on;
            Ok(step)
        })
        .collect()
}

fn hold(steps: usize, state: ScaleState, settings: &ScaleSettings) -> Vec<ScaleStep> {
    let gpus_on = state.gpus_on.max(settings.least());
    let step = ScaleStep {
        gpus_on,
        gpus_needed: f64::from(gpus_on),
        shortfall_gpus: 0,
        reason: ScaleReason::HeldStale,
    };
    vec![step; steps]
}

impl ScaleSettings {
    fn check(&self) -> Result<(), ForecastError> {
        let refuse = |what, value: f64, rule| {
            Err(ForecastError::Setting { what, value: value.to_string(), rule })
        };
        if !(0.0..=10.0).contains(&self.headroom_ratio) {
            return refuse("headroom ratio", self.headroom_ratio, "0 to 10");
        }
        if !(0.0..=1.0).contains(&self.hysteresis_ratio) {
            return refuse("hysteresis ratio", self.hysteresis_ratio, "0 to 1");
        }
        if self.lead_steps > 10_000 || self.cooldown_steps > 10_000 {
            let most = self.lead_steps.max(self.cooldown_steps) as f64;
            return refuse("lead time or cooldown in steps", most, "0 to 10000");
        }
        if self.unit_gpus == 0 {
            return refuse("GPUs that start together", 0.0, "1 or more");
        }
        let units = u64::from(self.gpus_min).div_ceil(u64::from(self.unit_gpus));
        if units * u64::from(self.unit_gpus) > u64::from(u32::MAX) {
            return refuse("minimum of GPUs", f64::from(self.gpus_min), "whole units of a count");
        }
        match self.gpus_max.filter(|_| self.most().is_some_and(|most| most < self.least())) {
            Some(max) => {
                let rule = "at least the minimum, both in whole units of GPUs that start together";
                refuse("maximum of GPUs", f64::from(max), rule)
            }
            None => Ok(()),
        }
    }

    /// The minimum in whole units.
    fn least(&self) -> u32 {
        self.gpus_min.div_ceil(self.unit_gpus).saturating_mul(self.unit_gpus)
    }

    /// The maximum in whole units; `None` without one.
    #[must_use]
    pub fn most(&self) -> Option<u32> {
        Some(self.gpus_max? / self.unit_gpus.max(1) * self.unit_gpus)
    }

    /// One step: limits first, then direction.
    fn decide(&self, needed: f64, state: &mut ScaleState) -> Result<ScaleStep, ForecastError> {
        let unit = f64::from(self.unit_gpus);
        let wanted = ((needed / unit - 1e-9).ceil() * unit).max(0.0);
        let wanted = whole_gpus("needed in one step", wanted)?.max(self.least());
        let target = self.most().map_or(wanted, |most| wanted.min(most));
        let shortfall_gpus = wanted - target;
        let (gpus_on, reason) = self.direction(target, state);
        let capped = shortfall_gpus > 0 && gpus_on == target;
        let reason = if capped { ScaleReason::CappedAtMax } else { reason };
        Ok(ScaleStep { gpus_on, gpus_needed: needed, shortfall_gpus, reason })
    }

    fn direction(&self, target: u32, state: &mut ScaleState) -> (u32, ScaleReason) {
        let on = state.gpus_on;
        if target >= on {
            state.steps_below = 0;
            let reason = if target > on { ScaleReason::Up } else { ScaleReason::Steady };
            return (target, reason);
        }
        // Above the maximum there is nothing to wait for.
        if self.most().is_some_and(|most| on > most) {
            state.steps_below = 0;
            return (target, ScaleReason::Down);
        }
        // Small fleets never get stuck: the last GPUs may always go when nothing is needed.
        let fall = f64::from(on - target);
        if fall < self.hysteresis_ratio * f64::from(on) && target > 0 {
            state.steps_below = 0;
            return (on, ScaleReason::Hysteresis);
        }
        state.steps_below += 1;
        if state.steps_below <= self.cooldown_steps {
            return (on, ScaleReason::Cooldown);
        }
        state.steps_below = 0;
        (target, ScaleReason::Down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(per_mille: u16) -> QuantileLevel {
        QuantileLevel::new(per_mille).unwrap()
    }

    fn forecast(demand: &[f64]) -> QuantileForecast {
        QuantileForecast::new(vec![level(900)], demand.to_vec()).unwrap()
    }

    fn plain() -> ScaleSettings {
        ScaleSettings { headroom_ratio: 0.0, lead_steps: 0, ..ScaleSettings::default() }
    }

    fn on(gpus_on: u32) -> ScaleState {
        ScaleState { gpus_on, steps_below: 0 }
    }

    fn targets(steps: &[ScaleStep]) -> Vec<u32> {
        steps.iter().map(|s| s.gpus_on).collect()
    }

    #[test]
    fn a_stale_metric_never_scales_to_zero() {
        // Breaks if missing data is read as no demand.
        for metric in [Metric::Stale, Metric::Fresh(f64::NAN)] {
            let steps = scale(&forecast(&[0.0; 6]), metric, on(12), &plain()).unwrap();
            assert_eq!(targets(&steps), [12; 6]);
            assert!(steps.iter().all(|s| s.reason == ScaleReason::HeldStale));
        }
    }

    #[test]
    fn a_real_zero_scales_to_zero_after_the_cooldown() {
        // Breaks if zero acts at once, or never.
        let steps = scale(&forecast(&[0.0; 5]), Metric::Fresh(0.0), on(12), &plain()).unwrap();
        assert_eq!(targets(&steps), [12, 12, 0, 0, 0]); // two steps of cooldown
        let one = scale(&forecast(&[0.0; 5]), Metric::Fresh(0.0), on(1), &plain()).unwrap();
        assert_eq!(targets(&one), [1, 1, 0, 0, 0]);
    }

    #[test]
    fn lead_time_is_honoured() {
        // Breaks if GPUs are asked for when they are needed rather than before.
        let settings = ScaleSettings { lead_steps: 2, ..plain() };
        let demand = [10.0, 10.0, 10.0, 40.0, 40.0];
        let steps = scale(&forecast(&demand), Metric::Fresh(10.0), on(10), &settings).unwrap();
        assert_eq!(targets(&steps), [10, 40, 40, 40, 40]);
    }

    #[test]
    fn a_noisy_flat_series_does_not_thrash() {
        // Breaks if each wiggle moves the fleet.
        let demand: Vec<f64> = (0..48).map(|i| 100.0 + f64::from((i * 37) % 9) - 4.0).collect();
        let steps = scale(&forecast(&demand), Metric::Fresh(100.0), on(104), &plain()).unwrap();
        let moves = targets(&steps).windows(2).filter(|w| w[0] != w[1]).count();
        assert_eq!((moves, steps[47].gpus_on), (0, 104));
    }

    #[test]
    fn limits_hold_and_a_shortfall_is_said() {
        // Breaks if demand above the maximum is clipped away in silence.
        let settings = ScaleSettings { gpus_min: 8, gpus_max: Some(32), unit_gpus: 8, ..plain() };
        let steps =
            scale(&forecast(&[1.0, 17.0, 50.0]), Metric::Fresh(1.0), on(0), &settings).unwrap();
        assert_eq!(targets(&steps), [8, 24, 32]);
        assert_eq!(steps[2].shortfall_gpus, 24); // 50 needs 56 in whole nodes of 8
        assert_eq!(steps[2].reason, ScaleReason::CappedAtMax);
    }

    #[test]
    fn limits_keep_to_whole_units() {
        // Breaks if half a node is switched on at the maximum, or below the minimum.
        let settings = ScaleSettings { gpus_min: 3, gpus_max: Some(20), unit_gpus: 8, ..plain() };
        let asked = |on_now: u32, demand: &[f64]| {
            scale(&forecast(demand), Metric::Fresh(0.0), on(on_now), &settings).unwrap()
        };
        let steps = asked(0, &[0.0, 9.0, 50.0]);
        assert_eq!(targets(&steps), [8, 16, 16]);
        assert_eq!((steps[2].shortfall_gpus, steps[2].reason), (40, ScaleReason::CappedAtMax));
        assert_eq!(targets(&asked(20, &[50.0])), [16]);
        let bad = ScaleSettings { gpus_min: 17, ..settings.clone() };
        let told = scale(&forecast(&[1.0]), Metric::Stale, on(0), &bad).unwrap_err().to_string();
        assert!(told.contains("both in whole units"), "{told}");
    }

    #[test]
    fn more_gpus_than_a_count_holds_are_refused() {
        // Breaks if 5e9 GPUs are told as 4294967295.
        let told = scale(&forecast(&[5e9]), Metric::Fresh(0.0), on(0), &plain()).unwrap_err();
        assert_eq!(told, ForecastError::TooManyGpus { what: "needed in one step", gpus: 5e9 });
        assert!(told.to_string().contains("at most 4294967295"), "{told}");
    }

    #[test]
    fn headroom_is_added_and_settings_are_checked() {
        // Breaks if headroom is lost or nonsense accepted.
        let settings = ScaleSettings { headroom_ratio: 0.2, ..plain() };
        let steps = scale(&forecast(&[10.0]), Metric::Fresh(0.0), on(0), &settings).unwrap();
        assert_eq!(targets(&steps), [12]);
        let bad = ScaleSettings { headroom_ratio: f64::NAN, ..plain() };
        assert!(scale(&forecast(&[10.0]), Metric::Fresh(0.0), on(0), &bad).is_err());
        let bad = ScaleSettings { gpus_min: 5, gpus_max: Some(4), ..plain() };
        assert!(scale(&forecast(&[10.0]), Metric::Fresh(0.0), on(0), &bad).is_err());
    }
}
