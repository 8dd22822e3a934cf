//! Settings that give the numbers their meaning: local time, money, energy, capacity.
//!
//! Plain data, read from sections of `loadline.toml`; SQL sees them as `config_*` tables.

use chrono::NaiveDate;
use serde::Deserialize;

use crate::calendar::Calendar;

/// Settings of a session.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// Zone, working hours, holidays.
    pub calendar: Calendar,
    /// What a GPU-hour costs.
    pub money: MoneyConfig,
    /// What a GPU-hour draws.
    pub energy: EnergyConfig,
    /// GPUs installed by pool, where the data do not tell or are wrong.
    pub capacity: Vec<CapacityConfig>,
}

impl EngineConfig {
    /// Holds every amount against the range in which it means something.
    ///
    /// # Errors
    /// Text that names the setting, its value and its range.
    pub fn check(&self) -> Result<(), String> {
        let (money, energy) = (&self.money, &self.energy);
        let prices = money.gpus.iter().flat_map(|gpu| {
            [
                ("price_per_hour", gpu.price_per_hour, 0.0),
                ("purchase_price", gpu.purchase_price, 0.0),
                ("depreciation_months", gpu.depreciation_months, 1.0),
            ]
        });
        let boards =
            energy.boards.iter().map(|board| ("board_power_w", Some(board.board_power_w), 1.0));
        let pools = self.capacity.iter().map(|pool| ("gpus of [[capacity]]", Some(pool.gpus), 0.0));
        let single = [
            ("power_price_per_kwh", money.power_price_per_kwh, 0.0),
            ("rack_cost_per_gpu_month", money.rack_cost_per_gpu_month, 0.0),
            ("pue", Some(energy.pue), 1.0),
            ("grid_kg_co2e_per_kwh", energy.grid_kg_co2e_per_kwh, 0.0),
        ];
        for (name, value, least) in prices.chain(boards).chain(pools).chain(single) {
            if let Some(value) = value
                && !(value.is_finite() && value >= least)
            {
                return Err(format!("{name} = {value}: must be a number of at least {least}"));
            }
        }
        Ok(())
    }
}

/// Costs. A cost that is not stated is unknown, not zero.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MoneyConfig {
    /// Currency of every amount, as printed.
    pub currency: String,
    /// Prices by GPU model; the first that matches counts.
    pub gpus: Vec<PriceConfig>,
    /// Price of electricity in currency per kWh.
    pub power_price_per_kwh: Option<f64>,
    /// Rack space, network and staff in currency per GPU and month.
    pub rack_cost_per_gpu_month: Option<f64>,
}

impl Default for MoneyConfig {
    fn default() -> Self {
        Self {
            currency: "USD".into(),
            gpus: Vec::new(),
            power_price_per_kwh: None,
            rack_cost_per_gpu_month: None,
        }
    }
}

/// What a GPU of a model costs: rented by the hour, or bought and written off.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceConfig {
    /// GPU model with `*` for any text, case aside: `*A100*`.
    pub model: String,
    /// Currency per GPU-hour.
    pub price_per_hour: Option<f64>,
    /// Currency per GPU.
    pub purchase_price: Option<f64>,
    /// Months over which the purchase is written off.
    pub depreciation_months: Option<f64>,
}

/// Power and carbon.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergyConfig {
    /// Power usage effectiveness: energy of the site over energy of the equipment, at least 1.
    pub pue: f64,
    /// Carbon of the grid in kg of CO2 equivalent per kWh.
    pub grid_kg_co2e_per_kwh: Option<f64>,
    /// Board power by GPU model where it is not measured; before the built-in table.
    pub boards: Vec<BoardConfig>,
}

impl Default for EnergyConfig {
    fn default() -> Self {
        Self { pue: 1.0, grid_kg_co2e_per_kwh: None, boards: Vec::new() }
    }
}

/// Power limit of a board.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardConfig {
    /// GPU model with `*` for any text, case aside.
    pub model: String,
    /// Power of the board at full load in W.
    pub board_power_w: f64,
}

/// GPUs of a pool from a day on, until the next entry of that pool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityConfig {
    /// Cluster; every cluster without it.
    pub cluster: Option<String>,
    /// Pool, which is the partition.
    #[serde(default = "default_pool")]
    pub pool: String,
    /// GPUs installed.
    pub gpus: f64,
    /// First local day; from the beginning without it.
    pub from: Option<NaiveDate>,
}

fn default_pool() -> String {
    "default".into()
}

/// Board power in W of common models, from the vendor's data sheets; first match counts.
pub(crate) const BOARDS: &[(&str, f64)] = &[
    ("*B300*", 1400.0),
    ("*B200*", 1000.0),
    ("*H200*NVL*", 600.0),
    ("*H200*", 700.0),
    ("*H100*PCIe*", 350.0),
    ("*H100*NVL*", 400.0),
    ("*H100*", 700.0),
    ("*H800*", 700.0),
    ("*A100*PCIe*80*", 300.0),
    ("*A100*PCIe*", 250.0),
    ("*A100*", 400.0),
    ("*A800*", 400.0),
    ("*L40S*", 350.0),
    ("*L40*", 300.0),
    ("*L4*", 72.0),
    ("*A40*", 300.0),
    ("*A30*", 165.0),
    ("*A10*", 150.0),
    ("*V100*PCIe*", 250.0),
    ("*V100*", 300.0),
    ("*P100*", 300.0),
    ("*P40*", 250.0),
    ("*K80*", 300.0),
    ("*T4*", 70.0),
];

/// Whether `text` fits `pattern`, where `*` stands for any text; case aside.
#[must_use]
pub fn model_matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(found) => rest = &rest[found + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_below_their_range_are_refused_by_name() {
        let config = |pue: f64, gpus: f64| EngineConfig {
            energy: EnergyConfig { pue, ..EnergyConfig::default() },
            capacity: vec![CapacityConfig { cluster: None, pool: "a".into(), gpus, from: None }],
            ..EngineConfig::default()
        };
        assert_eq!(config(1.3, 0.0).check(), Ok(()));
        assert!(config(-1.0, 8.0).check().is_err_and(|reason| reason.contains("pue = -1")));
        assert!(config(1.0, f64::NAN).check().is_err_and(|reason| reason.contains("gpus")));
    }

    #[test]
    fn a_star_stands_for_any_text() {
        // Breaks if a model that merely contains the pattern's pieces out of order fits.
        for (pattern, text, fits) in [
            ("*A100*", "NVIDIA A100-SXM4-80GB", true),
            ("*a100*pcie*", "NVIDIA A100-PCIE-40GB", true),
            ("*pcie*a100*", "NVIDIA A100-PCIE-40GB", false),
            ("H100", "NVIDIA H100", false),
            ("NVIDIA H100", "nvidia h100", true),
            ("*", "", true),
            ("*80GB", "A100-80GB-80GB", true),
        ] {
            assert_eq!(model_matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
