//! The rollups of a store hold what its readings add up to, by a second way: SQL over
//! `gpu_readings`, cut at bins.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Float64Array, Int16Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use arrow::datatypes::Int64Type;
use loadline_engine::{EngineConfig, Session};
use loadline_ingest::batch::Output;
use loadline_ingest::import::{Import, ImportSettings};
use loadline_ingest::rollup::{RollupSettings, roll_up};
use loadline_ingest::{Store, Table};

const MARCH: i64 = 1_772_323_200_000; // 2026-03-01T00:00:00Z
const HOUR: i64 = 3_600_000;

/// Numbers that look drawn, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn ratio(&mut self) -> f64 {
        self.below(10_000) as f64 / 1e4
    }

    fn known(&mut self, value: f64) -> Option<f64> {
        (self.below(12) > 0).then_some(value)
    }
}

/// Readings of one GPU or slice over 30 hours across a midnight: irregular steps, silences of
/// minutes, jobs that change, values that are missing, a counter that now and then begins anew.
fn history(dice: &mut Dice, node: &str, gpu: i16, mig: Option<i16>) -> Vec<RecordBatch> {
    let mut at = MARCH + i64::try_from(dice.below(60_000)).unwrap();
    let mut energy = 1_000.0;
    let mut job = 0;
    let (mut batches, mut times) = (Vec::new(), Vec::new());
    while at < MARCH + 30 * HOUR {
        times.push(at);
        at += match dice.below(60) {
            0 => 900_000,
            1 => 61_000,
            more => 25_000 + 177 * i64::try_from(more).unwrap(),
        };
    }
    for times in times.chunks(400) {
        job += dice.below(3);
        energy = if dice.below(4) == 0 { 0.0 } else { energy };
        let rows = times.len();
        let mut column = |value: &mut dyn FnMut(&mut Dice) -> Option<f64>| {
            let values: Float64Array = (0..rows).map(|_| value(dice)).collect();
            Arc::new(values) as ArrayRef
        };
        let utilisation = column(&mut |dice: &mut Dice| {
            let value = dice.ratio();
            mig.is_none().then(|| dice.known(value)).flatten()
        });
        let activity = column(&mut |dice: &mut Dice| Some(dice.ratio()));
        let power = column(&mut |dice: &mut Dice| {
            let value = 60.0 + 600.0 * dice.ratio();
            dice.known(value)
        });
        let counter = column(&mut |dice: &mut Dice| {
            energy += 9_000.0 * dice.ratio();
            dice.known(energy)
        });
        let memory: Int64Array =
            (0..rows).map(|_| Some(dice.below(80_000_000_000) as i64)).collect();
        let text = |text: Option<String>| Arc::new(StringArray::from(vec![text; rows])) as ArrayRef;
        let times = TimestampMillisecondArray::from(times.to_vec()).with_timezone("UTC");
        let columns: [(&str, ArrayRef); 12] = [
            ("sampled_at", Arc::new(times)),
            ("cluster", text(Some("c".into()))),
            ("node", text(Some(node.into()))),
            ("gpu", Arc::new(Int16Array::from(vec![gpu; rows]))),
            ("gpu_uuid", text(Some(format!("GPU-{node}-{gpu}")))),
            ("mig", Arc::new(Int16Array::from(vec![mig; rows]))),
            ("job_id", text((job % 3 > 0).then(|| job.to_string()))),
            ("gpu_util_ratio", utilisation),
            ("sm_active_ratio", activity),
            ("power_w", power),
            ("energy_j", counter),
            ("mem_used_bytes", Arc::new(memory)),
        ];
        let columns = columns.map(|(name, column)| (name, column, true));
        batches.push(RecordBatch::try_from_iter_with_nullable(columns).unwrap());
    }
    batches
}

async fn import(store: &Store, batches: impl IntoIterator<Item = RecordBatch>) {
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    for batch in batches {
        import.rows(Table::Samples, batch).unwrap();
    }
    import.finish(store).await.unwrap();
}

#[test]
fn rollups_equal_the_readings_cut_at_bins() {
    // Breaks when a rollup loses, doubles or misplaces any second of any reading, forgets late or
    // doubled rows, or takes a counter for power where it did not follow.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(64 << 20)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::spawn(compare()).await.unwrap() });
}

async fn compare() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    let mut dice = Dice(20_260_301);
    let mut batches = Vec::new();
    for node in ["n1", "n2", "n3"] {
        for (gpu, mig) in [(0, None), (1, None), (2, Some(1)), (2, Some(2))] {
            batches.extend(history(&mut dice, node, gpu, mig));
        }
    }
    // A third comes late, some of it twice; each arrival is followed by a rollup.
    let (late, early): (Vec<_>, Vec<_>) =
        batches.into_iter().enumerate().partition(|b| b.0 % 3 == 1);
    let doubled: Vec<RecordBatch> =
        late.iter().step_by(2).map(|(_, batch)| batch.clone()).collect();
    for arrival in [early, late] {
        import(&store, arrival.into_iter().map(|(_, batch)| batch)).await;
        let rolled = roll_up(&store, &RollupSettings::default(), |_| (), |_| ()).await.unwrap();
        assert!(rolled.len() >= 2);
    }
    import(&store, doubled).await;
    assert_eq!(roll_up(&store, &RollupSettings::default(), |_| (), |_| ()).await.unwrap(), []);

    let session = Session::open(&store, &EngineConfig::default(), None).await.unwrap();
    for (table, bin, least) in [("gpu_5m", "5 minutes", 3_000), ("gpu_1h", "hour", 300)] {
        for (measure, known) in [
            ("reported_ratio", "reported_ratio"),
            ("power_w", "power_w"),
            ("mem_used_bytes", "CAST(mem_used_bytes AS DOUBLE)"),
        ] {
            let cut = format!(
                "SELECT {KEY}, unnest(split_bins(started_at, sampled_at, '{bin}')) AS bin, \
                 {known} AS x FROM gpu_readings"
            );
            let told = [
                ("covered_s", "sum(bin['elapsed_s'])"),
                (
                    &format!("{measure}_known_s"),
                    "sum(bin['elapsed_s']) FILTER (WHERE x IS NOT NULL)",
                ),
                (&format!("{measure}_sum"), "sum(x * bin['elapsed_s'])"),
                (&format!("{measure}_sum_sq"), "sum(x * x * bin['elapsed_s'])"),
                (&format!("{measure}_min"), "min(x)"),
                (&format!("{measure}_max"), "max(x)"),
            ];
            agree(&session, table, &cut, &told, least).await;
        }
        let followed = "lag(sampled_at) OVER one = started_at \
            AND energy_j >= lag(energy_j) OVER one AND period_s > 0";
        let cut = format!(
            "SELECT {KEY}, unnest(split_bins(started_at, sampled_at, '{bin}')) AS bin, w FROM (\
             SELECT s.*, r.started_at, CASE WHEN {followed} \
             THEN (energy_j - lag(energy_j) OVER one) / s.period_s ELSE s.power_w END AS w \
             FROM (SELECT * FROM samples) s JOIN (SELECT gpu_uuid AS u, mig AS m, sampled_at AS at, \
             started_at FROM gpu_readings) r ON r.u = s.gpu_uuid AND r.at = s.sampled_at \
             AND r.m IS NOT DISTINCT FROM s.mig \
             WINDOW one AS (PARTITION BY gpu_uuid, mig ORDER BY sampled_at))"
        );
        let told = [
            ("energy_j", "sum(w * bin['elapsed_s'])"),
            ("energy_known_s", "sum(bin['elapsed_s']) FILTER (WHERE w IS NOT NULL)"),
        ];
        agree(&session, table, &cut, &told, least).await;
        let counted = format!(
            "SELECT count(*) FROM (SELECT {KEY}, date_bin(INTERVAL '{}', sampled_at) AS b, \
             count(*) AS n FROM samples GROUP BY 1, 2) a FULL JOIN (SELECT {KEY}, bin_started_at \
             AS b, readings AS n FROM {table} WHERE readings > 0) t ON a.key = t.key AND a.b = t.b AND a.n = t.n \
             WHERE a.key IS NULL OR t.key IS NULL",
            bin.replace("hour", "1 hour")
        );
        assert_eq!(number(&session, &counted).await, 0, "{table}: readings");
    }
}

/// A reading's GPU, slice and job.
const KEY: &str = "concat_ws('|', cluster, node, gpu_uuid, coalesce(mig, -1), coalesce(job_id, '')) \
    AS key";

/// Holds columns of a rollup against what is summed of readings that were cut.
async fn agree(session: &Session, table: &str, cut: &str, told: &[(&str, &str)], least: i64) {
    let summed: Vec<String> =
        told.iter().enumerate().map(|(n, (_, sum))| format!("{sum} AS a{n}")).collect();
    let columns: Vec<String> =
        told.iter().enumerate().map(|(n, (column, _))| format!("{column} AS b{n}")).collect();
    let differ: Vec<String> = (0..told.len())
        .map(|n| {
            format!(
                "coalesce(abs(a{n} - b{n}) > 1e-9 * greatest(abs(a{n}), 1), \
                 (a{n} IS NULL) <> (b{n} IS NULL))"
            )
        })
        .collect();
    let text = |what: &str| {
        format!(
            "SELECT {what} FROM (SELECT key, bin['bin_started_at'] AS b, {} FROM ({cut}) \
             GROUP BY key, bin['bin_started_at']) s FULL JOIN (SELECT {KEY}, bin_started_at AS b, {} \
             FROM {table} WHERE covered_s > 0) t ON s.key = t.key AND s.b = t.b",
            summed.join(", "),
            columns.join(", ")
        )
    };
    assert!(number(session, &text("count(*)")).await > least, "{table}");
    let wrong = format!("count(*) FILTER (WHERE {})", differ.join(" OR "));
    assert_eq!(number(session, &text(&wrong)).await, 0, "{table}: {}", text("*"));
}

async fn number(session: &Session, text: &str) -> i64 {
    let answer = session.sql(text).await.unwrap_or_else(|error| panic!("{text}\n{error:?}"));
    answer.batches[0].column(0).as_primitive::<Int64Type>().value(0)
}
