//! A forecast of hourly or longer steps with the backtest behind it, for `forecast`, `scale` and the
//! report.

use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};
use loadline_engine::calendar::{Calendar, offset_s};
use loadline_forecast::{
    Backtest, Basis, CalendarColumn, Forecast, ForecastSettings, ModelChoice, Series, backtest,
    origins,
};

use crate::failure::Failure;
use crate::report::signed_percent;

/// Origins of the backtest behind a forecast.
const ORIGINS: usize = 8;

/// A forecast, and how it came to be the one.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Ahead {
    /// The forecast.
    pub(in crate::commands) forecast: Forecast,
    /// The backtest behind it; `None` where the history is too short for one.
    pub(in crate::commands) tested: Option<Backtest>,
    /// The model that was judged in it, did worse than the seasonal naive and made way for that.
    pub(in crate::commands) lost: Option<Basis>,
}

/// A forecast and the backtest behind it, where the history allows one. A model that did not beat
/// the seasonal naive there makes way for it.
pub(in crate::commands) fn look_ahead(
    series: &Series,
    calendar: &Calendar,
    steps: usize,
) -> Result<Ahead, Failure> {
    let mut settings = ForecastSettings { horizon_steps: steps, ..ForecastSettings::default() };
    let columns = calendar_columns(series, calendar, steps);
    let forecast = loadline_forecast::forecast(series, &columns, &settings)?;
    let origins = origins(series, steps, ORIGINS);
    if origins.is_empty() {
        return Ok(Ahead { forecast, tested: None, lost: None });
    }
    let tested = backtest(series, &columns, &settings, &origins)?;
    if forecast.basis == Basis::WeeklyElasticNet && tested.overall.naive_is_better() {
        settings.model = ModelChoice::SeasonalNaive;
        let lost = Some(forecast.basis);
        let forecast = loadline_forecast::forecast(series, &columns, &settings)?;
        return Ok(Ahead { forecast, tested: Some(tested), lost });
    }
    Ok(Ahead { forecast, tested: Some(tested), lost: None })
}

impl Ahead {
    /// Model, skill, interval coverage and reasons of a forecast, in words and local dates.
    pub(in crate::commands) fn told(&self, calendar: &Calendar) -> String {
        let forecast = &self.forecast;
        let mut text = format!("{}: {}", forecast.series, forecast.basis.name());
        match &self.tested {
            Some(tested) => text.push_str(&format!(
                "; backtest over {} origins: {}, {:.0} % of outcomes inside the 80 % interval",
                tested.origins.len(),
                self.skill(tested),
                tested.coverage_80_ratio(forecast.basis) * 100.0
            )),
            None => text.push_str("; history too short for a backtest"),
        }
        for reason in &forecast.reasons {
            let reason = reason.told(|at_ms| offset_s(calendar.zone(), at_ms));
            text.push_str(&format!("; {reason}"));
        }
        text
    }

    /// How the model that was judged did against the seasonal naive.
    fn skill(&self, tested: &Backtest) -> String {
        let of = |made: &&Forecast| self.lost.is_some_and(|lost| made.basis == lost);
        let judged = tested.forecasts.iter().filter(of).count();
        // Where the history before an origin was too short, a plainer one stood in.
        let judged = match judged {
            at if self.lost.is_some() && at < tested.origins.len() => {
                format!(", the model at {at} of them")
            }
            _ => String::new(),
        };
        match (self.lost, tested.overall.skill()) {
            (Some(lost), Ok(skill)) => format!(
                "it is used because {} does worse (skill {}{judged})",
                lost.name(),
                signed_percent(skill)
            ),
            (Some(lost), Err(why)) => format!(
                "it is used because {} does worse (no skill stated: {why}{judged})",
                lost.name()
            ),
            (None, _) if self.forecast.basis == Basis::SeasonalNaive => {
                "no skill stated: it is the benchmark itself".to_owned()
            }
            (None, Err(why)) => format!("no skill stated: {why}"),
            (None, Ok(skill)) => {
                let than = match skill {
                    skill if skill >= 0.005 => "better than",
                    skill if skill > -0.005 => "as good as",
                    _ => "no better than",
                };
                format!("skill {} ({than} seasonal naive)", signed_percent(skill))
            }
        }
    }
}

/// The share of each step that is worked and that is holiday, and the local hour of the week.
fn calendar_columns(series: &Series, calendar: &Calendar, steps: usize) -> Vec<CalendarColumn> {
    let step = TimeDelta::seconds(i64::from(series.step_s()));
    let of = |name: &str, value: &dyn Fn(DateTime<Utc>) -> f64| CalendarColumn {
        name: name.to_owned(),
        values: (0..series.len() + steps)
            .map(|step| {
                DateTime::from_timestamp_millis(series.step_start_ms(step)).map_or(0.0, value)
            })
            .collect(),
    };
    let worked = |at| calendar.working_s(at, at + step) / f64::from(series.step_s());
    let holiday = |at| f64::from(u8::from(calendar.holiday(calendar.local_date(at)).is_some()));
    let hour_of_week = |at: DateTime<Utc>| {
        let local = at.with_timezone(&calendar.zone());
        f64::from(local.weekday().num_days_from_monday() * 24 + local.hour())
    };
    let mut columns = vec![of("working", &worked), of("holiday", &holiday)];
    if series.step_s() == super::HOUR_S {
        columns.push(of("hour_of_week", &hour_of_week));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days of hours, of which those before `first` were not seen.
    fn ahead(days: usize, first: usize, gpus: impl Fn(usize) -> f64) -> (String, Ahead) {
        let value = |hour: usize| (hour >= first).then(|| gpus(hour));
        let series = Series::new("nb", 0, 3_600, (0..days * 24).map(value).collect()).unwrap();
        let made = look_ahead(&series, &Calendar::default(), 24).unwrap();
        (made.told(&Calendar::default()), made)
    }

    #[test]
    fn the_model_that_lost_is_named_and_not_the_one_that_won() {
        // Breaks if "seasonal_naive" is said to do worse than itself: a young series is forecast by
        // a plainer model at the first origins, and that is not the one that was judged.
        let (_, made) = ahead(40, 0, |hour| ((hour * 7_919) % 31) as f64);
        let tested = made.tested.clone().unwrap();
        let naive = Forecast { basis: Basis::SeasonalNaive, ..made.forecast.clone() };
        let mut mixed = tested.clone();
        mixed.forecasts[0].basis = Basis::Level;
        let told = |lost, tested: &Backtest| {
            let tested = Some(tested.clone());
            Ahead { forecast: naive.clone(), tested, lost }.told(&Calendar::default())
        };
        let lost = Some(Basis::WeeklyElasticNet);
        let because = "nb: seasonal_naive; backtest over 8 origins: it is used because \
                       weekly_elastic_net does worse (";
        assert!(told(lost, &tested).starts_with(because), "{}", told(lost, &tested));
        assert!(!told(lost, &tested).contains("the model at"));
        assert!(told(lost, &mixed).contains(", the model at 7 of them)"), "{}", told(lost, &mixed));
        assert!(told(None, &tested).contains("no skill stated: it is the benchmark itself"));
        assert_eq!(
            [-0.004, 0.004, 0.31, -0.9].map(signed_percent),
            ["0 %", "0 %", "+31 %", "-90 %"]
        );
    }

    #[test]
    fn a_team_that_is_new_has_the_plain_forecast_with_its_reason() {
        // Breaks if hours before anybody counted the team cost it its forecast.
        let rhythm = |hour: usize| (hour % 24) as f64;
        for known in [12, 30, 72, 240] {
            let (told, made) = ahead(35, 840 - known, rhythm);
            assert!(made.tested.is_none() && made.lost.is_none(), "{told}");
            let plain = if known < 48 { "nb: level; " } else { "nb: seasonal_naive; " };
            assert!(told.starts_with(plain), "{told}");
            assert!(
                told.contains("days of history, 14 needed to learn a weekly pattern"),
                "{told}"
            );
            assert!(told.contains("new: first demand at 1970-"), "{told}");
        }
        let (told, made) = ahead(35, 840 - 480, rhythm);
        assert!(made.tested.is_some(), "{told}");
    }
}
