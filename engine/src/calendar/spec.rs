//! The calendar as written in the config file.

use chrono::{NaiveDate, Weekday};
use serde::Deserialize;

use super::{Calendar, Weekly, parse_zone};

/// Days that one holiday entry may span; a longer one is a slip of the pen.
const HOLIDAY_DAYS_MAX: i64 = 60;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CalendarSpec {
    timezone: String,
    working: OneOrMany,
    holidays: Vec<HolidaySpec>,
    makeup_days: Vec<MakeupSpec>,
}

impl Default for CalendarSpec {
    fn default() -> Self {
        Self {
            timezone: "UTC".into(),
            working: OneOrMany::One("mon-fri 09:00-18:00".into()),
            holidays: Vec::new(),
            makeup_days: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct HolidaySpec {
    date: String,
    until: Option<String>,
    #[serde(default)]
    name: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct MakeupSpec {
    date: String,
    like: Option<String>,
}

impl TryFrom<CalendarSpec> for Calendar {
    type Error = String;

    fn try_from(spec: CalendarSpec) -> Result<Self, String> {
        let lines = match &spec.working {
            OneOrMany::One(line) => std::slice::from_ref(line),
            OneOrMany::Many(lines) => lines.as_slice(),
        };
        let weekly = Weekly::parse(lines.iter().map(String::as_str)).map_err(|e| e.to_string())?;
        let mut calendar = Self::new(parse_zone(&spec.timezone)?, weekly);
        for holiday in &spec.holidays {
            for date in holiday.dates()? {
                calendar = calendar.with_holiday(date, &holiday.name);
            }
        }
        for makeup in &spec.makeup_days {
            let like = makeup.like(&calendar)?;
            calendar = calendar.with_makeup(parse_date(&makeup.date)?, like);
        }
        Ok(calendar)
    }
}

impl HolidaySpec {
    /// `date` to `until`, both included.
    fn dates(&self) -> Result<Vec<NaiveDate>, String> {
        let first = parse_date(&self.date)?;
        let last = self.until.as_deref().map_or(Ok(first), parse_date)?;
        let days = (last - first).num_days();
        if !(0..HOLIDAY_DAYS_MAX).contains(&days) {
            return Err(format!(
                "holiday `{}` runs from {first} until {last}: must be 1 to {HOLIDAY_DAYS_MAX} days",
                self.name
            ));
        }
        Ok(first.iter_days().take(days as usize + 1).collect())
    }
}

impl MakeupSpec {
    fn like(&self, calendar: &Calendar) -> Result<Weekday, String> {
        match &self.like {
            Some(day) => day.parse().map_err(|_| format!("`{day}` is no weekday")),
            None => calendar
                .weekly()
                .first_worked()
                .ok_or_else(|| "a make-up day needs `like`: no weekday is worked".to_owned()),
        }
    }
}

fn parse_date(text: &str) -> Result<NaiveDate, String> {
    text.parse().map_err(|_| format!("`{text}` is no date: must be like `2026-10-01`"))
}
