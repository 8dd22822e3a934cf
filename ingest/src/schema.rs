//! The tables of the store: columns, keys, partitions and sort order.
//!
//! Every instant is `Timestamp(ms, UTC)` and ends in `_at`; a share is 0-1 and ends in `_ratio`;
//! any other number carries its unit. A measurement that is not available is NULL, never 0.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

pub mod rollup;

/// A table of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// One reading of one GPU or MIG slice at one instant.
    Samples,
    /// One reading of one node (CPU, memory, disk, network) at one instant.
    NodeSamples,
    /// One attempt of one job.
    Jobs,
    /// A job attempt that holds one GPU, slice or share of a GPU.
    Allocations,
    /// GPUs held, waited for and installed at one instant, for sources that only tell the counts.
    GpuCounts,
    /// Inventory of GPUs; identity is the UUID.
    Gpus,
    /// Inventory of nodes.
    Nodes,
    /// Something that happened to a GPU: lost, recovered, replaced, and the like.
    Events,
    /// What the readings of a GPU told in five minutes; made from `samples`.
    Gpu5m,
    /// What the readings of a GPU told in an hour; made from `samples`.
    Gpu1h,
}

impl Table {
    /// Every table, in the order in which an import commits them. Events follow the readings in
    /// which they are found, and the inventory of GPUs comes after them: that a board has moved is
    /// told from where it was known to be. No import writes the last two.
    pub const ALL: [Self; 10] = [
        Self::Nodes,
        Self::Jobs,
        Self::Allocations,
        Self::GpuCounts,
        Self::NodeSamples,
        Self::Samples,
        Self::Events,
        Self::Gpus,
        Self::Gpu5m,
        Self::Gpu1h,
    ];

    /// The name in SQL and the folder in the store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::NodeSamples => "node_samples",
            Self::Jobs => "jobs",
            Self::Allocations => "allocations",
            Self::GpuCounts => "gpu_counts",
            Self::Gpus => "gpus",
            Self::Nodes => "nodes",
            Self::Events => "events",
            Self::Gpu5m => "gpu_5m",
            Self::Gpu1h => "gpu_1h",
        }
    }

    /// Columns of the table, without the partition column.
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; 10]> = LazyLock::new(|| Table::ALL.map(build_schema));
        let position = Self::ALL.iter().position(|table| *table == self);
        Arc::clone(&SCHEMAS[position.expect("ALL lists every table")])
    }

    /// Columns that tell one row from another: two rows with equal keys are the same reading, job
    /// attempt or device. NULL equals NULL here.
    #[must_use]
    pub const fn key(self) -> &'static [&'static str] {
        match self {
            Self::Samples => &["cluster", "node", "gpu", "gpu_uuid", "mig", "sampled_at"],
            Self::NodeSamples => &["cluster", "node", "sampled_at"],
            Self::Jobs => &["cluster", "job_id", "attempt"],
            Self::Allocations => {
                &["cluster", "job_id", "attempt", "node", "gpu_uuid", "gpu", "mig", "started_at"]
            }
            Self::GpuCounts => &["cluster", "partition", "team", "counted_at"],
            Self::Gpus => &["gpu_uuid"],
            Self::Nodes => &["cluster", "node"],
            Self::Events => {
                &["cluster", "node", "gpu", "gpu_uuid", "mig", "kind", "detail", "event_at"]
            }
            Self::Gpu5m | Self::Gpu1h => &rollup::KEY,
        }
    }

    /// The instant by whose UTC day rows are partitioned (Delta column `date`), if any. A table
    /// without one is small and is rewritten whole.
    #[must_use]
    pub const fn partitioned_by(self) -> Option<&'static str> {
        match self {
            Self::Samples | Self::NodeSamples => Some("sampled_at"),
            Self::GpuCounts => Some("counted_at"),
            Self::Events => Some("event_at"),
            Self::Gpu5m | Self::Gpu1h => Some(rollup::BIN),
            Self::Jobs | Self::Allocations | Self::Gpus | Self::Nodes => None,
        }
    }

    /// Sort order of the rows inside a file.
    #[must_use]
    pub const fn sorted_by(self) -> &'static [&'static str] {
        match self {
            Self::Samples => &["cluster", "node", "gpu", "gpu_uuid", "mig", "sampled_at"],
            Self::NodeSamples => &["cluster", "node", "sampled_at"],
            Self::Jobs => &["submitted_at", "job_id", "attempt"],
            Self::Allocations => &["started_at", "job_id", "attempt"],
            Self::GpuCounts => &["cluster", "partition", "team", "counted_at"],
            Self::Gpus => &["cluster", "node", "gpu"],
            Self::Nodes => &["cluster", "node"],
            Self::Events | Self::Gpu5m | Self::Gpu1h => self.key(),
        }
    }

    /// Whether its rows are made from those of another table, and nothing else may write them.
    #[must_use]
    pub const fn derived(self) -> bool {
        matches!(self, Self::Gpu5m | Self::Gpu1h)
    }

    /// Whether its rows are readings, each of which stands for a time (`period_s`).
    #[must_use]
    pub const fn timed(self) -> bool {
        matches!(self, Self::Samples | Self::NodeSamples | Self::GpuCounts)
    }

    /// What happens when a row arrives whose key is in the store: a reading was seen once and
    /// stays (`false`); a job, allocation or device is described anew, NULLs never overwriting
    /// what is known (`true`).
    #[must_use]
    pub const fn updates(self) -> bool {
        matches!(self, Self::Jobs | Self::Allocations | Self::Gpus | Self::Nodes)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A table that takes rows: none that is made from another.
impl FromStr for Table {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut written = Self::ALL.into_iter().filter(|table| !table.derived());
        written.clone().find(|table| table.name() == text).ok_or_else(|| {
            let names = written.by_ref().map(Self::name).collect::<Vec<_>>().join(", ");
            format!("unknown table `{text}`: must be one of {names}")
        })
    }
}

/// `Timestamp(ms, UTC)`, the type of every instant; files hold µs, the only unit of Delta.
#[must_use]
pub fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some(Arc::from("UTC")))
}

fn build_schema(table: Table) -> SchemaRef {
    use DataType::{Float64, Int16, Int32, Int64, Utf8};
    let columns: &[(&str, DataType)] = match table {
        Table::Gpu5m | Table::Gpu1h => return Arc::new(Schema::new(rollup::fields())),
        Table::Samples => &[
            ("sampled_at", instant()),
            ("cluster", Utf8),
            ("node", Utf8),
            ("gpu", Int16),
            ("gpu_uuid", Utf8),
            ("mig", Int16),
            ("gpu_model", Utf8),
            ("job_id", Utf8),
            ("gpu_util_ratio", Float64),
            ("mem_copy_util_ratio", Float64),
            ("mem_used_bytes", Int64),
            ("mem_total_bytes", Int64),
            ("power_w", Float64),
            ("energy_j", Float64),
            ("temp_c", Float64),
            ("mem_temp_c", Float64),
            ("fan_ratio", Float64),
            ("sm_clock_mhz", Float64),
            ("mem_clock_mhz", Float64),
            ("pcie_rx_bytes_per_s", Float64),
            ("pcie_tx_bytes_per_s", Float64),
            ("nvlink_rx_bytes_per_s", Float64),
            ("nvlink_tx_bytes_per_s", Float64),
            ("sm_active_ratio", Float64),
            ("sm_occupancy_ratio", Float64),
            ("tensor_active_ratio", Float64),
            ("dram_active_ratio", Float64),
            ("fp64_active_ratio", Float64),
            ("fp32_active_ratio", Float64),
            ("fp16_active_ratio", Float64),
            ("ecc_corrected_total", Int64),
            ("ecc_uncorrected_total", Int64),
            ("xid", Int32),
            ("throttle_reasons", Int64),
            ("processes", Int32),
            // The least and the most within the row's stretch, where the driver keeps what lies
            // between two readings.
            ("gpu_util_min_ratio", Float64),
            ("gpu_util_max_ratio", Float64),
            ("power_min_w", Float64),
            ("power_max_w", Float64),
            ("period_s", Float64),
        ],
        Table::NodeSamples => &[
            ("sampled_at", instant()),
            ("cluster", Utf8),
            ("node", Utf8),
            ("cpu_util_ratio", Float64),
            ("mem_used_bytes", Int64),
            ("mem_total_bytes", Int64),
            ("disk_read_bytes_per_s", Float64),
            ("disk_write_bytes_per_s", Float64),
            ("disk_read_iops", Float64),
            ("disk_write_iops", Float64),
            ("disk_used_ratio", Float64),
            ("net_rx_bytes_per_s", Float64),
            ("net_tx_bytes_per_s", Float64),
            ("period_s", Float64),
        ],
        Table::Jobs => &[
            ("job_id", Utf8),
            ("attempt", Int32),
            ("cluster", Utf8),
            ("name", Utf8),
            ("user", Utf8),
            ("team", Utf8),
            ("project", Utf8),
            ("workload", Utf8),
            ("partition", Utf8),
            ("priority", Float64),
            ("state", Utf8),
            ("submitted_at", instant()),
            ("eligible_at", instant()),
            ("started_at", instant()),
            ("ended_at", instant()),
            ("suspended_s", Float64),
            ("gpus_requested", Float64),
            ("gpus_allocated", Float64),
            ("gpu_model_requested", Utf8),
            ("nodes", Utf8),
            ("time_limit_s", Float64),
            ("exit_code", Int32),
            ("labels", labels()),
        ],
        Table::Allocations => &[
            ("job_id", Utf8),
            ("attempt", Int32),
            ("cluster", Utf8),
            ("node", Utf8),
            ("gpu_uuid", Utf8),
            ("gpu", Int16),
            ("mig", Int16),
            ("gpu_share_ratio", Float64),
            ("started_at", instant()),
            ("ended_at", instant()),
        ],
        Table::GpuCounts => &[
            ("counted_at", instant()),
            ("cluster", Utf8),
            ("partition", Utf8),
            ("team", Utf8),
            ("gpus_held", Float64),
            ("gpus_waiting", Float64),
            ("gpus_installed", Float64),
            ("gpu_util_ratio", Float64),
            ("period_s", Float64),
        ],
        Table::Gpus => &[
            ("gpu_uuid", Utf8),
            ("cluster", Utf8),
            ("node", Utf8),
            ("gpu", Int16),
            ("partition", Utf8),
            ("gpu_model", Utf8),
            ("mem_total_bytes", Int64),
            ("driver_version", Utf8),
            ("cuda_version", Utf8),
            ("vbios_version", Utf8),
            ("node_ip", Utf8),
            ("site", Utf8),
            ("rack", Utf8),
            ("state", Utf8),
            ("first_seen_at", instant()),
            ("last_seen_at", instant()),
            ("price_per_hour", Float64),
            ("bought_at", instant()),
            ("purchase_price", Float64),
            ("depreciation_months", Float64),
            ("fp16_tflops", Float64),
            ("fp32_tflops", Float64),
        ],
        Table::Nodes => &[
            ("cluster", Utf8),
            ("node", Utf8),
            ("partition", Utf8),
            ("node_ip", Utf8),
            ("site", Utf8),
            ("rack", Utf8),
            ("state", Utf8),
            ("cpus", Int32),
            ("mem_total_bytes", Int64),
            ("first_seen_at", instant()),
            ("last_seen_at", instant()),
        ],
        Table::Events => &[
            ("event_at", instant()),
            ("cluster", Utf8),
            ("node", Utf8),
            ("gpu", Int16),
            ("gpu_uuid", Utf8),
            ("mig", Int16),
            ("kind", Utf8),
            ("detail", Utf8),
        ],
    };
    let fields: Fields =
        columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect();
    Arc::new(Schema::new(fields))
}

fn labels() -> DataType {
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries), false)), false)
}
