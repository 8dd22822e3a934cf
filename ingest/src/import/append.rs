//! Readings that come after all that is stored of their nodes: a file more, and no file rewritten.
//!
//! # Why
//! Collectors bring a few minutes of readings at a time. To merge each into a whole day would cost
//! the day again and again; and a hundred collectors would wait for each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use arrow::array::{Array, AsArray};
use chrono::NaiveDate;

use super::days::Days;
use super::hung::{Going, Told};
use super::outcome::Outcome;
use super::part::{Merger, instants};
use super::series::Series;
use super::silence::Tails;
use super::waiting::numbers;
use crate::error::IngestError;
use crate::schema::Table;
use crate::store::{Bounds, Content, FileEntry, Rewrite};

/// Longest time before the first new reading in which a stored one still tells how much time that
/// one stands for, in milliseconds. A longer silence is a gap in any case.
const TAIL_MS: i64 = 15 * 60 * 1000;

/// First and last instant, in milliseconds.
type Span = (i64, i64);

/// What has come of one day.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Between when, by node.
    spans: BTreeMap<String, Span>,
    /// Of which series, and from when on, in milliseconds.
    pub(super) series: HashMap<u32, i64>,
}

/// Where what is stored of a day ends.
#[derive(Debug)]
pub(super) struct End {
    /// The last readings.
    tails: Tails,
    /// Up to when new readings go on with a run of stale ones, in milliseconds, by series.
    going: HashMap<u32, i64>,
}

impl Days<'_> {
    /// Where the readings before the new ones of `day` end, if all of these come after what is stored
    /// of their nodes; `before` are those of the day before.
    pub(super) async fn appends(
        &self,
        day: NaiveDate,
        before: &Tails,
        series: &mut Series,
    ) -> Result<Option<End>, IngestError> {
        let Some(base) = self.base.filter(|_| self.table.timed()) else { return Ok(None) };
        // A day without new readings is here because of those before it, which may change its first.
        let rows = self.buffer.rows(Some(day));
        if self.files(day).next().is_none() || rows == 0 || rows > self.part_rows {
            return Ok(None);
        }
        let Some(news) = self.news(day, series)? else { return Ok(None) };
        if let Some(next) = day.succ_opt()
            && self.files(next).next().is_some()
            && touched(&self.store.bounds(base, next)?, &news.spans, |_, _| true).next().is_some()
        {
            return Ok(None);
        }
        let bounds = self.store.bounds(base, day)?;
        if touched(&bounds, &news.spans, |stored, new| stored.1 >= new.0).next().is_some() {
            return Ok(None);
        }
        // Recent files tell nearly always; a series that was silent for longer is looked for in all.
        for tail_ms in [TAIL_MS, i64::MAX] {
            let within = |stored: Span, new: Span| stored.1 >= new.0.saturating_sub(tail_ms);
            let paths: BTreeSet<&str> = touched(&bounds, &news.spans, within).collect();
            let files = self.files(day).filter(|file| paths.contains(file.path.as_str()));
            let files: Vec<&FileEntry> = files.collect();
            let last = self.last(&files, series).await?;
            if tail_ms == i64::MAX || news.series.keys().all(|number| last.contains_key(number)) {
                let mut tails = before.clone();
                tails.extend(last.iter().map(|(number, last)| (*number, last.at)));
                let going = self.going(day, &news, (&files, last), series).await?;
                let Going::On(going) = going else { return Ok(None) };
                return Ok(Some(End { tails, going }));
            }
        }
        Ok(None)
    }

    /// Puts the new readings of `day` into a file of their own.
    pub(super) async fn append(
        &self,
        day: NaiveDate,
        (end, known): (End, &Tails),
        series: &Series,
        rewrite: &mut Rewrite<'_>,
        outcome: &mut Outcome,
    ) -> Result<Tails, IngestError> {
        let mut batches = Vec::new();
        self.buffer.each(Some(day), |batch| {
            batches.push(batch);
            Ok(())
        })?;
        let End { tails: before, going } = end;
        let (told, going) = (&Told::new(), &going);
        let merger = Merger { table: self.table, aim: self.aim, before: &before, told, going };
        let merged = merger.merge(batches, 0, &series.ranks())?;
        let (keys, numbers) = (series.keys()?, numbers(&merged.rows));
        self.note_gaps(day, (&before, known), &keys, &merged, outcome);
        outcome.aside(&keys, &merged.stale, &merged.hung);
        if self.table == Table::Samples {
            outcome.look(&keys, &merged.rows, &self.findings.distress);
        }
        outcome.rows_added += merged.added;
        outcome.rows_known += merged.duplicates;
        let mut tails = before;
        tails.extend(numbers.values().iter().copied().zip(instants(self.table, &merged.rows)));
        if merged.rows.num_rows() > 0 {
            rewrite.extend();
            let series = Some((keys, numbers));
            let content = Content {
                date: Some(day),
                part: (0, 1),
                series,
                made_from: None,
                rows: merged.rows,
            };
            rewrite.put(content).await?;
        }
        Ok(tails)
    }

    /// The span of each node's new readings; `None` where a reading names no node.
    fn news(&self, day: NaiveDate, series: &Series) -> Result<Option<News>, IngestError> {
        let keys = series.keys()?;
        let nodes = keys.column_by_name("node").and_then(|nodes| nodes.as_string_opt::<i32>());
        let Some(nodes) = nodes else { return Ok(None) };
        let mut news = News::default();
        let mut named = true;
        self.buffer.each(Some(day), |batch| {
            for (number, at) in numbers(&batch).values().iter().zip(instants(self.table, &batch)) {
                let first = news.series.entry(*number).or_insert(at);
                *first = at.min(*first);
                let number = *number as usize;
                if nodes.is_null(number) {
                    named = false;
                    break;
                }
                match news.spans.get_mut(nodes.value(number)) {
                    Some((first, last)) => (*first, *last) = (at.min(*first), at.max(*last)),
                    None => drop(news.spans.insert(nodes.value(number).to_owned(), (at, at))),
                }
            }
            Ok(())
        })?;
        Ok(named.then_some(news))
    }
}

/// Paths of the files that may hold readings of a node with news and whose span is `near` its.
fn touched<'a>(
    bounds: &'a HashMap<String, Bounds>,
    news: &'a BTreeMap<String, Span>,
    near: impl Fn(Span, Span) -> bool + 'a,
) -> impl Iterator<Item = &'a str> {
    let within = move |file: &Bounds| {
        let stored = file.instants.unwrap_or((i64::MIN, i64::MAX));
        match &file.nodes {
            Some((first, last)) => {
                let between = (Bound::Included(first.as_str()), Bound::Included(last.as_str()));
                news.range::<str, _>(between).any(|(_, new)| near(stored, *new))
            }
            None => news.values().any(|new| near(stored, *new)),
        }
    };
    bounds.iter().filter(move |(_, file)| within(file)).map(|(path, _)| path.as_str())
}
