//! One day of readings, or a part of its series, read column by column and rolled up.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch,
    TimestampMillisecondArray, UInt32Array,
};
use arrow::compute::{cast, filter_record_batch, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMillisecondType};
use arrow::error::ArrowError;
use chrono::{NaiveDate, NaiveTime};
use parquet::arrow::arrow_reader::RowSelection;

use super::cut::{BIN_MS, DAY_MS, Piece, Readings, cut, groups};
use super::fold;
use super::round::rounded;
use super::sources::Sources;
use crate::error::IngestError;
use crate::import::Series;
use crate::merge::conform;
use crate::schema::rollup::{
    BIN, BITS, COVERED_S, ENERGY_J, ENERGY_KNOWN_S, EXTREMES, MEASURES, READINGS, REPORTED,
    SUFFIXES, WITHIN,
};
use crate::schema::{Table, instant};
use crate::store::{FileEntry, OpenFile, Store, TableSnapshot, part_of};

/// What the rows of one series are told apart by.
const LABELS: [&str; 2] = ["gpu_model", "job_id"];

/// Rollups of a day, or of a part of its series.
#[derive(Debug)]
pub(super) struct Rolled {
    /// Rows of `gpu_5m`.
    pub(super) five_minutes: RecordBatch,
    /// Rows of `gpu_1h`.
    pub(super) hours: RecordBatch,
}

/// Readings that are taken, and the files from which their values are read.
struct Taken<'a> {
    series: Series,
    labels: Series,
    readings: Readings,
    files: Vec<(OpenFile<'a>, RowSelection)>,
}

/// Rolls up the `part`th of `parts` of the series of a day.
pub(super) async fn roll(
    store: &Store,
    samples: &TableSnapshot,
    sources: &Sources<'_>,
    day: NaiveDate,
    part: (usize, usize),
) -> Result<Rolled, IngestError> {
    let midnight_ms = day.and_time(NaiveTime::MIN).and_utc().timestamp_millis();
    let mut taken = Taken {
        series: Series::new(Table::Samples)?,
        labels: Series::over(Table::Samples, LABELS.into_iter())?,
        readings: Readings::default(),
        files: Vec::new(),
    };
    let tells = |sampled: i64, started: i64| {
        let of_day = sampled >= midnight_ms && sampled < midnight_ms + DAY_MS;
        of_day || sampled >= midnight_ms && started < midnight_ms + DAY_MS
    };
    for file in sources.files(day) {
        taken.take(store, samples, file, part, &tells).await?;
    }
    // A counter is followed from the last reading of the day before.
    let earliest = taken.readings.started_ms.iter().copied().min().unwrap_or(midnight_ms);
    if earliest < midnight_ms {
        let tail = |sampled: i64, _| sampled >= earliest && sampled < midnight_ms;
        for file in sources.before(day) {
            taken.take(store, samples, file, part, &tail).await?;
        }
    }
    taken.fold(midnight_ms).await
}

impl<'a> Taken<'a> {
    /// Takes those readings of a file that `tells` picks by instant and start, in milliseconds.
    async fn take(
        &mut self,
        store: &'a Store,
        samples: &'a TableSnapshot,
        file: &'a FileEntry,
        part: (usize, usize),
        tells: &(dyn Fn(i64, i64) -> bool + Sync),
    ) -> Result<(), IngestError> {
        if part_of(&file.path).is_some_and(|told| told.1 == part.1 && told.0 != part.0) {
            return Ok(());
        }
        let open = store.open_file(samples, file).await?;
        let mut masks = Vec::new();
        open.each(Some(&["sampled_at", "period_s"]), None, |batch| {
            let (sampled, started) = instants(&batch)?;
            let mask = sampled.iter().zip(&started).map(|(at, from)| Some(tells(*at, *from)));
            masks.push(mask.collect::<BooleanArray>());
            Ok(())
        })
        .await?;
        if masks.iter().all(|mask| mask.true_count() == 0) {
            return Ok(());
        }
        let rows = RowSelection::from_filters(&masks);
        let mut columns = Table::Samples.key().to_vec();
        columns.extend(LABELS);
        columns.push("period_s");
        let mut mine = Vec::new();
        open.each(Some(&columns), Some(&rows), |batch| {
            let series = self.series.number(&batch)?;
            let within = |number: &u32| part.1 == 1 || self.series.within(*number, part);
            let mask: BooleanArray = series.values().iter().map(|n| Some(within(n))).collect();
            let batch = filter_record_batch(&batch, &mask)?;
            mine.push(mask);
            self.readings.series.extend(self.series.number(&batch)?.values());
            self.readings.label.extend(self.labels.number(&batch)?.values());
            let (sampled, started) = instants(&batch)?;
            self.readings.sampled_ms.extend(sampled);
            self.readings.started_ms.extend(started);
            Ok(())
        })
        .await?;
        let rows = rows.and_then(&RowSelection::from_filters(&mine));
        self.files.push((open, rows));
        Ok(())
    }

    async fn fold(mut self, midnight_ms: i64) -> Result<Rolled, IngestError> {
        let (series, labels) = (Ranked::of(&self.series)?, Ranked::of(&self.labels)?);
        series.rank(&mut self.readings.series);
        labels.rank(&mut self.readings.label);
        let order = self.readings.order();
        let pieces = cut(&self.readings, &order, midnight_ms);
        let groups = groups(&pieces);
        let firsts: Vec<Piece> = groups.iter().map(|group| pieces[group.start]).collect();
        let starts = firsts.iter().map(|piece| midnight_ms + i64::from(piece.bin) * BIN_MS);
        let starts = TimestampMillisecondArray::from_iter_values(starts).with_timezone("UTC");
        let mut columns: Vec<(String, ArrayRef)> = vec![(BIN.to_owned(), Arc::new(starts))];
        columns.extend(series.columns(firsts.iter().map(|piece| piece.series))?);
        columns.extend(labels.columns(firsts.iter().map(|piece| piece.label))?);
        let counted = groups
            .iter()
            .map(|group| pieces[group.clone()].iter().filter(|piece| piece.counted).count() as i64);
        columns.push((READINGS.to_owned(), Arc::new(Int64Array::from_iter_values(counted))));
        let covered =
            groups.iter().map(|group| pieces[group.clone()].iter().map(Piece::seconds).sum());
        let covered = Float64Array::from_iter_values(covered);
        columns.push((COVERED_S.to_owned(), Arc::new(covered)));
        let mut power_w = Vec::new();
        let mut reported: Vec<f64> = Vec::new();
        for measure in MEASURES.into_iter().filter(|measure| *measure != REPORTED) {
            let values = self.numbers(measure).await?;
            let mut told = fold::measure(&pieces, &groups, &values);
            if let Some((_, low, high)) = WITHIN.into_iter().find(|within| within.0 == measure) {
                let low = self.numbers_or(low, &values).await?;
                let high = self.numbers_or(high, &values).await?;
                let [_, _, least, _, _] = fold::measure(&pieces, &groups, &low);
                let [_, _, _, most, _] = fold::measure(&pieces, &groups, &high);
                (told[2], told[3]) = (least, most);
            }
            columns.extend(named(measure, told));
            match measure {
                "gpu_util_ratio" => reported = values,
                "sm_active_ratio" => {
                    let both = reported.iter().zip(&values);
                    reported = both.map(|(a, b)| if a.is_nan() { *b } else { *a }).collect();
                }
                "power_w" => power_w = values,
                _ => {}
            }
        }
        columns.extend(named(REPORTED, fold::measure(&pieces, &groups, &reported)));
        let energy_j = self.numbers("energy_j").await?;
        let watts = fold::watts(&self.readings, &order, &energy_j, &power_w);
        let [energy, _, _, _, known] = fold::measure(&pieces, &groups, &watts);
        columns.extend([(ENERGY_J.to_owned(), energy), (ENERGY_KNOWN_S.to_owned(), known)]);
        for measure in EXTREMES {
            let told = fold::measure(&pieces, &groups, &self.numbers(measure).await?);
            let ends = named(measure, told);
            columns.extend(ends.filter(|(n, _)| n.ends_with("_min") || n.ends_with("_max")));
        }
        let bits = fold::bits(&pieces, &groups, &self.wholes(BITS).await?);
        columns.push((BITS.to_owned(), bits));
        let rows = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )?;
        let five_minutes = conform(Table::Gpu5m, &rows)?;
        let keys: Vec<(u32, u32)> =
            firsts.iter().map(|piece| (piece.series, piece.label)).collect();
        let hours = rounded(&fold::hours(&five_minutes, &keys)?)?;
        Ok(Rolled { five_minutes: rounded(&five_minutes)?, hours })
    }

    /// The values of a column by row, NaN where unknown.
    async fn numbers(&self, column: &str) -> Result<Vec<f64>, IngestError> {
        let mut values = Vec::with_capacity(self.readings.series.len());
        self.each(column, &DataType::Float64, |array| {
            let array = array.as_primitive::<Float64Type>();
            values.extend(array.iter().map(|value| value.unwrap_or(f64::NAN)));
        })
        .await?;
        Ok(values)
    }

    /// The same, `instead` where unknown.
    async fn numbers_or(&self, column: &str, instead: &[f64]) -> Result<Vec<f64>, IngestError> {
        let mut values = self.numbers(column).await?;
        let unknown = values.iter_mut().zip(instead).filter(|(value, _)| value.is_nan());
        unknown.for_each(|(value, instead)| *value = *instead);
        Ok(values)
    }

    /// The values of a column of whole numbers by row.
    async fn wholes(&self, column: &str) -> Result<Vec<Option<i64>>, IngestError> {
        let mut values = Vec::with_capacity(self.readings.series.len());
        self.each(column, &DataType::Int64, |array| {
            values.extend(array.as_primitive::<Int64Type>().iter());
        })
        .await?;
        Ok(values)
    }

    /// Hands out a column, file after file; of a file without it, NULLs.
    async fn each(
        &self,
        column: &str,
        kind: &DataType,
        mut take: impl FnMut(&ArrayRef),
    ) -> Result<(), IngestError> {
        for (file, rows) in &self.files {
            // The instant tells how many rows there are where the column is absent.
            file.each(Some(&[column, "sampled_at"]), Some(rows), |batch| {
                let array = match batch.column_by_name(column) {
                    Some(array) => cast(array, kind)?,
                    None => arrow::array::new_null_array(kind, batch.num_rows()),
                };
                take(&array);
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

/// Key columns in sort order, and the place of each number in it.
struct Ranked {
    keys: RecordBatch,
    numbers: Vec<u32>,
    ranks: Vec<u32>,
}

impl Ranked {
    fn of(series: &Series) -> Result<Self, ArrowError> {
        let ranks = series.ranks();
        let mut numbers = vec![0; ranks.len()];
        for (number, rank) in (0..).zip(&ranks) {
            numbers[*rank as usize] = number;
        }
        Ok(Self { keys: series.keys()?, numbers, ranks })
    }

    fn rank(&self, numbers: &mut [u32]) {
        numbers.iter_mut().for_each(|number| *number = self.ranks[*number as usize]);
    }

    /// The key columns of rows that are told by rank.
    fn columns(
        &self,
        ranks: impl Iterator<Item = u32>,
    ) -> Result<Vec<(String, ArrayRef)>, ArrowError> {
        let rows: UInt32Array = ranks.map(|rank| self.numbers[rank as usize]).collect();
        let schema = self.keys.schema();
        let columns = schema.fields().iter().zip(self.keys.columns());
        columns.map(|(field, keys)| Ok((field.name().clone(), take(keys, &rows, None)?))).collect()
    }
}

fn named(measure: &str, columns: [ArrayRef; 5]) -> impl Iterator<Item = (String, ArrayRef)> {
    let names = SUFFIXES.map(|suffix| format!("{measure}{suffix}"));
    names.into_iter().zip(columns)
}

/// Instants of readings, and where the stretches begin that they stand for, in milliseconds.
fn instants(batch: &RecordBatch) -> Result<(Vec<i64>, Vec<i64>), ArrowError> {
    let column = |name: &str, kind: &DataType| match batch.column_by_name(name) {
        Some(column) => cast(column, kind),
        None => Ok(arrow::array::new_null_array(kind, batch.num_rows())),
    };
    let sampled = column("sampled_at", &instant())?;
    let sampled = sampled.as_primitive::<TimestampMillisecondType>().values().to_vec();
    let periods = column("period_s", &DataType::Float64)?;
    let periods = periods.as_primitive::<Float64Type>();
    let started = sampled
        .iter()
        .zip(periods)
        .map(|(at, period_s)| at - (period_s.unwrap_or(0.0).max(0.0) * 1e3).round() as i64);
    let started = started.collect();
    Ok((sampled, started))
}
