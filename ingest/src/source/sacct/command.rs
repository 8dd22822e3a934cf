//! How many GPUs a job's command line asks for.
//!
//! Options end at the script or program: what stands behind it is its own, however much it looks
//! like ours (`train.sh --gpus 8`).

use super::tres::{Gpus, Tally, count, gres_gpus};

/// Options without a value; the word behind one is an option again, or the script.
const BARE: [&str; 18] = [
    "--exclusive",
    "--requeue",
    "--no-requeue",
    "--hold",
    "-H",
    "--overcommit",
    "-O",
    "--oversubscribe",
    "-s",
    "--parsable",
    "--wait",
    "-W",
    "--quiet",
    "-Q",
    "--verbose",
    "-v",
    "--pty",
    "--x11",
];

/// What the options say.
#[derive(Debug, Default)]
struct Asked {
    total: Option<Gpus>,
    per_node: Option<Gpus>,
    per_task: Option<Gpus>,
    tasks: Option<f64>,
    tasks_per_node: Option<f64>,
}

impl Asked {
    fn take(&mut self, flag: &str, value: Option<&str>) {
        match flag {
            "--gpus" | "-G" => self.total = value.and_then(typed_counts),
            "--gpus-per-node" => self.per_node = value.and_then(typed_counts),
            "--gpus-per-task" => self.per_task = value.and_then(typed_counts),
            "--gres" => self.per_node = value.and_then(gres_gpus),
            "--tres-per-task" => self.per_task = value.and_then(gres_gpus).filter(Gpus::any),
            "--ntasks" | "-n" => self.tasks = value.and_then(count),
            "--ntasks-per-node" => self.tasks_per_node = value.and_then(count),
            _ => {}
        }
    }

    fn gpus(self, nodes: f64) -> Option<Gpus> {
        let nodes = nodes.max(1.0);
        let tasks = self.tasks.or(self.tasks_per_node.map(|tasks| tasks * nodes));
        self.total
            .or(self.per_node.map(|gpus| gpus.times(nodes)))
            .or(self.per_task.map(|gpus| gpus.times(tasks.unwrap_or(1.0).max(1.0))))
    }
}

/// GPUs asked for on a command line: `--gpus=4`, `-G 4`, `--gpus-per-node`, `--gpus-per-task`,
/// `--gres=gpu:2` (a node), times `nodes` or the tasks named there. `None` where none is named.
pub(crate) fn command_gpus(line: &str, nodes: f64) -> Option<Gpus> {
    let mut words = line.split_whitespace().peekable();
    let mut asked = Asked::default();
    // The command itself.
    words.next_if(|word| !word.starts_with('-'));
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            break;
        }
        if let Some((flag, value)) = word.split_once('=') {
            asked.take(flag, Some(value));
        } else if BARE.contains(&word) {
        } else if let Some((flag, value)) = short(word) {
            asked.take(flag, Some(value));
        } else {
            asked.take(word, words.next_if(|next| !next.starts_with('-')));
        }
    }
    asked.gpus(nodes)
}

/// `-G4` as `-G` and `4`.
fn short(word: &str) -> Option<(&str, &str)> {
    let whole = word.starts_with("--") || word.len() <= 2 || !word.is_char_boundary(2);
    (!whole).then(|| word.split_at(2))
}

/// `4`, `a100:4` or `a100:2,v100:1`.
fn typed_counts(text: &str) -> Option<Gpus> {
    let mut tally = Tally::default();
    for item in text.split(',') {
        match item.rsplit_once(':') {
            Some((model, number)) => tally.add(&format!("gpu:{model}"), count(number)?),
            None => tally.add("gpu", count(item)?),
        }
    }
    tally.gpus()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn options_tell_gpus_and_what_follows_them_does_not() {
        // Breaks when a per-node number is not multiplied, a list counts its last type alone, or
        // an argument of the script is taken for an option.
        let asked = |line| command_gpus(line, 2.0).map(|gpus| gpus.count);
        for (line, gpus) in [
            ("sbatch --gpus=4 run.sh", Some(4.0)),
            ("srun -G 3 x", Some(3.0)),
            ("srun -Ga100:8 x", Some(8.0)),
            ("sbatch --gpus=a100:2,v100:1 x", Some(3.0)),
            ("sbatch --gpus=a100_1g.5gb:7 x", Some(1.0)),
            ("sbatch --gres gpu:2 run.sh", Some(4.0)),
            ("sbatch --exclusive --gres=gpu:2 run.sh", Some(4.0)),
            ("sbatch --gpus-per-node=a100:4 x", Some(8.0)),
            ("srun -n 6 --gpus-per-task=1 x", Some(6.0)),
            ("srun -n6 --tres-per-task=cpu=2,gres/gpu:1 x", Some(6.0)),
            ("srun --ntasks-per-node=4 --gpus-per-task=1 x", Some(8.0)),
            ("sbatch run.sh", None),
            ("sbatch run.sh --gpus 8", None),
            ("sbatch --requeue run.sh --gpus 8", None),
            ("sbatch --wrap=python train.py --gpus 8", None),
            ("", None),
        ] {
            assert_eq!(asked(line), gpus, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in ".{0,60}") {
            let _ = command_gpus(&line, 1.0);
        }
    }
}
