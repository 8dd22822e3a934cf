//! Readings that a hung driver publishes again and again: staleness, not data.
//!
//! Equal readings in a row are stale where a live GPU could not have made them in that time, for one
//! of these signs; the first of the run is kept, the others are not observed time.
//!
//! - Its energy counter stands still although it draws power.
//! - A figure with many digits stays the same to the last of them: power with decimals, or a share
//!   of engine activity finer than a percent.
//! - It is partly busy, at the same load, power and temperature for twice as long.
//!
//! A GPU that idles at whole watts, one that is full at its power limit, and a source that tells
//! little besides power are left alone. A reading that is published again with its own old time is
//! one reading, and what follows it a gap.

use std::collections::HashMap;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Float64Type, TimestampMillisecondType};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use super::hung::Told;
use super::waiting::{SERIES, numbers};

/// Equal readings in a row that make a run of them stale; the first of the run is kept.
pub const STALE_READINGS: usize = 10;

/// Equal readings in a row of a partly busy GPU, where nothing finer tells.
const LOAD_READINGS: usize = 2 * STALE_READINGS;

/// How long a run of equal readings must last, in seconds: a collector that is asked more often than
/// it reads answers the same until it reads again, every minute at the longest.
const LASTED_S_MIN: f64 = 120.0;

/// Energy that a live GPU would have counted, in joules, before a standing counter means anything.
const ENERGY_J_MIN: f64 = 100.0;

/// Utilisation of a partly busy GPU: less may be what an idle one reports, and a full one is
/// steady.
const PARTLY_BUSY: Range<f64> = 0.1..0.99;

/// Measurements, besides power, that must be known before equality means anything.
const WITNESSES: usize = 2;

/// Columns that describe and do not measure.
const CONSTANT: [&str; 5] = ["sampled_at", "gpu_model", "job_id", "mem_total_bytes", "period_s"];

/// Shares that are measured finer than a percent.
const FINE: [&str; 4] =
    ["sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio", "dram_active_ratio"];

/// The columns of a [`Pulse`].
pub(super) const PULSE: [&str; 8] =
    ["power_w", "energy_j", "gpu_util_ratio", "temp_c", FINE[0], FINE[1], FINE[2], FINE[3]];

/// What shows that equal readings are stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// The energy counter stands still under power.
    Counter,
    /// A figure stays the same to the last of many digits.
    Digits,
    /// The same part of the GPU is busy, at the same power and temperature.
    Load,
}

impl Sign {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Counter => "the energy counter stands still under power",
            Self::Digits => "every figure is the same to its last digit",
            Self::Load => "the same load, power and temperature for long",
        }
    }
}

/// A run of equal readings, the first of which is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) rows: Range<usize>,
    /// What shows it; `None` of one that an event tells and that is too short to show by itself.
    pub(super) sign: Option<Sign>,
    /// Whether an event of the store tells it.
    pub(super) told: bool,
}

/// What a hung driver repeats at least: the bits of the figures that tell it from a live GPU.
pub(super) type Pulse = [Option<u64>; 8];

/// Readings of a run that were kept aside.
#[derive(Debug)]
pub(super) struct Hung {
    pub(super) series: u32,
    pub(super) from_ms: i64,
    pub(super) sign: Sign,
}

impl Run {
    /// What is told of the run, whose rows but for the first are kept aside; nothing where it was
    /// told before.
    pub(super) fn hung(&self, rows: &RecordBatch) -> Option<Hung> {
        let sign = self.sign.filter(|_| !self.told)?;
        let instants = rows["sampled_at"].as_primitive::<TimestampMillisecondType>();
        let first = self.rows.start + 1;
        Some(Hung { series: numbers(rows).value(first), from_ms: instants.value(first), sign })
    }
}

/// Pulses of some rows that a hung driver can have made, by series; `of` tells which, by place and
/// series.
pub(super) fn pulses(rows: &RecordBatch, of: impl Fn(usize, u32) -> bool) -> HashMap<u32, Pulse> {
    let columns = Columns::of(rows);
    let numbers = numbers(rows);
    let mine = numbers.values().iter().enumerate().filter(|(row, number)| of(*row, **number));
    let mine = mine.filter(|(row, _)| columns.may_be_stale(*row));
    mine.map(|(row, number)| (*number, columns.pulse(row))).collect()
}

/// Runs of stale readings of rows sorted by series and instant.
pub(super) fn runs(
    series: &[u32],
    rows: &RecordBatch,
    told: &Told,
) -> Result<Vec<Run>, ArrowError> {
    let columns = Columns::of(rows);
    let mut found = Vec::new();
    let mut start = 0;
    for row in 1..=rows.num_rows() {
        if row < rows.num_rows() && series[row] == series[row - 1] && columns.beats_as(row - 1, row)
        {
            continue;
        }
        let told = told.get(&series[start]);
        let told = |rows: &Range<usize>| {
            let (first, last) = (columns.instants[rows.start], columns.instants[rows.end - 1]);
            told.is_some_and(|told| {
                told.range(first.saturating_add(1)..).next().is_some_and(|at| *at <= last)
            })
        };
        let rows_min = if told(&(start..row)) { 2 } else { STALE_READINGS };
        if row - start >= rows_min && columns.may_be_stale(start) {
            for equal in equal(rows, start..row, rows_min)? {
                let (sign, told) = (columns.sign(&equal.rows, equal.known), told(&equal.rows));
                if sign.is_some() || told {
                    found.push(Run { rows: equal.rows, sign, told });
                }
            }
        }
        start = row;
    }
    Ok(found)
}

/// The columns that can tell a live GPU from a hung driver.
struct Columns<'r> {
    instants: &'r [i64],
    power: Option<&'r Float64Array>,
    energy: Option<&'r Float64Array>,
    util: Option<&'r Float64Array>,
    temp: Option<&'r Float64Array>,
    fine: [Option<&'r Float64Array>; 4],
}

impl<'r> Columns<'r> {
    fn of(rows: &'r RecordBatch) -> Self {
        let column = |name: &str| rows.column_by_name(name)?.as_primitive_opt::<Float64Type>();
        let instants = rows.column_by_name("sampled_at");
        let instants = instants.and_then(|at| at.as_primitive_opt::<TimestampMillisecondType>());
        Self {
            instants: instants.map_or(&[], |at| at.values()),
            power: column("power_w"),
            energy: column("energy_j"),
            util: column("gpu_util_ratio"),
            temp: column("temp_c"),
            fine: FINE.map(column),
        }
    }

    /// Whether two rows have the same pulse: power, or without it the first fine share.
    fn beats_as(&self, one: usize, other: usize) -> bool {
        let bits = |row| {
            let power = value(self.power, row).map(|power| (0, power.to_bits()));
            let mut fine = self.fine.iter().enumerate();
            let fine = || fine.find_map(|(n, c)| Some((n + 1, value(*c, row)?.to_bits())));
            power.or_else(fine)
        };
        bits(one).is_some_and(|pulse| bits(other) == Some(pulse))
    }

    fn pulse(&self, row: usize) -> Pulse {
        let [sm, occupancy, tensor, dram] = self.fine;
        let figures = [self.power, self.energy, self.util, self.temp, sm, occupancy, tensor, dram];
        figures.map(|column| value(column, row).map(f64::to_bits))
    }

    /// Whether a run from `row` on can have a sign at all.
    fn may_be_stale(&self, row: usize) -> bool {
        self.digits(row) || self.counter(row).is_some() || self.partly_busy(row)
    }

    /// The power under which the energy counter should move.
    fn counter(&self, row: usize) -> Option<f64> {
        value(self.energy, row).filter(|energy| *energy > 0.0)?;
        value(self.power, row).filter(|power| *power > 0.0)
    }

    fn digits(&self, row: usize) -> bool {
        let fine = |share: f64| share > 0.0 && share < 1.0 && !whole(share * 100.0);
        value(self.power, row).is_some_and(|power| power.fract() != 0.0)
            || self.fine.iter().any(|column| value(*column, row).is_some_and(fine))
    }

    fn partly_busy(&self, row: usize) -> bool {
        value(self.util, row).is_some_and(|util| PARTLY_BUSY.contains(&util))
            && value(self.power, row).is_some_and(|power| power > 0.0)
            && value(self.temp, row).is_some()
    }

    /// What shows that equal rows are stale; `known` of their measurements are told.
    fn sign(&self, rows: &Range<usize>, known: usize) -> Option<Sign> {
        let lasted_s = (self.instants[rows.end - 1] - self.instants[rows.start]) as f64 / 1e3;
        if lasted_s < LASTED_S_MIN {
            return None;
        }
        let counted = |power: f64| power * lasted_s >= ENERGY_J_MIN;
        if rows.len() >= STALE_READINGS && self.counter(rows.start).is_some_and(counted) {
            return Some(Sign::Counter);
        }
        if known <= WITNESSES {
            return None;
        }
        if rows.len() >= STALE_READINGS && self.digits(rows.start) {
            return Some(Sign::Digits);
        }
        (rows.len() >= LOAD_READINGS && self.partly_busy(rows.start)).then_some(Sign::Load)
    }
}

fn value(column: Option<&Float64Array>, row: usize) -> Option<f64> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

/// Whether a figure is whole but for what binary fractions lose.
fn whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6
}

/// Rows in which every measurement is the same, and how many of them are told.
struct Equal {
    rows: Range<usize>,
    known: usize,
}

/// Long enough runs within `range` in which every measurement stays the same.
fn equal(
    rows: &RecordBatch,
    range: Range<usize>,
    rows_min: usize,
) -> Result<Vec<Equal>, ArrowError> {
    let measured: Vec<ArrayRef> = rows
        .schema()
        .fields()
        .iter()
        .zip(rows.columns())
        .filter(|(field, _)| !CONSTANT.contains(&field.name().as_str()))
        .filter(|(field, _)| field.data_type().is_numeric() && field.name() != SERIES)
        .map(|(_, column)| column.slice(range.start, range.len()))
        .collect();
    let field = |kind: &DataType| SortField::new_with_options(kind.clone(), SortOptions::default());
    let fields = measured.iter().map(|column| field(column.data_type())).collect();
    let keys = RowConverter::new(fields)?.convert_columns(&measured)?;
    let mut found = Vec::new();
    let mut start = 0;
    for row in 1..=range.len() {
        if row < range.len() && keys.row(row) == keys.row(row - 1) {
            continue;
        }
        if row - start >= rows_min {
            let known = measured.iter().filter(|column| column.is_valid(start)).count();
            found.push(Equal { rows: range.start + start..range.start + row, known });
        }
        start = row;
    }
    Ok(found)
}
