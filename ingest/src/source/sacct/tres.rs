//! How many GPUs a Slurm text tells of: TRES strings and generic resources.
//!
//! `gres/gpu=2` and `gres/gpu:a100=2` beside it are the same two GPUs: the untyped number is the
//! total, the typed ones say of which model. A part of a GPU counts as that part of one:
//!
//! - a MIG profile such as `a100_1g.5gb` as its share of the board's compute slices,
//! - `gres/mps` as hundredths of a GPU, which is Slurm's default,
//! - `gres/shard` as one over the shards that a site cuts a GPU into. The ledger does not tell that
//!   number, so without it the GPUs of such a job are not known.
//!
//! # Source
//! `gres.conf(5)`, `sacct(1)` and `slurm.conf(5)` of Slurm; the MIG user guide for slices a board.

use std::collections::BTreeMap;

/// What numeric TRES ids stand for; 1000 and below are Slurm's own, the rest is the site's.
pub type TresIds = BTreeMap<u32, String>;

/// 1001 as all GPUs and 1002 as those of one model, as most sites have it.
#[must_use]
pub fn default_tres_ids() -> TresIds {
    BTreeMap::from([(1001, "gres/gpu".to_owned()), (1002, "gres/gpu:".to_owned())])
}

/// More GPUs than this one job cannot hold: the database's "not set" is 2^64 - 2.
const GPUS_MAX: f64 = 1e6;

/// Generic resources as the database of older versions writes them: the letters of `gpu` and `mps`
/// as one number.
const PLUGIN_IDS: [(&str, &str); 2] = [("7696487", "gpu"), ("7565421", "mps")];

/// GPUs found in a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gpus {
    /// How many, without shards; MIG slices and MPS shares as fractions.
    pub(crate) count: f64,
    /// Shards of GPUs.
    pub(crate) shards: f64,
    /// Type named first, as the site names it.
    pub(crate) model: Option<String>,
}

impl Gpus {
    /// Whether there is any GPU, or part of one, in the text.
    pub(crate) fn any(&self) -> bool {
        self.count > 0.0 || self.shards > 0.0
    }

    /// GPUs and parts of them; `None` where there are shards and nobody says how many make one.
    pub(crate) fn total(&self, shards_per_gpu: Option<f64>) -> Option<f64> {
        if self.shards > 0.0 {
            return shards_per_gpu.map(|shards| self.count + self.shards / shards);
        }
        Some(self.count)
    }

    /// The same for each of `times` nodes or tasks.
    #[must_use]
    pub(crate) fn times(self, times: f64) -> Self {
        Self { count: self.count * times, shards: self.shards * times, ..self }
    }
}

/// An untyped total, and typed numbers that are parts of it or all there is.
#[derive(Default)]
struct Both {
    untyped: f64,
    typed: f64,
}

impl Both {
    fn total(&self) -> f64 {
        self.untyped.max(self.typed)
    }
}

#[derive(Default)]
pub(super) struct Tally {
    gpus: Both,
    typed_share: f64,
    mps: Both,
    shards: Both,
    model: Option<String>,
    absurd: bool,
}

impl Tally {
    /// Takes what is said of `name`, of which there may be no number: then nothing is known.
    pub(super) fn add(&mut self, name: &str, count: impl Into<Option<f64>>) {
        let name = name.strip_prefix("gres/").or(name.strip_prefix("gres:")).unwrap_or(name);
        let (kind, model) = name.split_once(':').map_or((name, None), |(k, m)| (k, Some(m)));
        let kind = PLUGIN_IDS.iter().find(|(id, _)| *id == kind).map_or(kind, |(_, name)| *name);
        let both = match kind {
            "gpu" => &mut self.gpus,
            "mps" => &mut self.mps,
            "shard" => &mut self.shards,
            _ => return,
        };
        let Some(count) = count.into().filter(|count| *count <= GPUS_MAX) else {
            self.absurd = true;
            return;
        };
        let Some(model) = model else {
            both.untyped += count;
            return;
        };
        both.typed += count;
        if kind == "gpu" {
            self.typed_share += count * slice_share(model);
        }
        if self.model.is_none() && !model.is_empty() {
            self.model = Some(model.to_owned());
        }
    }

    /// The GPUs; `None` for a number that can be none of them.
    pub(super) fn gpus(self) -> Option<Gpus> {
        if self.absurd {
            return None;
        }
        let rest = (self.gpus.untyped - self.gpus.typed).max(0.0);
        let count = self.typed_share + rest + self.mps.total() / 100.0;
        Some(Gpus { count, shards: self.shards.total(), model: self.model })
    }
}

/// GPUs in `cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=62.50G` or `1=20,2=170000,1002=2`; `None` for a
/// blank text, which tells nothing.
pub(crate) fn tres_gpus(text: &str, ids: &TresIds) -> Option<Gpus> {
    tally_of(blank_is_none(text)?, ids).gpus()
}

fn tally_of(text: &str, ids: &TresIds) -> Tally {
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
        tally.add(name, count(amount));
    }
    tally
}

/// Whether a text tells a number of GPUs that can be none: below zero, beyond any fleet, no number.
pub(crate) fn odd_tres(text: &str, ids: &TresIds) -> bool {
    blank_is_none(text).is_some_and(|text| tally_of(text, ids).absurd)
}

/// The same of generic resources.
pub(crate) fn odd_gres(text: &str) -> bool {
    blank_is_none(text).is_some_and(|text| gres_tally(text).absurd)
}

/// Numeric ids of the site in `1=20,2=170000,1005=2` of which `ids` does not say what they are.
pub(crate) fn unknown_ids(text: &str, ids: &TresIds) -> impl Iterator<Item = u32> {
    let named = text.split(',').filter_map(|item| item.trim().split_once('='));
    let numbers = named.filter_map(|(name, _)| name.parse::<u32>().ok());
    numbers.filter(|id| *id > 1000 && !ids.contains_key(id))
}

/// GPUs in `gpu:a100:2(IDX:0-1)`, `gres:gpu:2` or `gpu:2,mps:50`; `None` for a blank text.
pub(crate) fn gres_gpus(text: &str) -> Option<Gpus> {
    gres_tally(blank_is_none(text)?).gpus()
}

fn gres_tally(text: &str) -> Tally {
    let mut tally = Tally::default();
    for item in outside_parentheses(text) {
        // A type that is not set is printed as `gpu:(null):2`.
        let item = item.trim().replace(":(null)", "");
        let item = item.split('(').next().unwrap_or_default();
        let item = item.strip_prefix("gres:").or(item.strip_prefix("gres/")).unwrap_or(item);
        let (name, number) = match item.rsplit_once([':', '=']) {
            Some((name, amount)) => match count(amount) {
                Some(number) => (name, Some(number)),
                // A type is no number; one below zero is no type.
                None if amount.parse::<f64>().is_ok() => (name, None),
                None => (item, Some(1.0)),
            },
            None => (item, Some(1.0)),
        };
        tally.add(name, number);
    }
    tally
}

/// A number with Slurm's suffix (`2K`, `62.50G`, `31000Mn`, `4000Mc`), as printed, powers of 1024.
/// An amount that overflowed in the ledger is a number like any other: only GPUs are used.
pub(super) fn count(text: &str) -> Option<f64> {
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
/// whole GPU.
pub(super) fn slice_share(model: &str) -> f64 {
    let slices = model.find("g.").and_then(|at| {
        let digit = model.as_bytes().get(at.checked_sub(1)?)?;
        let alone = at == 1 || !model.as_bytes()[at - 2].is_ascii_digit();
        (digit.is_ascii_digit() && *digit != b'0' && alone).then(|| f64::from(digit - b'0'))
    });
    slices.map_or(1.0, |slices| (slices / board_slices(model)).min(1.0))
}

/// Compute slices of the board that a type is of. An A30 and an RTX PRO 6000 have four, which the
/// name or a profile that only they have tells; every other board has seven.
fn board_slices(model: &str) -> f64 {
    const FOUR: [&str; 8] =
        ["a30", "rtx_pro_6000", "rtx6000", "1g.6gb", "2g.12gb", "4g.24gb", "2g.48gb", "4g.96gb"];
    let model = model.to_ascii_lowercase();
    if FOUR.iter().any(|mark| model.contains(mark)) { 4.0 } else { 7.0 }
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
        assert_eq!(tres("gres/mps=25,gres/mps:a100=25"), Some(0.25));
        assert_eq!(tres("gres/gpu=1,gres/gpu:a100_3g.20gb=1"), Some(3.0 / 7.0));
        assert_eq!(tres("gres/gpu:1g.10gb=2,gres/gpu=2"), Some(2.0 / 7.0));
        assert_eq!(tres("gres/gpu:nvidia_h100_80gb_hbm3_1g.10gb+me=7"), Some(1.0));
        assert_eq!(tres("gres/gpu:a30_1g.6gb=2"), Some(0.5));
        assert_eq!(tres("gres/gpu:2g.12gb=2"), Some(1.0));
        assert_eq!(tres("gres/gpu:7g.80gb=1"), Some(1.0));
        // Whole boards and a slice in one job: 2 + 1 of 7.
        let mixed = "gres/gpu:a100=2,gres/gpu:a100_1g.5gb=1,gres/gpu=3";
        assert_eq!(tres(mixed), Some(2.0 + 1.0 / 7.0));
    }

    #[test]
    fn shards_need_the_number_that_make_a_gpu() {
        // Breaks when a shard counts as a GPU, as none, or twice where it is typed too.
        let gpus = tres_gpus("cpu=4,gres/shard=1,gres/shard:a100=1", &default_tres_ids()).unwrap();
        assert!(gpus.any());
        assert_eq!((gpus.total(None), gpus.total(Some(4.0))), (None, Some(0.25)));
        let gres = gres_gpus("shard:a100:6(3/4,3/4)").unwrap();
        assert_eq!(gres.total(Some(4.0)), Some(1.5));
        let none = tres_gpus("cpu=4,gres/gpu=2,gres/shard=0", &default_tres_ids()).unwrap();
        assert_eq!(none.total(None), Some(2.0));
    }

    #[test]
    fn amounts_and_ids_that_say_nothing_are_no_gpus() {
        // Breaks when the database's "not set" is 1.8e19 GPUs, or an id of the site is lost unsaid.
        assert_eq!(tres("cpu=4,gres/gpu=18446744073709551614"), None);
        for odd in ["cpu=4,gres/gpu=-2", "gres/gpu:a100=-2", "gres/gpu=two", "1=4,1001=-1"] {
            assert_eq!(tres(odd), None, "{odd}");
            assert!(odd_tres(odd, &default_tres_ids()), "{odd}");
        }
        assert!(gres_gpus("gpu:-2").is_none() && odd_gres("gpu:a100:-2"));
        assert!(!odd_tres("cpu=-4,gres/gpu=2", &default_tres_ids()) && !odd_gres("gpu:a100"));
        let unknown = |text| unknown_ids(text, &default_tres_ids()).collect::<Vec<_>>();
        assert_eq!(unknown("1=20,2=170000,1001=2,1005=2,gres/gpu=1"), [1005]);
    }

    #[test]
    fn generic_resources_tell_gpus_too() {
        // Breaks when an index list is split at its comma, or `(null)` hides the number.
        let gres = |text| gres_gpus(text).map(|gpus| gpus.count);
        assert_eq!(gres("gpu:a100:2(IDX:0,3)"), Some(2.0));
        assert_eq!(gres("gpu:(null):2(IDX:0-1)"), Some(2.0));
        assert_eq!(gres("gpu:2(S:0-1),gpu:v100:1"), Some(2.0));
        assert_eq!(gres("gres:gpu:4"), Some(4.0));
        assert_eq!(gres("gres/gpu:h100:8"), Some(8.0));
        assert_eq!(gres("cpu=1,gres/gpu=2"), Some(2.0));
        assert_eq!(gres("gpu"), Some(1.0));
        assert_eq!(gres("7696487:4"), Some(4.0));
        assert_eq!(gres("craynetwork:0"), Some(0.0));
        assert_eq!(gres(" "), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,60}") {
            for gpus in [tres(&text), gres_gpus(&text).map(|g| g.count)].into_iter().flatten() {
                prop_assert!(gpus >= 0.0);
            }
        }
    }
}
