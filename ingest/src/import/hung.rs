//! A hung driver whose readings come in parts: a run of equal readings that began in the store.
//!
//! A run counts from its first reading, wherever the imports that brought it were cut. While it is
//! too short to tell, its readings are kept; once it is long enough, all but the first are taken out
//! of the day, and an event tells since when. Readings that come after that and are still the same
//! are told by that event, and never enter. A run is one of a UTC day, as all readings are.
//!
//! An ordinary append looks only at the last stored reading of each GPU; nothing more is read
//! unless a new one repeats it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::TimestampMillisecondType;
use arrow::error::ArrowError;
use chrono::NaiveDate;
use parquet::arrow::arrow_reader::RowSelection;

use super::append::News;
use super::days::Days;
use super::part::{instants, sorted};
use super::series::Series;
use super::stale::{self, Pulse};
use super::waiting::{narrow, numbers};
use crate::error::IngestError;
use crate::event::EventKind;
use crate::merge::conform;
use crate::schema::Table;
use crate::store::FileEntry;

/// When the driver of a series was first seen to hang, in milliseconds, by its number.
pub(super) type Told = HashMap<u32, BTreeSet<i64>>;

/// What the store knows of runs into which new readings fall.
#[derive(Debug)]
pub(super) enum Going {
    /// New readings of a series up to an instant, in milliseconds, go on with a run that was told.
    On(HashMap<u32, i64>),
    /// A run is long enough only now: what is stored of it is stale too.
    TooLong,
}

/// The last stored reading of a series: its instant in milliseconds, its file and place in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    pub(super) at: i64,
    file: usize,
    row: usize,
}

impl Days<'_> {
    /// Hung drivers of a day that events of the store tell.
    pub(super) async fn told(
        &self,
        day: NaiveDate,
        series: &mut Series,
    ) -> Result<Told, IngestError> {
        let mut told = Told::new();
        if self.table != Table::Samples || self.files(day).next().is_none() {
            return Ok(told);
        }
        let Some(events) = self.store.snapshot(Table::Events).await? else { return Ok(told) };
        for file in events.files.iter().filter(|file| file.date == Some(day)) {
            for rows in self.store.read_file(&events, file, Some(Table::Events.key())).await? {
                let rows = conform(Table::Events, &rows)?;
                let kinds = rows["kind"].as_string::<i32>().iter();
                let stale: BooleanArray = kinds.map(|kind| Some(kind == Some(HUNG))).collect();
                let rows = filter_record_batch(&rows, &stale)?;
                let at = rows["event_at"].as_primitive::<TimestampMillisecondType>();
                for (number, at) in series.number(&rows)?.values().iter().zip(at.values()) {
                    told.entry(*number).or_default().insert(*at);
                }
            }
        }
        Ok(told)
    }

    /// Whether new readings of `day`, which come after the `last` ones that are stored in `files`, go
    /// on with a run that ends there.
    pub(super) async fn going(
        &self,
        day: NaiveDate,
        news: &News,
        (files, last): (&[&FileEntry], BTreeMap<u32, Last>),
        series: &mut Series,
    ) -> Result<Going, IngestError> {
        let mut going = HashMap::new();
        if self.table != Table::Samples {
            return Ok(Going::On(going));
        }
        let last = self.repeated(day, news, (files, last), series).await?;
        if last.is_empty() {
            return Ok(Going::On(going));
        }
        let told = self.told(day, series).await?;
        let after = |number: &u32, at: i64| {
            told.get(number).is_some_and(|told| told.range(at..).next().is_some())
        };
        let (known, unknown): (BTreeMap<u32, Last>, BTreeMap<u32, Last>) =
            last.into_iter().partition(|(number, last)| after(number, last.at));
        let mut stored = self.last_rows(&known, files, None, series).await?;
        if !unknown.is_empty() {
            stored.extend(self.rows_of(day, &unknown, series).await?);
        }
        let old = stored.iter().map(RecordBatch::num_rows).sum::<usize>();
        self.buffer.each(Some(day), |batch| {
            stored.push(of_series(&batch, |n| known.contains_key(&n) || unknown.contains_key(&n))?);
            Ok(())
        })?;
        let (rows, order) = sorted(self.table, stored, &series.ranks())?;
        let numbers = numbers(&rows);
        let at: Vec<i64> = instants(self.table, &rows).collect();
        for run in stale::runs(numbers.values(), &rows, &told)? {
            let of_run = &order[run.rows.clone()];
            let olds = of_run.iter().filter(|row| (**row as usize) < old).count();
            if olds == 0 || olds == of_run.len() {
                continue;
            }
            if !run.told || olds > 1 {
                return Ok(Going::TooLong);
            }
            going.insert(numbers.value(run.rows.start), at[run.rows.end - 1]);
        }
        Ok(Going::On(going))
    }

    /// The last stored readings that the first new ones of their series repeat, as it seems.
    async fn repeated(
        &self,
        day: NaiveDate,
        news: &News,
        (files, mut last): (&[&FileEntry], BTreeMap<u32, Last>),
        series: &mut Series,
    ) -> Result<BTreeMap<u32, Last>, IngestError> {
        let mut first: HashMap<u32, Pulse> = HashMap::new();
        self.buffer.each(Some(day), |batch| {
            let instants: Vec<i64> = instants(self.table, &batch).collect();
            let of_first =
                |row: usize, number: u32| news.series.get(&number) == Some(&instants[row]);
            first.extend(stale::pulses(&batch, of_first));
            Ok(())
        })?;
        if first.is_empty() {
            return Ok(BTreeMap::new());
        }
        last.retain(|number, _| first.contains_key(number));
        let mut same = HashSet::new();
        for rows in self.last_rows(&last, files, Some(&stale::PULSE), series).await? {
            let pulses = stale::pulses(&rows, |_, _| true).into_iter();
            let pulses = pulses.filter(|(number, pulse)| first.get(number) == Some(pulse));
            same.extend(pulses.map(|(number, _)| number));
        }
        last.retain(|number, _| same.contains(number));
        Ok(last)
    }

    /// Where the last reading of each series is.
    pub(super) async fn last(
        &self,
        files: &[&FileEntry],
        series: &mut Series,
    ) -> Result<BTreeMap<u32, Last>, IngestError> {
        let mut found: BTreeMap<u32, Last> = BTreeMap::new();
        let Some(base) = self.base else { return Ok(found) };
        for (place, file) in files.iter().enumerate() {
            let mut row = 0;
            for batch in self.store.read_file(base, file, Some(self.table.key())).await? {
                let batch = narrow(self.table, series, &batch)?;
                let instants = instants(self.table, &batch);
                for (number, at) in numbers(&batch).values().iter().zip(instants) {
                    let here = Last { at, file: place, row };
                    let known = found.entry(*number).or_insert(here);
                    if at >= known.at {
                        *known = here;
                    }
                    row += 1;
                }
            }
        }
        Ok(found)
    }

    /// The rows of some last readings, with all columns or with their keys and some.
    async fn last_rows(
        &self,
        last: &BTreeMap<u32, Last>,
        files: &[&FileEntry],
        columns: Option<&[&str]>,
        series: &mut Series,
    ) -> Result<Vec<RecordBatch>, IngestError> {
        let mut found = Vec::new();
        let Some(base) = self.base else { return Ok(found) };
        let columns = columns.map(|columns| [self.table.key(), columns].concat());
        for (place, file) in files.iter().enumerate() {
            let of_file = last.values().filter(|last| last.file == place);
            let rows: BTreeSet<usize> = of_file.map(|last| last.row).collect();
            if rows.is_empty() {
                continue;
            }
            let ranges = rows.iter().map(|row| *row..*row + 1);
            let all = file.rows.and_then(|rows| usize::try_from(rows).ok());
            let all = all.or(rows.last().map(|row| row + 1)).unwrap_or_default();
            let selected = RowSelection::from_consecutive_ranges(ranges, all);
            let open = self.store.open_file(base, file).await?;
            for batch in open.read(columns.as_deref(), Some(&selected)).await? {
                found.push(narrow(self.table, series, &batch)?);
            }
        }
        Ok(found)
    }

    /// All that is stored of some series on a day.
    async fn rows_of(
        &self,
        day: NaiveDate,
        wanted: &BTreeMap<u32, Last>,
        series: &mut Series,
    ) -> Result<Vec<RecordBatch>, IngestError> {
        let mut found = Vec::new();
        let Some(base) = self.base else { return Ok(found) };
        for file in self.files(day) {
            for batch in self.store.read_file(base, file, None).await? {
                let batch = narrow(self.table, series, &batch)?;
                found.push(of_series(&batch, |number| wanted.contains_key(&number))?);
            }
        }
        Ok(found)
    }
}

/// The name of the kind of event that tells of a hung driver.
const HUNG: &str = EventKind::Stale.name();

/// The rows of some series.
fn of_series(rows: &RecordBatch, of: impl Fn(u32) -> bool) -> Result<RecordBatch, ArrowError> {
    let mine: BooleanArray = numbers(rows).values().iter().map(|n| Some(of(*n))).collect();
    filter_record_batch(rows, &mine)
}
