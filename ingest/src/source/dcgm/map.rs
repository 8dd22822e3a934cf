//! Metrics of any Prometheus page as columns of `samples`, as the configuration says.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use super::metric::{Told, Unit};
use super::series::Printed;
use crate::error::IngestError;
use crate::source::mapped::unit::factor;
use crate::source::value::{COLUMNS, MEASURES, Measure};

/// One metric and the column that it fills.
///
/// # Example
/// ```
/// use loadline_ingest::source::dcgm::{MetricMap, MetricMaps};
///
/// let map: MetricMap = toml::from_str(
///     r#"
///     metric = "my_gpu_power_milliwatts"
///     column = "power_w"
///     unit = "mW"
///     labels = { node = "instance", gpu = "gpu", gpu_uuid = "uuid" }
///     "#,
/// )?;
/// assert!(MetricMaps::new(&[map]).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricMap {
    /// Name of the metric.
    pub metric: String,
    /// Column of `samples`, a measurement.
    pub column: String,
    /// Unit of the metric, such as `percent`, `MiB`, `mW`; that of the column without one.
    pub unit: Option<String>,
    /// Factor in place of a unit.
    pub scale: Option<f64>,
    /// Labels that a series must have with these values, where one metric holds several.
    pub only: BTreeMap<String, String>,
    /// What we call it, and the label that holds it: `cluster`, `node`, `gpu`, `gpu_uuid`,
    /// `gpu_model`, `mig`, `mig_profile`, `driver_version`, `job_id`. Labels that are not named
    /// here are read as those of dcgm-exporter.
    pub labels: BTreeMap<String, String>,
}

/// What a label holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Cluster,
    Node,
    Gpu,
    GpuUuid,
    GpuModel,
    Mig,
    MigProfile,
    DriverVersion,
    JobId,
}

const PLACES: [(&str, Place); 9] = [
    ("cluster", Place::Cluster),
    ("node", Place::Node),
    ("gpu", Place::Gpu),
    ("gpu_uuid", Place::GpuUuid),
    ("gpu_model", Place::GpuModel),
    ("mig", Place::Mig),
    ("mig_profile", Place::MigProfile),
    ("driver_version", Place::DriverVersion),
    ("job_id", Place::JobId),
];

/// Maps that were checked, by metric.
#[derive(Debug, Clone, Default)]
pub struct MetricMaps(HashMap<String, Vec<Checked>>);

#[derive(Debug, Clone)]
pub(super) struct Checked {
    told: Told,
    only: BTreeMap<String, String>,
    labels: Vec<(String, Place)>,
}

impl MetricMaps {
    /// Checks `maps`.
    ///
    /// # Errors
    /// [`IngestError::Setting`] for a column that is no measurement, a unit that it is not read
    /// from, or a label that is none of ours.
    pub fn new(maps: &[MetricMap]) -> Result<Self, IngestError> {
        let mut by_metric: HashMap<String, Vec<Checked>> = HashMap::new();
        for map in maps {
            by_metric.entry(map.metric.clone()).or_default().push(check(map)?);
        }
        Ok(Self(by_metric))
    }

    /// Whether there is a map for series of this name.
    pub(super) fn know(&self, name: &str) -> bool {
        !self.0.is_empty() && self.0.contains_key(name)
    }

    /// The first map that holds for a series.
    pub(super) fn of(&self, name: &str, labels: &Printed<'_>) -> Option<&Checked> {
        let has = |(label, value): (&String, &String)| {
            labels.iter().any(|(name, printed)| name == label && printed == value)
        };
        self.0.get(name)?.iter().find(|map| map.only.iter().all(has))
    }
}

impl Checked {
    pub(super) fn told(&self) -> Told {
        self.told
    }

    /// What `label` holds.
    pub(super) fn places(&self, label: &str) -> Vec<Place> {
        let of_label = self.labels.iter().filter(|(name, _)| name == label);
        of_label.map(|(_, place)| *place).collect()
    }
}

/// A node as an `instance` label tells it, without its port.
pub(super) fn without_port(text: Cow<'_, str>) -> Cow<'_, str> {
    let end = text.rfind(':').filter(|end| {
        let port = &text[end + 1..];
        let host = &text[..*end];
        let one_colon = !host.contains(':') || host.ends_with(']');
        one_colon && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    match (end, text) {
        (None, text) => text,
        (Some(end), Cow::Borrowed(text)) => Cow::Borrowed(&text[..end]),
        (Some(end), Cow::Owned(mut text)) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

fn check(map: &MetricMap) -> Result<Checked, IngestError> {
    let refuse = |what: &str, value: &str, reason: String| IngestError::Setting {
        what: format!("{what} of the map for metric `{}`", map.metric),
        value: value.to_owned(),
        reason,
    };
    if map.metric.trim().is_empty() {
        return Err(refuse("the name", &map.metric, "a map needs the name of a metric".into()));
    }
    let Some(measure) = measure(&map.column) else {
        let names = COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>().join(", ");
        return Err(refuse("column", &map.column, format!("must be one of {names}")));
    };
    let scale = match (&map.unit, map.scale) {
        (Some(unit), Some(_)) => {
            let reason = "give a unit or a scale, not both".to_owned();
            return Err(refuse("unit", unit, reason));
        }
        (Some(unit), None) => {
            factor(&map.column, unit).map_err(|reason| refuse("unit", unit, reason))?
        }
        (None, Some(scale)) if scale.is_finite() && scale > 0.0 => scale,
        (None, Some(scale)) => {
            return Err(refuse("scale", &scale.to_string(), "must be above 0".into()));
        }
        (None, None) => 1.0,
    };
    let mut labels = Vec::new();
    for (ours, theirs) in &map.labels {
        let Some((_, place)) = PLACES.iter().find(|(name, _)| name == ours) else {
            let names = PLACES.map(|(name, _)| name).join(", ");
            return Err(refuse("label", ours, format!("must be one of {names}")));
        };
        labels.push((theirs.clone(), *place));
    }
    let told = Told::Measure { measure, unit: Unit::Scale(scale), rank: 0 };
    Ok(Checked { told, only: map.only.clone(), labels })
}

fn measure(column: &str) -> Option<Measure> {
    MEASURES.into_iter().find(|measure| measure.column().name == column)
}

#[cfg(test)]
mod tests {
    use super::super::series::read;
    use super::*;

    fn maps(text: &str) -> Result<MetricMaps, IngestError> {
        #[derive(Deserialize)]
        struct Maps {
            map: Vec<MetricMap>,
        }
        MetricMaps::new(&toml::from_str::<Maps>(text).unwrap().map)
    }

    #[test]
    fn every_measurement_can_be_mapped() {
        // Breaks when a column of `samples` is forgotten.
        for (measure, column) in MEASURES.into_iter().zip(&COLUMNS) {
            assert_eq!(measure.column().name, column.name);
        }
    }

    #[test]
    fn a_mapped_series_is_read_by_its_own_labels() {
        // Breaks when a page of another exporter fills the wrong column, GPU or node.
        let maps = maps(
            r#"
            [[map]]
            metric = "vram"
            column = "mem_used_bytes"
            unit = "MiB"
            only = { kind = "used" }
            labels = { node = "instance", gpu = "card", gpu_uuid = "serial" }
            [[map]]
            metric = "vram"
            column = "mem_total_bytes"
            only = { kind = "total" }
            "#,
        )
        .unwrap();
        let line = r#"vram{kind="used",instance="gpu-017:9100",card="3",serial="S",gpu="9"} 2"#;
        let series = read(line, &maps).unwrap();
        assert_eq!(series.labels.node().map(|node| &**node), Some("gpu-017"));
        assert_eq!(series.labels.gpu.as_deref(), Some("3"), "what is mapped counts");
        assert_eq!(series.labels.uuid.as_deref(), Some("S"));
        let mapped =
            |measure, scale| Some(Told::Measure { measure, unit: Unit::Scale(scale), rank: 0 });
        assert_eq!(series.told, mapped(Measure::MemUsed, 1_048_576.0));
        let total = read(r#"vram{kind="total",gpu="3"} 2"#, &maps).unwrap();
        assert_eq!(total.told, mapped(Measure::MemTotal, 1.0));
        assert_eq!(read(r#"vram{kind="free",gpu="3"} 2"#, &maps).unwrap().told, None);
        for (node, host) in [("a:1", "a"), ("a", "a"), ("[::1]:9", "[::1]"), ("::1", "::1")] {
            assert_eq!(without_port(node.into()), host);
            assert_eq!(without_port(node.to_owned().into()), host);
        }
    }

    #[test]
    fn maps_that_mean_nothing_are_refused_with_the_legal_values() {
        // Breaks when a typo leaves a column NULL for ever.
        let told = |rest: &str| {
            let text = format!("[[map]]\nmetric = \"m\"\n{rest}");
            maps(&text).unwrap_err().to_string()
        };
        assert!(told("column = \"power\"").contains("must be one of gpu_util_ratio"));
        let unit = told("column = \"power_w\"\nunit = \"hp\"");
        assert!(unit.contains("metric `m` `hp`") && unit.contains("W, mW, kW"), "{unit}");
        assert!(told("column = \"power_w\"\nscale = 0").contains("above 0"));
        assert!(told("column = \"power_w\"\nunit = \"W\"\nscale = 2").contains("not both"));
        let label = told("column = \"power_w\"\nlabels = { host = \"instance\" }");
        assert!(label.contains("must be one of cluster, node"), "{label}");
    }
}
