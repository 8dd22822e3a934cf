//! The settings as tables: `config_money`, `config_prices`, `config_energy`, `config_capacity`.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use chrono::NaiveTime;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

use crate::calendar::from_local;
use crate::config::EngineConfig;

pub(crate) fn register(
    context: &SessionContext,
    config: &EngineConfig,
) -> Result<(), DataFusionError> {
    for (name, columns) in [
        ("config_money", money(config)),
        ("config_prices", prices(config)),
        ("config_energy", energy(config)),
        ("config_capacity", capacity(config)),
    ] {
        let columns = columns.into_iter().map(|(name, values)| (name, values, true));
        context.register_batch(name, RecordBatch::try_from_iter_with_nullable(columns)?)?;
    }
    Ok(())
}

type Columns = Vec<(&'static str, ArrayRef)>;

fn numbers(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(Float64Array::from_iter(values))
}

fn texts<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(StringArray::from_iter(values))
}

fn money(config: &EngineConfig) -> Columns {
    let money = &config.money;
    vec![
        ("currency", texts([Some(money.currency.as_str())])),
        ("power_price_per_kwh", numbers([money.power_price_per_kwh])),
        ("rack_cost_per_gpu_month", numbers([money.rack_cost_per_gpu_month])),
    ]
}

fn prices(config: &EngineConfig) -> Columns {
    let prices = &config.money.gpus;
    let order = (0_i64..).take(prices.len());
    vec![
        ("tried", Arc::new(Int64Array::from_iter_values(order)) as ArrayRef),
        ("gpu_model_pattern", texts(prices.iter().map(|price| Some(price.model.as_str())))),
        ("price_per_hour", numbers(prices.iter().map(|price| price.price_per_hour))),
        ("purchase_price", numbers(prices.iter().map(|price| price.purchase_price))),
        ("depreciation_months", numbers(prices.iter().map(|price| price.depreciation_months))),
    ]
}

fn energy(config: &EngineConfig) -> Columns {
    let energy = &config.energy;
    vec![
        ("pue", numbers([Some(energy.pue)])),
        ("grid_kg_co2e_per_kwh", numbers([energy.grid_kg_co2e_per_kwh])),
    ]
}

/// One row per entry; `until_at` is the start of the pool's next entry.
fn capacity(config: &EngineConfig) -> Columns {
    let zone = config.calendar.zone();
    let mut entries: Vec<_> = config.capacity.iter().collect();
    entries.sort_by_key(|entry| (&entry.cluster, &entry.pool, entry.from));
    let starts: Vec<Option<i64>> = entries
        .iter()
        .map(|entry| entry.from.map(|date| from_local(zone, date.and_time(NaiveTime::MIN))))
        .collect();
    let ends = entries.iter().enumerate().map(|(position, entry)| {
        let next = entries.get(position + 1)?;
        let same = next.pool == entry.pool && next.cluster == entry.cluster;
        starts[position + 1].filter(|_| same)
    });
    let instants = |values: Vec<Option<i64>>| -> ArrayRef {
        Arc::new(TimestampMillisecondArray::from(values).with_timezone("UTC"))
    };
    let ends = ends.collect();
    vec![
        ("cluster", texts(entries.iter().map(|entry| entry.cluster.as_deref()))),
        ("partition", texts(entries.iter().map(|entry| Some(entry.pool.as_str())))),
        ("gpus", numbers(entries.iter().map(|entry| Some(entry.gpus)))),
        ("from_at", instants(starts)),
        ("until_at", instants(ends)),
    ]
}
