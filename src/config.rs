//! `loadline.toml`: calendar, costs, energy, capacity, and which jobs are which workload.

use std::collections::BTreeMap;
use std::path::Path;

use loadline_engine::EngineConfig;
use loadline_engine::calendar::Calendar;
use loadline_engine::config::{CapacityConfig, EnergyConfig, MoneyConfig};
use loadline_ingest::source::sacct::{TresIds, default_tres_ids};
use loadline_ingest::workload::{WorkloadRule, WorkloadRules};
use serde::Deserialize;

use crate::failure::Failure;

mod collect;
mod retention;

pub use collect::CollectConfig;
pub use retention::RetentionConfig;

/// File that is read where it exists.
pub const FILE: &str = "loadline.toml";

/// A commented configuration to begin with.
pub const TEMPLATE: &str = r#"# How the numbers of this fleet are to be read.

[calendar]
# Zone of all local hours, days, weeks and months.
timezone = "UTC"
# Working hours; several ranges a day and several lines are allowed.
working = ["mon-fri 09:00-18:00"]
# Days that are not worked, and days that are although the pattern says otherwise.
holidays = [
  # { date = "2026-10-01", until = "2026-10-07", name = "National Day" },
]
makeup_days = [
  # { date = "2026-10-10", like = "wed" },
]

# What a GPU costs: by the hour, or bought and written off. The first model that matches counts.
# [money]
# currency = "USD"
# power_price_per_kwh = 0.12
# rack_cost_per_gpu_month = 40.0
# gpus = [
#   { model = "*H100*", price_per_hour = 2.5 },
#   { model = "*A100*", purchase_price = 12000.0, depreciation_months = 48.0 },
# ]

# [energy]
# pue = 1.3
# grid_kg_co2e_per_kwh = 0.4

# GPUs of a pool, where the data do not tell.
# [[capacity]]
# pool = "batch"
# gpus = 512.0
# from = "2026-01-01"

# What Slurm's ledger leaves open: how many shards make a GPU, and what numeric resources are.
# [slurm]
# shards_per_gpu = 4.0
# tres_ids = { 1003 = "gres/gpu:h100" }

# Workload types; the first rule whose patterns all match wins, the rest is `unlabelled`. A pattern
# is a glob over the whole value, or a regular expression between slashes; it is held against
# partition, name, user, team, project, or label.KEY.
# [[workload]]
# match = { name = "train-*", partition = "/^(a100|h100)/" }
# workload = "train"

# How long tables are kept, in whole days. Nothing goes by itself: `loadline retain` tells what would,
# `loadline retain --apply` takes it out, and so does a collector where it is told to. Readings stay
# until gpu_5m and gpu_1h tell of them. These are the usual times; the other tables that are kept by
# day (gpu_1h, node_samples, gpu_counts, events) are kept for ever.
# [retention]
# samples = "90d"
# gpu_5m = "730d"
# gpu_1h = "forever"
# collector = false

# What `loadline collect` reads on this node, and how often.
# [collect]
# interval_s = 30.0
# nvml = true                                       # GPUs, through the driver
# node = true                                       # processors, memory, disks, network
# scrape = { targets = ["gpu-017:9400"] }           # dcgm-exporter, or any page with [[collect.scrape.map]]
# slurm = { interval_s = 60.0 }                     # sacct and squeue
# folder = [{ path = "/var/spool/jobs", format = "sacct" }]
# door = { listen = "127.0.0.1:9464" }              # GET /metrics: how collecting goes
# remote_write = {}                                 # POST /api/v1/write: what a Prometheus sends
# ship = { to = "grpc://127.0.0.1:7047" }           # to a `loadline serve`, not into a store here
"#;

/// What the file says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Zone, working hours, holidays.
    #[serde(default)]
    pub calendar: Calendar,
    /// What a GPU-hour costs.
    #[serde(default)]
    pub money: MoneyConfig,
    /// What a GPU-hour draws.
    #[serde(default)]
    pub energy: EnergyConfig,
    /// GPUs installed by pool, where the data do not tell.
    #[serde(default)]
    pub capacity: Vec<CapacityConfig>,
    /// What Slurm's ledger leaves open.
    #[serde(default)]
    pub slurm: SlurmConfig,
    /// What is collected, and how.
    #[serde(default)]
    pub collect: CollectConfig,
    /// How long tables are kept.
    #[serde(default)]
    pub retention: RetentionConfig,
    #[serde(default)]
    workload: Vec<WorkloadRule>,
}

/// What Slurm's ledger leaves open.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlurmConfig {
    /// Shards (`gres/shard`) that a GPU is cut into.
    pub shards_per_gpu: Option<f64>,
    /// What numeric resources are, beside the usual 1001 and 1002.
    #[serde(default)]
    pub tres_ids: BTreeMap<String, String>,
}

impl SlurmConfig {
    /// Resources by their number, the usual ones among them.
    ///
    /// # Errors
    /// An id that is no number, or a name that is no `gres/...`.
    pub fn ids(&self) -> Result<TresIds, String> {
        let mut ids = default_tres_ids();
        for (id, name) in &self.tres_ids {
            let (id, name) = tres_id(&format!("{id}={name}"))?;
            ids.insert(id, name);
        }
        Ok(ids)
    }

    fn check(&self) -> Result<(), String> {
        if let Some(shards) = self.shards_per_gpu.filter(|shards| !(1.0..=1e6).contains(shards)) {
            return Err(format!(
                "`slurm.shards_per_gpu` is {shards}; it must be from 1 to 1000000"
            ));
        }
        self.ids().map(drop)
    }
}

/// `1003=gres/gpu:h100` as a number and a name.
///
/// # Errors
/// What the text should be.
pub fn tres_id(text: &str) -> Result<(u32, String), String> {
    let told = text.split_once('=').and_then(|(id, name)| Some((id.trim().parse().ok()?, name)));
    match told {
        Some((id, name)) if name.starts_with("gres/") => Ok((id, name.to_owned())),
        _ => Err(format!("`{text}` must be a number and a resource, such as `1003=gres/gpu:h100`")),
    }
}

impl Config {
    /// Reads `path`, or [`FILE`] where it exists.
    ///
    /// # Errors
    /// A file that was named and is not there, or one that does not read.
    pub fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let named = path.unwrap_or(Path::new(FILE));
        if path.is_none() && !named.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(named).map_err(|error| {
            Failure::new(format!("could not read `{}`: {error}", named.display()))
        })?;
        let config: Self = toml::from_str(&text).map_err(|error| {
            Failure::new(format!("cannot read `{}` as TOML of loadline", named.display()))
                .detail(error.to_string().trim_end())
                .hint("`loadline init` writes a commented one")
        })?;
        let unusable = |reason: &str| {
            Failure::new(format!("a value in `{}` cannot be used: {reason}", named.display()))
                .hint("`loadline init` writes a file with every key and what it may be")
        };
        config.engine().check().map_err(|reason| unusable(&reason))?;
        config.slurm.check().map_err(|reason| unusable(&reason))?;
        config.retention.settings().map_err(|reason| unusable(&reason))?;
        config.collect.check().map_err(|reason| unusable(&reason))?;
        Ok(config)
    }

    /// The part that the engine needs.
    #[must_use]
    pub fn engine(&self) -> EngineConfig {
        EngineConfig {
            calendar: self.calendar.clone(),
            money: self.money.clone(),
            energy: self.energy.clone(),
            capacity: self.capacity.clone(),
        }
    }

    /// Workload rules.
    ///
    /// # Errors
    /// A rule without a pattern, of an unknown fact, or with a pattern that cannot be parsed.
    pub fn workloads(&self) -> Result<WorkloadRules, Failure> {
        Ok(WorkloadRules::new(&self.workload)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_reads_and_a_slip_is_refused() {
        let config: Config = toml::from_str(TEMPLATE).unwrap();
        assert!(config.workloads().is_ok());
        assert!(toml::from_str::<Config>("[calender]\n").is_err());
        let lines = TEMPLATE.lines().map(|line| {
            let code = line.strip_prefix("# ").filter(|code| code.contains(['[', ']', '=']));
            code.unwrap_or(line)
        });
        let uncommented: String = lines.map(|line| format!("{line}\n")).collect();
        let config: Config = toml::from_str(&uncommented).unwrap();
        assert_eq!((config.capacity.len(), config.money.gpus.len()), (1, 2));
        assert_eq!(config.energy.pue, 1.3);
        assert_eq!(config.slurm.ids().unwrap()[&1003], "gres/gpu:h100");
        assert_eq!(config.slurm.shards_per_gpu, Some(4.0));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loadline.toml");
        // Breaks when a value that breaks a rule is told as a file that cannot be read.
        for (text, wanted) in [
            (
                "[collect]\ninterval_s = 0.05\n",
                "cannot be used: `collect.interval_s` is 0.05; it must be from 0.1 to 3600 seconds",
            ),
            (
                "[collect]\nship = { to = \"store:7047\" }\n",
                "cannot be used: `collect.ship.to` is `store:7047`; give `grpc://HOST:PORT`",
            ),
            (
                "[collect]\nship = { to = \"grpc://a:1\", every_s = 0.05 }\n",
                "cannot be used: `collect.ship.every_s` is `0.05`; it must be from 0.1 to 3600",
            ),
            ("[collect]\ninterval_s = 0.1\n", ""),
        ] {
            std::fs::write(&path, text).unwrap();
            match Config::read(Some(&path)) {
                Ok(_) => assert_eq!(wanted, "", "{text}"),
                Err(failure) => {
                    let told = failure.to_string();
                    assert!(told.contains(wanted) && !wanted.is_empty(), "{told}");
                    assert!(told.contains("loadline.toml"), "{told}");
                }
            }
        }
        for slip in ["shards_per_gpu = 0.5", "tres_ids = { gpu = \"gres/gpu\" }"] {
            let config: Config = toml::from_str(&format!("[slurm]\n{slip}\n")).unwrap();
            assert!(config.slurm.check().is_err(), "{slip}");
        }
    }
}
