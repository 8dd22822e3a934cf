//! How many GPUs a Slurm text tells of: TRES strings, generic resources, command lines.
//!
//! `gres/gpu=2` and `gres/gpu:a100=2` beside it are the same two GPUs: the untyped number is the
//! total, the typed ones say of which model. A MIG profile such as `a100_1g.5gb` counts as its
//! share of the board's slices, `gres/mps` as hundredths of a GPU.

use std::collections::BTreeMap;

/// What numeric TRES ids stand for; 1000 and below are Slurm's own, the rest is the site's.
pub type TresIds = BTreeMap<u32, String>;

/// 1001 as all GPUs and 1002 as those of one model, as most sites have it.
#[must_use]
pub fn default_tres_ids() -> TresIds {
    BTreeMap::from([(1001, "gres/gpu".to_owned()), (1002, "gres/gpu:".to_owned())])
}

/// GPUs found in a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gpus {
    /// How many; MIG slices and MPS shares as fractions.
    pub(crate) count: f64,
    /// Model named first, without profile.
    pub(crate) model: Option<String>,
}

#[derive(Default)]
struct Tally {
    untyped: f64,
    typed: f64,
    typed_share: f64,
    mps: f64,
    model: Option<String>,
}

impl Tally {
    fn add(&mut self, name: &str, count: f64) {
        let name = name.strip_prefix("gres/").or(name.strip_prefix("gres:")).unwrap_or(name);
        if name == "mps" || name.starts_with("mps:") {
            self.mps += count / 100.0;
        } else if name == "gpu" {
            self.untyped += count;
        } else if let Some(model) = name.strip_prefix("gpu:") {
            self.typed += count;
            self.typed_share += count * slice_share(model);
            if self.model.is_none() && !model.is_empty() {
                self.model = Some(model.to_owned());
            }
        }
    }

    fn gpus(self) -> Gpus {
        let rest = (self.untyped - self.typed).max(0.0);
        Gpus { count: self.typed_share + rest + self.mps, model: self.model }
    }
}

/// GPUs in `cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=62.50G` or `1=20,2=170000,1002=2`; `None` for a
/// blank text, which tells nothing.
pub(crate) fn tres_gpus(text: &str, ids: &TresIds) -> Option<Gpus> {
    let text = blank_is_none(text)?;
    let mut tally = Tally::default();
    for item in text.split(',') {
        let Some((name, amount)) = item.trim().split_once('=') else { continue };
        let name = match name.parse::<u32>() {
            Ok(id) => match ids.get(&id) {
                Some(name) => name.as_str(),
                None => continue,
            },
            Err(_) => name,
        };
        if let Some(count) = count(amount) {
            tally.add(name, count);
        }
    }
    Some(tally.gpus())
}

/// GPUs in `gpu:a100:2(IDX:0-1)`, `gres:gpu:2` or `gpu:2,mps:50`; `None` for a blank text.
pub(crate) fn gres_gpus(text: &str) -> Option<Gpus> {
    let text = blank_is_none(text)?;
    let mut tally = Tally::default();
    for item in outside_parentheses(text) {
        let item = item.trim();
        let item = item.split('(').next().unwrap_or(item);
        let item = item.strip_prefix("gres:").or(item.strip_prefix("gres/")).unwrap_or(item);
        let (name, number) = match item.rsplit_once([':', '=']) {
            Some((name, amount)) => match count(amount) {
                Some(number) => (name, number),
                None => (item, 1.0),
            },
            None => (item, 1.0),
        };
        tally.add(name, number);
    }
    Some(tally.gpus())
}

/// GPUs asked for on a command line: `--gpus=4`, `-G 4`, `--gpus-per-node`, `--gpus-per-task`,
/// `--gres=gpu:2` (a node), times `nodes` or the tasks named there. `None` where none is named.
pub(crate) fn command_gpus(line: &str, nodes: f64) -> Option<Gpus> {
    let mut words = line.split_whitespace().peekable();
    let (mut per_node, mut per_task, mut total, mut tasks) = (None, None, None, None);
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, words.peek().copied()),
        };
        match flag {
            "--gpus" | "-G" => total = value.and_then(model_count),
            "--gpus-per-node" => per_node = value.and_then(model_count),
            "--gpus-per-task" => per_task = value.and_then(model_count),
            "--gres" => per_node = value.and_then(gres_gpus),
            "--ntasks" | "-n" => tasks = value.and_then(count),
            _ => {
                if let Some(short) = word.strip_prefix("-G").filter(|s| !s.is_empty()) {
                    total = model_count(short);
                }
            }
        }
    }
    let times = |gpus: Gpus, factor: f64| Gpus { count: gpus.count * factor, ..gpus };
    total
        .or(per_node.map(|gpus| times(gpus, nodes.max(1.0))))
        .or(per_task.map(|gpus| times(gpus, tasks.unwrap_or(1.0).max(1.0))))
}

/// `a100:4` or `4`.
fn model_count(text: &str) -> Option<Gpus> {
    match text.rsplit_once(':') {
        Some((model, number)) => {
            Some(Gpus { count: count(number)? * slice_share(model), model: Some(model.into()) })
        }
        None => Some(Gpus { count: count(text)?, model: None }),
    }
}

/// A number with Slurm's suffix (`2K`, `62.50G`, `31000Mn`, `4000Mc`), as printed, powers of 1024.
/// An amount that overflowed in the ledger is a number like any other: only GPUs are used.
fn count(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches(['n', 'c']);
    let (digits, factor) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1024.0),
        b'M' => (&text[..text.len() - 1], 1024.0 * 1024.0),
        b'G' => (&text[..text.len() - 1], 1024.0 * 1024.0 * 1024.0),
        b'T' => (&text[..text.len() - 1], 1024.0_f64.powi(4)),
        _ => (text, 1.0),
    };
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    digits.parse::<f64>().ok().filter(|_| plain).map(|number| number * factor)
}

/// The share of a board that a MIG profile such as `a100_3g.20gb` or `1g.10gb` takes; 1 for a
/// whole GPU. An A30 has four slices, every other model seven.
fn slice_share(model: &str) -> f64 {
    let slices = model.find("g.").and_then(|at| {
        let digit = model.as_bytes().get(at.checked_sub(1)?)?;
        let alone = at == 1 || !model.as_bytes()[at - 2].is_ascii_digit();
        (digit.is_ascii_digit() && *digit != b'0' && alone).then(|| f64::from(digit - b'0'))
    });
    let of = if model.to_ascii_lowercase().contains("a30") { 4.0 } else { 7.0 };
    slices.map_or(1.0, |slices| (slices / of).min(1.0))
}

fn blank_is_none(text: &str) -> Option<&str> {
    let text = text.trim();
    (!matches!(text, "" | "\\N" | "NULL" | "N/A" | "(null)" | "Unknown")).then_some(text)
}

/// Items between commas, where a comma inside parentheses (`(IDX:0,2)`) separates nothing.
fn outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tres(text: &str) -> Option<f64> {
        tres_gpus(text, &default_tres_ids()).map(|gpus| gpus.count)
    }

    #[test]
    fn each_gpu_is_counted_once() {
        // Breaks when typed and untyped add up, or an id of another resource counts.
        assert_eq!(tres("cpu=12,gres/gpu:a100=1,gres/gpu=1,mem=62.50G,node=1"), Some(1.0));
        assert_eq!(tres("gres/gpu=4,gres/gpu:a100=2,gres/gpu:v100=2"), Some(4.0));
        assert_eq!(tres("gres/gpu:a100=2,gres/gpu:v100=2"), Some(4.0));
        assert_eq!(tres("billing=12,gres/gpu=3"), Some(3.0));
        assert_eq!(tres("1=20,2=170000,4=1,5=20"), Some(0.0));
        assert_eq!(tres("1=20,2=170000,4=1,5=20,1001=2"), Some(2.0));
        assert_eq!(tres("1=20,1001=2,1002=2"), Some(2.0));
        assert_eq!(tres("mem=2147486648Mn,gres/gpumem=40G,gres/gpuutil=90"), Some(0.0));
        assert_eq!(tres(""), None);
        let ids = BTreeMap::from([(1003, "gres/gpu:volta".to_owned())]);
        let gpus = tres_gpus("1001=7,1003=2", &ids).unwrap();
        assert_eq!((gpus.count, gpus.model.as_deref()), (2.0, Some("volta")));
    }

    #[test]
    fn shares_of_a_gpu_are_fractions() {
        // Breaks when a 25 % share costs a whole GPU; 3 of 7 slices, 1 of 4 slices.
        assert_eq!(tres("gres/mps=25"), Some(0.25));
        assert_eq!(tres("gres/gpu=1,gres/gpu:a100_3g.20gb=1"), Some(3.0 / 7.0));
        assert_eq!(tres("gres/gpu:a30_1g.6gb=2"), Some(0.5));
        assert_eq!(tres("gres/gpu:7g.80gb=1"), Some(1.0));
    }

    #[test]
    fn generic_resources_and_command_lines_tell_gpus_too() {
        // Breaks when an index list is split at its comma or a per-node number is not multiplied.
        let gres = |text| gres_gpus(text).map(|gpus| gpus.count);
        assert_eq!(gres("gpu:a100:2(IDX:0,3)"), Some(2.0));
        assert_eq!(gres("gpu:2(S:0-1),gpu:v100:1"), Some(2.0));
        assert_eq!(gres("gres:gpu:4"), Some(4.0));
        assert_eq!(gres("gpu"), Some(1.0));
        assert_eq!(gres("craynetwork:0"), Some(0.0));
        assert_eq!(gres(" "), None);
        let asked = |line| command_gpus(line, 2.0).map(|gpus| gpus.count);
        assert_eq!(asked("sbatch --gpus=4 run.sh"), Some(4.0));
        assert_eq!(asked("srun -G 3 x"), Some(3.0));
        assert_eq!(asked("srun -Ga100:8 x"), Some(8.0));
        assert_eq!(asked("sbatch --gres gpu:2 run.sh"), Some(4.0));
        assert_eq!(asked("sbatch --gpus-per-node=a100:4 x"), Some(8.0));
        assert_eq!(asked("srun -n 6 --gpus-per-task=1 x"), Some(6.0));
        assert_eq!(asked("sbatch run.sh"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,60}") {
            for gpus in [tres(&text), gres_gpus(&text).map(|g| g.count)].into_iter().flatten() {
                prop_assert!(gpus >= 0.0);
            }
            let _ = command_gpus(&text, 1.0);
        }
    }
}
