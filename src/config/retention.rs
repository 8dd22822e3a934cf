//! `[retention]` of `loadline.toml`: how long each table is kept.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use loadline_ingest::Table;
use loadline_ingest::retain::{RetainSettings, TABLES};
use serde::Deserialize;

use crate::elapsed;

/// Says that a table is kept whatever its age.
const FOREVER: &str = "forever";

/// A table is kept for a day at least: a shorter time would take out what is still coming in.
const DAYS_MIN: i64 = 1;

/// How long tables are kept. Nothing goes unless `loadline retain --apply` or the collector, where
/// it is told to, takes it out.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct RetentionConfig {
    /// `loadline collect` takes out what is too old by itself.
    #[serde(default)]
    pub collector: bool,
    /// By name of the table; a name that is none is refused by [`RetentionConfig::settings`].
    #[serde(flatten)]
    ages: BTreeMap<String, String>,
}

impl RetentionConfig {
    /// The ages by table; those that are not named are as usual.
    ///
    /// # Errors
    /// A table that cannot lose days, or an age that is no whole number of days or weeks.
    pub fn settings(&self) -> Result<RetainSettings, String> {
        let mut settings = RetainSettings::default();
        for (name, age) in &self.ages {
            let Some(table) = TABLES.into_iter().find(|table| table.name() == name) else {
                let names = TABLES.map(Table::name).join(", ");
                return Err(format!("`retention.{name}`: must be one of collector, {names}"));
            };
            if age == FOREVER {
                settings.ages.remove(&table);
                continue;
            }
            let seconds = elapsed::parse(age)
                .map_err(|reason| format!("`retention.{name}`: {reason}, or `{FOREVER}`"))?;
            let age = TimeDelta::try_seconds(seconds).filter(|age| age.num_days() >= DAYS_MIN);
            let Some(age) = age.filter(|age| *age == TimeDelta::days(age.num_days())) else {
                return Err(format!(
                    "`retention.{name}` must be whole days, `1d` at least, or `{FOREVER}`"
                ));
            };
            settings.ages.insert(table, age);
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<BTreeMap<Table, i64>, String> {
        let config: RetentionConfig = toml::from_str(text).unwrap();
        let ages = config.settings()?.ages;
        Ok(ages.into_iter().map(|(table, age)| (table, age.num_days())).collect())
    }

    #[test]
    fn ages_are_whole_days_and_tables_are_known() {
        // Breaks when a slip in a name or a unit keeps nothing or everything.
        assert_eq!(settings(""), Ok([(Table::Samples, 90), (Table::Gpu5m, 730)].into()));
        let told = settings("samples = \"2w\"\ngpu_5m = \"forever\"\nevents = \"400d\"");
        assert_eq!(told, Ok([(Table::Samples, 14), (Table::Events, 400)].into()));
        for (slip, word) in [
            ("sample = \"1d\"", "must be one of collector, samples"),
            ("jobs = \"1d\"", "must be one of"),
            ("samples = \"90\"", "has no unit"),
            ("samples = \"36h\"", "whole days"),
            ("samples = \"1h\"", "`1d` at least"),
        ] {
            let refused = settings(slip).unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
    }
}
