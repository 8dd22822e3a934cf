//! What a GPU of a model costs or draws, as configured: the first pattern that matches.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::Body;
use crate::config::{BOARDS, EngineConfig, model_matches};

/// Pattern and value, in the order in which they are tried.
type Known = Vec<(String, f64)>;

/// Name and body of each function of a GPU model.
pub(super) fn bodies(config: &EngineConfig) -> Vec<(&'static str, Body)> {
    let prices = &config.money.gpus;
    let known = |value: fn(&crate::config::PriceConfig) -> Option<f64>| -> Known {
        prices.iter().filter_map(|price| Some((price.model.clone(), value(price)?))).collect()
    };
    let mut boards: Known =
        config.energy.boards.iter().map(|b| (b.model.clone(), b.board_power_w)).collect();
    boards.extend(BOARDS.iter().map(|(model, power)| ((*model).to_owned(), *power)));
    vec![
        ("price_per_hour", body(known(|price| price.price_per_hour))),
        ("purchase_price", body(known(|price| price.purchase_price))),
        ("depreciation_months", body(known(|price| price.depreciation_months))),
        ("board_power_w", body(boards)),
    ]
}

fn body(known: Known) -> Body {
    Arc::new(move |args, rows| {
        let Some(models) = args.first() else {
            return datafusion::common::exec_err!("a GPU model is missing as argument 1");
        };
        let models = cast(models, &DataType::Utf8)?;
        let models = models.as_string::<i32>();
        let mut last: (&str, Option<f64>) = ("", None);
        let mut values = Vec::with_capacity(rows);
        for model in models {
            values.push(model.and_then(|model| {
                if last.0 != model {
                    let found = known.iter().find(|(pattern, _)| model_matches(pattern, model));
                    last = (model, found.map(|(_, value)| *value));
                }
                last.1
            }));
        }
        Ok(Arc::new(Float64Array::from(values)) as ArrayRef)
    })
}
