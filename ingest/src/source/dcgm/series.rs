//! One line of the Prometheus text format, and one series of an API answer.

use std::borrow::Cow;

use super::map::{MetricMaps, Place, without_port};
use super::metric::{Told, told};
use super::when::of_line;

/// One reading of one series.
#[derive(Debug)]
pub(super) struct Series<'t> {
    pub(super) name: &'t str,
    /// What it tells, if it fills a column.
    pub(super) told: Option<Told>,
    pub(super) labels: Labels<'t>,
    pub(super) value: f64,
    /// Whether the value was printed with decimals.
    pub(super) decimals: bool,
    /// Milliseconds since 1970, where the line has a time.
    pub(super) at_ms: Option<i64>,
    /// Name and labels as printed, which tell one series from another.
    pub(super) identity: &'t str,
}

/// The labels that are read, by what they mean whatever they are called.
#[derive(Debug, Default)]
pub(super) struct Labels<'t> {
    pub(super) gpu: Option<Cow<'t, str>>,
    pub(super) uuid: Option<Cow<'t, str>>,
    pub(super) model: Option<Cow<'t, str>>,
    pub(super) cluster: Option<Cow<'t, str>>,
    mapped_node: Option<Cow<'t, str>>,
    host: Option<Cow<'t, str>>,
    node_of_scrape: Option<Cow<'t, str>>,
    pub(super) mig: Option<Cow<'t, str>>,
    pub(super) profile: Option<Cow<'t, str>>,
    pub(super) driver: Option<Cow<'t, str>>,
    pub(super) vbios: Option<Cow<'t, str>>,
    hpc_job: Option<Cow<'t, str>>,
    scrape: Option<Cow<'t, str>>,
    service: Option<Cow<'t, str>>,
    pod: [Option<Cow<'t, str>>; 3],
    namespace: [Option<Cow<'t, str>>; 3],
    container: [Option<Cow<'t, str>>; 3],
}

impl<'t> Labels<'t> {
    /// Takes a label; an empty one is none.
    pub(super) fn take(&mut self, name: &str, value: Cow<'t, str>) {
        let slot = match name {
            "gpu" => &mut self.gpu,
            "UUID" | "uuid" | "gpu_uuid" => &mut self.uuid,
            "modelName" | "model_name" | "modelname" => &mut self.model,
            "cluster" => &mut self.cluster,
            "Hostname" | "hostname" | "host" => &mut self.host,
            "node" | "kubernetes_node" | "nodename" => &mut self.node_of_scrape,
            "GPU_I_ID" | "gpu_i_id" => &mut self.mig,
            "GPU_I_PROFILE" | "gpu_i_profile" => &mut self.profile,
            "DCGM_FI_DRIVER_VERSION" => &mut self.driver,
            "DCGM_FI_DEV_VBIOS_VERSION" => &mut self.vbios,
            "hpc_job" => &mut self.hpc_job,
            "job" => &mut self.scrape,
            "service" => &mut self.service,
            "exported_pod" => &mut self.pod[0],
            "pod" => &mut self.pod[1],
            "pod_name" => &mut self.pod[2],
            "exported_namespace" => &mut self.namespace[0],
            "namespace" => &mut self.namespace[1],
            "pod_namespace" => &mut self.namespace[2],
            "exported_container" => &mut self.container[0],
            "container" => &mut self.container[1],
            "container_name" => &mut self.container[2],
            _ => return,
        };
        if !value.is_empty() {
            *slot = Some(value);
        }
    }

    /// Takes a label that a map names as what is at `place`; an empty one is none.
    pub(super) fn put(&mut self, place: Place, value: Cow<'t, str>) {
        let slot = match place {
            Place::Cluster => &mut self.cluster,
            Place::Node => {
                self.mapped_node = Some(without_port(value)).filter(|node| !node.is_empty());
                return;
            }
            Place::Gpu => &mut self.gpu,
            Place::GpuUuid => &mut self.uuid,
            Place::GpuModel => &mut self.model,
            Place::Mig => &mut self.mig,
            Place::MigProfile => &mut self.profile,
            Place::DriverVersion => &mut self.driver,
            Place::JobId => &mut self.hpc_job,
        };
        if !value.is_empty() {
            *slot = Some(value);
        }
    }

    /// The node that the GPU sits in. Where the exporter runs without the network of its node,
    /// `Hostname` is the name of its pod, which is no node.
    pub(super) fn node(&self) -> Option<&Cow<'t, str>> {
        let host = self.host.as_ref().filter(|host| !exporter(host));
        self.mapped_node.as_ref().or(host).or(self.node_of_scrape.as_ref())
    }

    /// The job that the GPU works for: the batch system's, else the pod, as `namespace/pod`.
    ///
    /// A scrape that does not honour labels puts the exporter's own pod into `pod` and the
    /// workload's into `exported_pod`; on an idle GPU only the exporter's is left, and that is
    /// nobody.
    pub(super) fn job(&self) -> Option<String> {
        if let Some(job) = &self.hpc_job {
            return Some(job.clone().into_owned());
        }
        if let Some(pod) = &self.pod[0] {
            return Some(in_namespace(self.namespace[0].as_deref(), pod));
        }
        // `exported_` labels without a pod in them: the plain ones are the exporter's.
        if self.namespace[0].is_some() || self.container[0].is_some() || self.of_exporter() {
            return None;
        }
        let pod = self.pod[1].as_ref().or(self.pod[2].as_ref())?;
        let namespace = self.namespace[1].as_deref().or(self.namespace[2].as_deref());
        Some(in_namespace(namespace, pod))
    }

    fn of_exporter(&self) -> bool {
        let container = self.container[1].as_deref().or(self.container[2].as_deref());
        let pod = self.pod[1].as_deref().or(self.pod[2].as_deref());
        container.is_some_and(exporter)
            || pod.is_some_and(exporter)
            || (container.is_some() && container == self.scrape.as_deref())
            || (container.is_some() && container == self.service.as_deref())
    }
}

/// Whether a name is that of an exporter's own container, pod or service.
fn exporter(name: &str) -> bool {
    name.contains("dcgm-exporter") || name.contains("gpu-exporter")
}

fn in_namespace(namespace: Option<&str>, pod: &str) -> String {
    namespace.map_or_else(|| pod.to_owned(), |namespace| format!("{namespace}/{pod}"))
}

/// Longest name or label value, in bytes: what is longer is no name of anything.
const NAME_BYTES_MAX: usize = 4096;

/// Labels as printed.
pub(super) type Printed<'t> = Vec<(Cow<'t, str>, Cow<'t, str>)>;

/// What a series tells, and the labels that are read of it: by `maps`, else by DCGM's names.
pub(super) fn meaning<'t>(
    name: &str,
    labels: Printed<'t>,
    maps: &MetricMaps,
) -> (Option<Told>, Labels<'t>) {
    let map = maps.of(name, &labels);
    let mut read = Labels::default();
    let mut placed = Vec::new();
    for (label, value) in labels {
        let places = map.map(|map| map.places(&label)).unwrap_or_default();
        placed.extend(places.iter().map(|place| (*place, value.clone())));
        if places.is_empty() {
            read.take(&label, value);
        }
    }
    placed.into_iter().for_each(|(place, value)| read.put(place, value));
    (map.map_or_else(|| told(name), |map| Some(map.told())), read)
}

/// Reads a line `name{label="value",...} value [time]`; the error says what is wrong with it.
pub(super) fn read<'t>(line: &'t str, maps: &MetricMaps) -> Result<Series<'t>, &'static str> {
    let line = line.trim();
    let end =
        line.find(|c: char| c == '{' || c.is_whitespace()).ok_or("no value after the name")?;
    let name = &line[..end];
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b':';
    if name.is_empty() || !name.bytes().all(fits) || name.as_bytes()[0].is_ascii_digit() {
        return Err("no series of the Prometheus text format");
    }
    if name.len() > NAME_BYTES_MAX {
        return Err("a name of more than 4096 bytes");
    }
    let mut labels = Labels::default();
    let mut to_map = Printed::new();
    let mapped = maps.know(name);
    let mut rest = &line[end..];
    if let Some(inside) = rest.strip_prefix('{') {
        rest = read_labels(inside, |label, value| match mapped {
            true => to_map.push((label.into(), value)),
            false => labels.take(label, value),
        })?;
    }
    let identity = &line[..line.len() - rest.len()];
    // An OpenMetrics exemplar follows a `#`.
    let mut words = rest.split(" # ").next().unwrap_or("").split_whitespace();
    let printed = words.next().ok_or("the line ends before its value")?;
    let value = printed.parse::<f64>().map_err(|_| "the value is no number")?;
    let decimals = printed.contains('.');
    let at_ms = words.next().map(of_line).transpose()?;
    let (told, labels) = match mapped {
        true => meaning(name, to_map, maps),
        false => (told(name), labels),
    };
    Ok(Series { name, told, labels, value, decimals, at_ms, identity })
}

fn read_labels<'t>(
    mut rest: &'t str,
    mut take: impl FnMut(&'t str, Cow<'t, str>),
) -> Result<&'t str, &'static str> {
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if let Some(after) = rest.strip_prefix('}') {
            return Ok(after);
        }
        let (name, value) = rest.split_once('=').ok_or("the line ends inside its labels")?;
        let value = value.trim_start().strip_prefix('"').ok_or("a label value without quotes")?;
        let end = closing_quote(value).ok_or("the line ends inside a label value")?;
        if end > NAME_BYTES_MAX {
            return Err("a label value of more than 4096 bytes");
        }
        take(name.trim(), unescaped(&value[..end]));
        rest = &value[end + 1..];
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at),
            _ => {}
        }
    }
    None
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => plain.push('\n'),
                Some(other) => plain.push(other),
                None => {}
            },
            (letter, false) => plain.push(letter),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(line: &str) -> Result<Series<'_>, &'static str> {
        super::read(line, &MetricMaps::default())
    }

    #[test]
    fn a_line_is_read_with_its_escapes_and_time() {
        // Breaks when a quote or a comma in a label value ends it (case 10).
        let line = r#"DCGM_FI_DEV_GPU_TEMP{gpu="3", UUID="GPU-a",pod="a\"b,}\\c",namespace="n"} 30 1773114089184"#;
        let series = read(line).unwrap();
        assert_eq!((series.name, series.value), ("DCGM_FI_DEV_GPU_TEMP", 30.0));
        assert_eq!(series.at_ms, Some(1_773_114_089_184));
        assert_eq!(series.labels.gpu.as_deref(), Some("3"));
        assert_eq!(series.labels.job().as_deref(), Some("n/a\"b,}\\c"));
        assert_eq!(read("up 1 1773114089.184").unwrap().at_ms, Some(1_773_114_089_184));
        assert_eq!(read("up 1").unwrap().at_ms, None);
        let openmetrics = r#"up{gpu="0"} 1.0 1773114089.5 # {trace_id="} # {"} 0.5 1773114089"#;
        let series = read(openmetrics).unwrap();
        assert_eq!((series.value, series.decimals), (1.0, true));
        assert_eq!(series.at_ms, Some(1_773_114_089_500));
        for torn in ["up", "up{a=\"b", "up{a=\"b\"}", "up{a=b} 1", "up x", "curl: (7) failed"] {
            assert!(read(torn).is_err(), "{torn}");
        }
    }

    #[test]
    fn work_is_the_workloads_or_nobodys() {
        // Breaks when an idle GPU is charged to its exporter (case 10).
        let job = |labels: &[(&str, &str)]| {
            let mut read = Labels::default();
            labels.iter().for_each(|(name, value)| read.take(name, Cow::from(*value)));
            read.job()
        };
        let exporter = [("pod", "nvidia-dcgm-exporter-x"), ("namespace", "gpu-operator")];
        assert_eq!(job(&exporter), None);
        let mut both = exporter.to_vec();
        both.extend([("exported_pod", "train-0"), ("exported_namespace", "vision")]);
        assert_eq!(job(&both).as_deref(), Some("vision/train-0"));
        let own_chart = [("pod", "metrics-7"), ("container", "gpu-mon"), ("job", "gpu-mon")];
        assert_eq!(job(&own_chart), None);
        assert_eq!(job(&[("pod_name", "p"), ("pod_namespace", "n")]).as_deref(), Some("n/p"));
        assert_eq!(job(&[("pod", ""), ("namespace", "")]), None);
        assert_eq!(job(&[("hpc_job", "4711"), ("pod", "p")]).as_deref(), Some("4711"));
    }

    #[test]
    fn the_pod_of_the_exporter_is_no_node() {
        // Breaks when every restart of the exporter makes a node.
        let node = |labels: &[(&str, &str)]| {
            let mut read = Labels::default();
            labels.iter().for_each(|(name, value)| read.take(name, Cow::from(*value)));
            read.node().map(|node| node.clone().into_owned())
        };
        let pod = ("Hostname", "nvidia-dcgm-exporter-wqqqn");
        assert_eq!(node(&[pod]), None);
        assert_eq!(node(&[pod, ("node", "gpu-1")]).as_deref(), Some("gpu-1"));
        assert_eq!(node(&[("hostname", "gpu-2"), ("node", "n")]).as_deref(), Some("gpu-2"));
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "\\PC{0,80}", near in "[A-Z_a{}=\", \\\\0-9.]{0,60}") {
            // Breaks when a line is cut inside a character or a quote.
            let _ = read(&line);
            let _ = read(&near);
        }
    }
}
