//! What a job's readings look like, in numbers that do not depend on who ran it.

/// How a measurement is told in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A share of 1, told in per cent.
    Ratio,
    /// A number with a unit behind it.
    Number(&'static str),
}

/// One measurement of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measurement {
    /// Column of the view `job_signatures`.
    pub name: &'static str,
    words: &'static str,
    form: Form,
    /// Differences count as ratios: 1 to 2 is as far as 8 to 16.
    logarithmic: bool,
}

const fn ratio(name: &'static str, words: &'static str) -> Measurement {
    Measurement { name, words, form: Form::Ratio, logarithmic: false }
}

const fn number(
    name: &'static str,
    words: &'static str,
    unit: &'static str,
    logarithmic: bool,
) -> Measurement {
    Measurement { name, words, form: Form::Number(unit), logarithmic }
}

/// Measurements in a signature.
pub const MEASUREMENTS_COUNT: usize = 14;

/// What a signature is made of, in its order.
pub const MEASUREMENTS: [Measurement; MEASUREMENTS_COUNT] = [
    ratio("util_mean_ratio", "mean utilisation"),
    ratio("util_p10_ratio", "utilisation in its quietest tenth"),
    ratio("util_p50_ratio", "median utilisation"),
    ratio("util_p90_ratio", "utilisation in its busiest tenth"),
    ratio("util_spread_ratio", "spread of utilisation (p90 less p10)"),
    ratio("idle_ratio", "time below 5 % of utilisation"),
    ratio("mem_used_ratio", "memory used"),
    ratio("power_level_ratio", "power between rest and the highest"),
    number("rhythm_correlation", "likeness to the reading before", "", false),
    number("switches_per_hour", "changes between idle and busy", "per hour", true),
    ratio("working_lift_ratio", "work in working hours beyond an even share"),
    number("gpus", "GPUs", "", true),
    number("hours_run", "hours run", "h", true),
    ratio("even_ratio", "least busy GPU against the busiest"),
];

impl Measurement {
    /// The measurement in plain words.
    #[must_use]
    pub fn words(&self) -> &'static str {
        self.words
    }

    /// A value of it in words, with its unit.
    #[must_use]
    pub fn told(&self, value: f64) -> String {
        match self.form {
            // A zero has no sign.
            Form::Ratio => format!("{:.0} %", (value * 100.0).round() + 0.0),
            Form::Number(unit) => {
                let text = format!("{:.1}", (value * 10.0).round() / 10.0 + 0.0);
                let text = text.strip_suffix(".0").unwrap_or(&text).to_owned();
                if unit.is_empty() { text } else { format!("{text} {unit}") }
            }
        }
    }

    /// Where a value stands on the scale on which differences count.
    pub(crate) fn scaled(&self, value: f64) -> f64 {
        if self.logarithmic { value.max(0.0).ln_1p() } else { value }
    }
}

/// Measurements of one job, in the order of [`MEASUREMENTS`]; what was not read is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature([Option<f64>; MEASUREMENTS_COUNT]);

impl Signature {
    /// A signature; a value that is not finite counts as not read.
    #[must_use]
    pub fn new(values: [Option<f64>; MEASUREMENTS_COUNT]) -> Self {
        Self(values.map(|value| value.filter(|value| value.is_finite())))
    }

    /// The value of a measurement.
    #[must_use]
    pub fn value(&self, measurement: usize) -> Option<f64> {
        self.0.get(measurement).copied().flatten()
    }

    pub(crate) fn scaled(&self) -> [Option<f64>; MEASUREMENTS_COUNT] {
        std::array::from_fn(|m| self.0[m].map(|value| MEASUREMENTS[m].scaled(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_with_their_unit() {
        // Breaks if a share is told as a bare number, or a rounded zero keeps a sign.
        let told = |name: &str, value: f64| {
            MEASUREMENTS.iter().find(|known| known.name == name).unwrap().told(value)
        };
        assert_eq!(told("util_mean_ratio", 0.934), "93 %");
        assert_eq!(told("working_lift_ratio", -0.002), "0 %");
        assert_eq!(told("rhythm_correlation", -0.04), "0");
        assert_eq!(told("switches_per_hour", 1.25), "1.3 per hour");
        assert_eq!(told("gpus", 8.0), "8");
        assert_eq!(told("hours_run", 0.17), "0.2 h");
    }

    #[test]
    fn what_is_not_a_number_was_not_read() {
        // Breaks if NaN reaches a fit, or a count is compared by difference.
        let mut values = [Some(0.5); MEASUREMENTS_COUNT];
        values[0] = Some(f64::NAN);
        values[1] = None;
        let signature = Signature::new(values);
        assert_eq!((signature.value(0), signature.value(1)), (None, None));
        assert_eq!(signature.value(2), Some(0.5));
        assert_eq!(signature.value(MEASUREMENTS_COUNT), None);
        assert_eq!(signature.scaled()[2], Some(0.5));
        assert_eq!(signature.scaled()[11], Some(1.5_f64.ln()));
    }
}
