//! What a file holds that is no reading of a GPU: told when it is passed over, and when nothing
//! else is in it.

use std::collections::BTreeMap;

/// Metrics that are told apart; further ones are counted together.
const METRICS_MAX: usize = 1000;
/// Metrics that a message names.
const METRICS_TOLD: usize = 3;
/// Letters of a name or line that a message shows.
const LETTERS_TOLD: usize = 60;

/// Whose metrics begin how.
const EXPORTERS: [(&str, &str); 6] = [
    ("node_", "node_exporter"),
    ("nvidia_smi_", "nvidia_gpu_exporter"),
    ("kube_", "kube-state-metrics"),
    ("container_", "cAdvisor"),
    ("slurm_", "an exporter of Slurm"),
    ("vllm:", "vLLM"),
];

/// Series that are no part of a sample, and the first line that is no series.
#[derive(Debug, Default)]
pub(super) struct Found {
    metrics: BTreeMap<String, u64>,
    series: u64,
    first_line: Option<(u64, String)>,
}

impl Found {
    /// Counts a series that fills no column.
    pub(super) fn series(&mut self, name: &str) {
        self.series += 1;
        if let Some(count) = self.metrics.get_mut(name) {
            *count += 1;
        } else if self.metrics.len() < METRICS_MAX {
            self.metrics.insert(name.to_owned(), 1);
        }
    }

    /// Remembers the first line that is no series.
    pub(super) fn line(&mut self, number: u64, text: &str) {
        self.first_line.get_or_insert_with(|| (number, shown(text)));
    }

    /// What was passed over, in words.
    pub(super) fn passed_over(&self) -> Option<String> {
        let metrics = self.metrics.len();
        (self.series > 0)
            .then(|| format!("{} series of {metrics} other metrics passed over", self.series))
    }

    /// Why a file without a single reading is no page of dcgm-exporter, in words; `None` where
    /// there is nothing in it at all.
    pub(super) fn instead(&self) -> Option<String> {
        if self.series == 0 {
            let (number, text) = self.first_line.as_ref()?;
            return Some(format!(
                "no series of the Prometheus text format in it; line {number} is `{text}`"
            ));
        }
        let names = self.names();
        if self.metrics.keys().any(|name| super::metric::told(name).is_some()) {
            return Some(format!("its series name no GPU by `UUID` or `gpu`: {names}"));
        }
        if self.metrics.keys().any(|name| name.to_ascii_lowercase().starts_with("dcgm_")) {
            return Some(format!("none of its series of DCGM fills a column: {names}"));
        }
        let whose = EXPORTERS.iter().max_by_key(|(start, _)| self.beginning(start));
        let whose = whose.filter(|(start, _)| self.beginning(start) > 0);
        let whose = whose.map_or_else(String::new, |(_, whose)| format!("of {whose}: "));
        Some(format!("no series of DCGM in it, but {whose}{names}"))
    }

    fn beginning(&self, start: &str) -> u64 {
        let named = self.metrics.iter().filter(|(name, _)| name.starts_with(start));
        named.map(|(_, count)| count).sum()
    }

    /// The metrics with the most series.
    fn names(&self) -> String {
        let mut metrics: Vec<_> = self.metrics.iter().collect();
        metrics.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        let told = metrics.iter().take(METRICS_TOLD);
        let names: Vec<_> = told.map(|(name, _)| format!("`{}`", shown(name))).collect();
        let names = names.join(", ");
        match metrics.len().saturating_sub(METRICS_TOLD) {
            0 => names,
            further => format!("{names} and {further} further metrics"),
        }
    }
}

/// The beginning of a text, without what a terminal would obey.
fn shown(text: &str) -> String {
    let letters = text.chars().take(LETTERS_TOLD);
    letters.map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_another_exporter_is_named() {
        // Breaks when all that a message says is that a file was not understood.
        let mut found = Found::default();
        assert_eq!(found.instead(), None);
        for name in ["go_threads", "node_load1", "node_cpu", "node_cpu", "node_a", "node_b"] {
            found.series(name);
        }
        assert_eq!(
            found.instead().unwrap(),
            "no series of DCGM in it, but of node_exporter: `node_cpu`, `go_threads`, \
             `node_a` and 2 further metrics"
        );
        assert_eq!(found.passed_over().unwrap(), "6 series of 5 other metrics passed over");
        let told = |name: &str| {
            let mut found = Found::default();
            found.series(name);
            found.instead().unwrap()
        };
        assert_eq!(told("my_load"), "no series of DCGM in it, but `my_load`");
        assert!(told("DCGM_FI_DEV_GPU_TEMP").contains("name no GPU"));
        assert!(told("DCGM_FI_DEV_PCIE_REPLAY_COUNTER").contains("fills a column"));
    }

    #[test]
    fn bytes_that_are_no_text_do_not_reach_the_terminal() {
        // Breaks when a binary file clears the screen.
        let mut found = Found::default();
        found.line(1, &format!("\u{1b}[2J{}", "x".repeat(1 << 20)));
        let told = found.instead().unwrap();
        assert!(told.contains("line 1 is `\u{fffd}[2Jxxx") && told.len() < 200, "{told}");
    }
}
