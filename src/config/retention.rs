//! `[retention]` of `loadline.toml`: how long each table is kept.

use chrono::TimeDelta;
use loadline_ingest::Table;
use loadline_ingest::retain::RetainSettings;
use serde::Deserialize;

use crate::elapsed;

/// Says that a table is kept whatever its age.
const FOREVER: &str = "forever";

/// A table is kept for a day at least: a shorter time would take out what is still coming in.
const DAYS_MIN: i64 = 1;

/// How long tables are kept. Nothing goes unless `loadline retain --apply` or the collector, where
/// it is told to, takes it out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionConfig {
    /// `loadline collect` takes out what is too old by itself.
    pub collector: bool,
    // Each by its name, so that a slip in one is told with its place in the file.
    samples: Option<String>,
    node_samples: Option<String>,
    gpu_counts: Option<String>,
    events: Option<String>,
    gpu_5m: Option<String>,
    gpu_1h: Option<String>,
}

impl RetentionConfig {
    /// The ages by table; those that are not named are as usual.
    ///
    /// # Errors
    /// An age that is no whole number of days or weeks.
    pub fn settings(&self) -> Result<RetainSettings, String> {
        let mut settings = RetainSettings::default();
        for (table, age) in [
            (Table::Samples, &self.samples),
            (Table::NodeSamples, &self.node_samples),
            (Table::GpuCounts, &self.gpu_counts),
            (Table::Events, &self.events),
            (Table::Gpu5m, &self.gpu_5m),
            (Table::Gpu1h, &self.gpu_1h),
        ] {
            let (name, Some(age)) = (table.name(), age) else { continue };
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
    use std::collections::BTreeMap;

    use loadline_ingest::retain::TABLES;

    use super::*;

    fn settings(text: &str) -> Result<BTreeMap<Table, i64>, String> {
        let config: RetentionConfig = toml::from_str(text).map_err(|error| error.to_string())?;
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
            ("sample = \"1d\"", "unknown field `sample`, expected one of `collector`, `samples`"),
            ("jobs = \"1d\"", "unknown field `jobs`"),
            ("collector = true\nsamples = 90", "line 2, column 11"),
            ("collector = true\nsamples = 90", "expected a string"),
            ("collector = \"yes\"", "1 | collector = \"yes\""),
            ("samples = \"90\"", "has no unit"),
            ("samples = \"36h\"", "whole days"),
            ("samples = \"1h\"", "`1d` at least"),
        ] {
            let refused = settings(slip).unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn every_table_that_can_lose_days_has_a_key() {
        // Breaks when a table joins those that retention knows and its key is an unknown field.
        for table in TABLES {
            let told = settings(&format!("{} = \"3d\"", table.name())).unwrap();
            assert_eq!(told[&table], 3);
        }
    }
}
