//! The GPUs, the nodes they sit in, and what goes wrong with them when.

use std::fmt::Write as _;

use super::Options;
use super::dice::Dice;
use super::local::Local;

/// A pool of equal GPUs: a partition of the scheduler.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) name: &'static str,
    pub(super) model: &'static str,
    /// Type in a generic resource: `gres/gpu:h100`.
    pub(super) gres: &'static str,
    pub(super) mem_mib: u32,
    pub(super) idle_w: f64,
    pub(super) limit_w: f64,
    pub(super) sm_clock_mhz: u32,
    pub(super) mem_clock_mhz: u32,
    pub(super) price_per_hour: &'static str,
    pub(super) purchase_price: u32,
    pub(super) bought: &'static str,
    pub(super) fp16_tflops: u32,
    pub(super) fp32_tflops: &'static str,
}

/// The two pools.
pub(super) const POOLS: [Pool; 2] = [
    Pool {
        name: "train",
        model: "NVIDIA H100 80GB HBM3",
        gres: "h100",
        mem_mib: 81_559,
        idle_w: 72.0,
        limit_w: 700.0,
        sm_clock_mhz: 1980,
        mem_clock_mhz: 2619,
        price_per_hour: "2.9",
        purchase_price: 31_000,
        bought: "2024-11-01T00:00:00Z",
        fp16_tflops: 989,
        fp32_tflops: "67",
    },
    Pool {
        name: "serve",
        model: "NVIDIA A100-SXM4-80GB",
        gres: "a100",
        mem_mib: 81_920,
        idle_w: 58.0,
        limit_w: 400.0,
        sm_clock_mhz: 1410,
        mem_clock_mhz: 1593,
        price_per_hour: "1.6",
        purchase_price: 14_500,
        bought: "2022-06-01T00:00:00Z",
        fp16_tflops: 312,
        fp32_tflops: "19.5",
    },
];

/// One GPU.
#[derive(Debug)]
pub(super) struct Gpu {
    pub(super) uuid: String,
    pub(super) node: usize,
    pub(super) index: usize,
    pub(super) pool: usize,
}

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) pool: usize,
    pub(super) gpus: Vec<usize>,
}

/// The GPUs and their troubles. Instants are UTC seconds.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) gpus: Vec<Gpu>,
    pub(super) nodes: Vec<Node>,
    pub(super) gpus_per_node: usize,
    /// A GPU whose memory fails, and the instant at which the driver loses it.
    pub(super) failing: usize,
    pub(super) failing_from: i64,
    pub(super) lost_at: i64,
    /// A GPU that is badly cooled.
    pub(super) hot: usize,
    /// A GPU that notebooks share by time slicing.
    pub(super) shared: usize,
    /// A node whose collector was down: node, from, until.
    pub(super) node_gap: (usize, i64, i64),
    /// No collector reported: from, until.
    pub(super) fleet_gap: (i64, i64),
}

impl Fleet {
    pub(super) fn new(options: &Options, local: &Local) -> Self {
        let count = options.gpus as usize;
        let gpus_per_node = (count / 2).min(8);
        let node_count = count / gpus_per_node;
        let train_nodes = node_count.div_ceil(2);
        let mut dice = Dice::new(options.seed, 1);
        let nodes: Vec<Node> = (0..node_count)
            .map(|node| {
                let pool = usize::from(node >= train_nodes);
                let number = if pool == 0 { node + 1 } else { node - train_nodes + 1 };
                let gpus = (node * gpus_per_node..(node + 1) * gpus_per_node).collect();
                Node { name: format!("{}-{number:02}", POOLS[pool].name), pool, gpus }
            })
            .collect();
        let gpus = (0..count)
            .map(|gpu| {
                let node = gpu / gpus_per_node;
                let index = gpu % gpus_per_node;
                Gpu { uuid: uuid(&mut dice), node, index, pool: nodes[node].pool }
            })
            .collect();
        let serve = train_nodes * gpus_per_node;
        let gap = local.at(0.34);
        let outage = local.at(0.62);
        Self {
            gpus,
            nodes,
            gpus_per_node,
            failing: serve - 2,
            failing_from: local.at(0.45),
            lost_at: local.at(0.83),
            hot: serve + 1,
            shared: count - 1,
            node_gap: (train_nodes / 2, gap, gap + 9 * 3600),
            fleet_gap: (outage, outage + 3600),
        }
    }

    /// GPUs of a pool that the scheduler hands out whole.
    pub(super) fn pool_gpus(&self, pool: usize) -> usize {
        let whole = |(index, gpu): &(usize, &Gpu)| gpu.pool == pool && *index != self.shared;
        self.gpus.iter().enumerate().filter(whole).count()
    }

    /// Xid errors: instant, GPU, code.
    pub(super) fn xids(&self) -> Vec<(i64, usize, u32)> {
        let span = (self.lost_at - self.failing_from) as f64;
        let steps = [(0.3, 94), (0.55, 94), (0.72, 94), (0.86, 48), (0.95, 48), (0.98, 94)];
        let mut events: Vec<_> = steps
            .iter()
            .map(|(share, xid)| (self.failing_from + (span * share) as i64, self.failing, *xid))
            .collect();
        events.push((self.lost_at, self.failing, 79));
        events
    }
}

fn uuid(dice: &mut Dice) -> String {
    let (high, low) = (dice.bits(), dice.bits());
    let mut text = String::from("GPU-");
    let parts = [(high >> 32, 8), (high >> 16 & 0xffff, 4), (high & 0xffff, 4), (low >> 48, 4)];
    for (value, width) in parts {
        write!(text, "{value:0width$x}-").expect("a String takes any text");
    }
    write!(text, "{:012x}", low & 0xffff_ffff_ffff).expect("a String takes any text");
    text
}
