//! The figures of a report, each from the named question that tells it, so that the page and
//! `loadline query` never differ.

use chrono::{DateTime, NaiveDate, Utc};
use indicatif::ProgressBar;
use loadline_engine::{Answer, EngineError, Params, Session, query};

use super::super::outlook::local;
use super::super::row::{Row, rows};
use crate::failure::Failure;
use crate::report::data::{
    BaselineUse, DayUse, HardwareFinding, JobEvidence, JobFinding, NodeUse, TeamUse, Totals,
    VerdictUse,
};

/// Jobs worth a look that a report holds.
const JOBS_MAX: usize = 200;

/// The answer of a question as it stands.
const ALL: &str = "SELECT * FROM answer";

/// A period of a store.
pub(super) struct Asked<'a> {
    pub(super) session: &'a Session,
    pub(super) from: DateTime<Utc>,
    pub(super) until: DateTime<Utc>,
    pub(super) bar: ProgressBar,
}

impl Asked<'_> {
    /// Rows of `text` over the answer of a question about the period.
    async fn ask(
        &self,
        question: &str,
        params: &[(&str, &str)],
        text: &str,
    ) -> Result<Vec<Row>, Failure> {
        self.bar.set_message(question.to_owned());
        self.bar.inc(1);
        let question = query::find(question)?;
        let period = [("from", self.from.to_rfc3339()), ("until", self.until.to_rfc3339())];
        let given = params.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let all = period.into_iter().chain(given);
        let params: Params = all.map(|(name, value)| (name.to_owned(), value)).collect();
        let answer: Result<Answer, EngineError> = match text {
            // In the order of the question.
            ALL => self.session.query(&question, &params).await,
            text => self.session.query_over(&question, &params, text).await,
        };
        Ok(rows(&answer?))
    }

    /// Sums, days and teams, from one answer of each question: parts sum to the whole.
    pub(super) async fn uses(&self) -> Result<Uses, Failure> {
        let ledger = "SELECT l.day_started_at, sum(l.gpu_hours_installed) AS installed, \
            sum(l.gpu_hours_held) AS held, sum(l.gpu_hours_free) AS free, \
            sum(l.gpu_hours_down) AS down, sum(l.gpu_hours_excess) AS excess, max(l.source) AS source FROM answer l \
            GROUP BY l.day_started_at ORDER BY l.day_started_at";
        let mut by = "team";
        let mut held = self.ask("gpu_hours_total", &[("by", by)], ALL).await?;
        let named = |row: &Row| row.text("held_by").is_some_and(|name| name != "(none)");
        if !held.is_empty() && !held.iter().any(named) {
            by = "user";
            held = self.ask("gpu_hours_total", &[("by", by)], ALL).await?;
        }
        let idle = "SELECT coalesce(i.{by}, '(none)') AS held_by, sum(i.gpu_hours_idle) AS idle, \
            CASE WHEN count(*) FILTER (WHERE i.gpu_hours_idle > 0 AND i.cost_idle IS NULL) = 0 \
            THEN sum(i.cost_idle) END AS cost FROM answer i GROUP BY i.{by}";
        let idle = idle.replace("{by}", &format!("\"{by}\""));
        let cost = "SELECT c.held_by, CASE WHEN count(c.cost) = count(*) THEN sum(c.cost) END AS cost, \
            sum(c.gpu_hours_unpriced) AS unpriced, max(c.cost_basis) AS basis \
            FROM answer c GROUP BY c.held_by";
        let found = Found {
            ledger: self.ask("ledger_reconcile", &[], ledger).await?,
            seen: self.ask("utilisation_fleet", &[("step", "day")], ALL).await?,
            held,
            cost: self.ask("cost", &[("by", by)], cost).await?,
            idle: self.ask("idle_held", &[], &idle).await?,
            energy: self.ask("energy", &[], ALL).await?,
            gaps: self.ask("gaps", &[], ALL).await?,
            coverage: self.ask("coverage", &[], ALL).await?,
            queue: self.ask("queue", &[("step", "all")], ALL).await?,
            queue_days: self.ask("queue", &[], ALL).await?,
        };
        let hours = (self.until - self.from).num_milliseconds() as f64 / 3_600_000.0;
        let days = found.ledger.iter().filter_map(|row| self.day(row, &found)).collect();
        let mut teams: Vec<TeamUse> =
            found.held.iter().filter_map(|row| team(row, &found)).collect();
        teams.sort_by(|a, b| {
            b.gpu_hours_held.total_cmp(&a.gpu_hours_held).then_with(|| a.team.cmp(&b.team))
        });
        Ok(Uses { totals: totals(&found, hours), days, teams, teams_by: by.to_owned() })
    }

    fn day(&self, row: &Row, found: &Found) -> Option<DayUse> {
        let at = row.instant("day_started_at")?;
        let on = |found: &[Row], column: &str, figure: &str| {
            found.iter().find(|row| row.instant(column) == Some(at))?.number(figure)
        };
        let installed = row.number("installed").filter(|hours| *hours > 0.0);
        Some(DayUse {
            day: self.local_day(at),
            held_ratio: row.number("held").zip(installed).map(|(held, all)| held / all),
            busy_ratio: on(&found.seen, "bin_started_at", "util_ratio"),
            coverage_ratio: on(&found.seen, "bin_started_at", "coverage_ratio"),
            queue_time_s_p50: on(&found.queue_days, "day_started_at", "queue_time_s_p50"),
        })
    }

    fn local_day(&self, at: DateTime<Utc>) -> NaiveDate {
        self.session.calendar().local_date(at)
    }

    /// Every node with a GPU that was expected to report, busiest first.
    pub(super) async fn nodes(&self) -> Result<Vec<NodeUse>, Failure> {
        let text = "SELECT n.node, sum(n.gpu_hours_busy) / nullif(sum(n.gpu_hours_observed), 0) \
            AS busy, coalesce(sum(n.gpu_hours_observed), 0) / nullif(sum(n.gpu_hours_expected), 0) \
            AS seen FROM answer n GROUP BY n.cluster, n.node ORDER BY busy DESC NULLS LAST, n.node";
        let found = self.ask("utilisation_node", &[("step", "month")], text).await?;
        let node = |row: &Row| NodeUse {
            node: row.text("node").unwrap_or_else(|| "(none)".to_owned()),
            busy_ratio: row.number("busy"),
            coverage_ratio: row.number("seen").map(|ratio| ratio.min(1.0)),
        };
        Ok(found.iter().map(node).collect())
    }

    /// Usual utilisation by workload, model and hours; only what can be used.
    pub(super) async fn baselines(&self) -> Result<Vec<BaselineUse>, Failure> {
        let text = "SELECT b.* FROM baselines b WHERE b.measurement = 'gpu_util_ratio' AND b.usable \
            ORDER BY b.workload, b.gpu_model, b.hours DESC";
        self.bar.set_message("baselines");
        self.bar.inc(1);
        let baseline = |row: &Row| {
            Some(BaselineUse {
                workload: row.text("workload")?,
                gpu_model: row.text("gpu_model").unwrap_or_else(|| "(none)".to_owned()),
                hours: row.text("hours")?,
                gpu_util_ratio_mean: row.number("mean"),
                gpu_util_ratio_p5: row.number("p5"),
                gpu_util_ratio_p95: row.number("p95"),
                jobs: row.count("jobs").unwrap_or(0),
                gpu_hours: row.number("gpu_hours").unwrap_or(0.0),
            })
        };
        Ok(rows(&self.session.sql(text).await?).iter().filter_map(baseline).collect())
    }

    /// Verdicts with their sums, and the jobs that need somebody, most GPU-hours first.
    pub(super) async fn health(&self) -> Result<(Vec<VerdictUse>, Vec<JobFinding>), Failure> {
        let found = self.ask("job_health", &[], ALL).await?;
        let mut verdicts: Vec<VerdictUse> = Vec::new();
        let mut jobs = Vec::new();
        for row in &found {
            let Some(verdict) = row.text("verdict") else { continue };
            let gpu_hours = row.number("gpu_hours_observed").unwrap_or(0.0);
            match verdicts.iter_mut().find(|known| known.verdict == verdict) {
                Some(known) => {
                    (known.jobs, known.gpu_hours) = (known.jobs + 1, known.gpu_hours + gpu_hours)
                }
                None => verdicts.push(VerdictUse { verdict: verdict.clone(), jobs: 1, gpu_hours }),
            }
            if matches!(verdict.as_str(), "healthy" | "not-enough-data") {
                continue;
            }
            let text = |column: &str| row.text(column).unwrap_or_else(|| "(none)".to_owned());
            jobs.push(JobFinding {
                job_id: text("job_id"),
                team: text("team"),
                user: text("user"),
                workload: text("workload"),
                gpu_model: text("gpu_model"),
                verdict,
                measurement: text("measurement"),
                level: row.number("level"),
                limit_level: row.number("limit_level"),
                reason: text("reason"),
                gpu_hours,
                evidence: evidence(row),
            });
        }
        verdicts.sort_by(|a, b| b.gpu_hours.total_cmp(&a.gpu_hours));
        jobs.sort_by(|a, b| b.gpu_hours.total_cmp(&a.gpu_hours));
        jobs.truncate(JOBS_MAX);
        Ok((verdicts, jobs))
    }

    /// GPUs worth a look, worst first.
    pub(super) async fn hardware(&self) -> Result<Vec<HardwareFinding>, Failure> {
        let found = self.ask("hardware", &[], ALL).await?;
        let zone = self.session.calendar().zone();
        let gpu = |row: &Row| {
            Some(HardwareFinding {
                node: row.text("node").unwrap_or_else(|| "(none)".to_owned()),
                gpu: row.number("gpu").map(|gpu| gpu as i64),
                gpu_uuid: row.text("gpu_uuid"),
                problem: row.text("problem")?,
                occurrences: row.count("occurrences"),
                hours: row.number("hours"),
                last_seen_at: row.instant("last_seen_at").map(|at| local(at, zone)),
                reason: row.text("reason").unwrap_or_default(),
            })
        };
        Ok(found.iter().filter_map(gpu).collect())
    }
}

/// What the reason of a verdict tells beside the measurement.
fn evidence(row: &Row) -> JobEvidence {
    JobEvidence {
        gpus: row.count("gpus"),
        util_mean_ratio: row.number("util_mean_ratio"),
        util_p50_ratio: row.number("util_p50_ratio"),
        util_best_ratio: row.number("util_best_ratio"),
        temp_max_c: row.number("temp_max_c"),
        idle_tail_hours: row.number("idle_tail_hours"),
        span_hours: row.number("span_hours"),
        hours_read: row.number("hours_read"),
        baseline_p25_ratio: row.number("baseline_p25_ratio"),
        baseline_jobs: row.count("baseline_jobs"),
        baseline_gpu_hours: row.number("baseline_gpu_hours"),
    }
}

/// Sums, days and teams of a period.
pub(super) struct Uses {
    pub(super) totals: Totals,
    pub(super) days: Vec<DayUse>,
    pub(super) teams: Vec<TeamUse>,
    pub(super) teams_by: String,
}

/// Answers that sums, days and teams are read from.
struct Found {
    ledger: Vec<Row>,
    seen: Vec<Row>,
    held: Vec<Row>,
    cost: Vec<Row>,
    idle: Vec<Row>,
    energy: Vec<Row>,
    gaps: Vec<Row>,
    coverage: Vec<Row>,
    queue: Vec<Row>,
    queue_days: Vec<Row>,
}

/// The sum of what is known; `None` where nothing is.
fn sum(rows: &[Row], column: &str) -> Option<f64> {
    rows.iter().filter_map(|row| row.number(column)).reduce(|sum, value| sum + value)
}

/// The sum; `None` where a part is not known.
fn sum_of_all(rows: &[Row], column: &str) -> Option<f64> {
    let known = rows.iter().all(|row| row.number(column).is_some());
    sum(rows, column).filter(|_| known)
}

fn totals(found: &Found, hours: f64) -> Totals {
    let Found { ledger, seen, held, cost, idle, energy, gaps, coverage, queue, .. } = found;
    let queue = queue.first();
    let number = |column| queue.and_then(|row| row.number(column));
    let installed = sum(ledger, "installed");
    let source = ledger.iter().filter_map(|row| row.text("source")).max();
    let floor = source.as_deref() == Some("peak-held");
    let observed = sum(seen, "gpu_hours_observed");
    let covered = sum(coverage, "gpu_hours_observed");
    let expected = sum(coverage, "gpu_hours_expected").filter(|hours| *hours > 0.0);
    let idle_known: Vec<Row> =
        idle.iter().filter(|row| row.number("idle").is_some()).cloned().collect();
    let longest = gaps.iter().filter_map(|row| row.number("gap_hours")).reduce(f64::max);
    Totals {
        // A floor of 0 tells nothing.
        gpus_installed: installed.filter(|hours| *hours > 0.0 || !floor).map(|all| all / hours),
        capacity_source: source,
        gpu_hours_installed: installed,
        gpu_hours_held: sum(held, "gpu_hours_held"),
        gpu_hours_excess: sum(ledger, "excess"),
        gpu_hours_free: sum(ledger, "free"),
        gpu_hours_down: sum(ledger, "down"),
        gpu_hours_observed: observed,
        gpu_hours_seen: covered,
        gpu_hours_busy: sum(seen, "gpu_hours_busy"),
        gpu_hours_effective: sum(held, "gpu_hours_effective"),
        effective_signal: held.iter().find_map(|row| row.text("effective_signal")),
        gpu_hours_idle_held: sum(idle, "idle"),
        cost_idle_held: sum_of_all(&idle_known, "cost"),
        cost_held: sum_of_all(cost, "cost")
            .filter(|_| cost.iter().any(|row| row.text("basis").is_some())),
        gpu_hours_unpriced: sum(cost, "unpriced"),
        energy_kwh: sum(energy, "energy_kwh"),
        energy_site_kwh: sum(energy, "energy_site_kwh"),
        carbon_kg: sum_of_all(energy, "carbon_kg"),
        coverage_ratio: expected.map(|hours| covered.unwrap_or(0.0) / hours),
        gaps: expected.map(|_| gaps.len() as u64),
        gpu_hours_gaps: sum(gaps, "gap_hours"),
        hours_longest_gap: longest,
        jobs: sum(held, "jobs").map(|jobs| jobs as u64),
        jobs_submitted: queue.and_then(|row| row.count("jobs_submitted")),
        queue_time_s_p50: number("queue_time_s_p50"),
        queue_time_s_p90: number("queue_time_s_p90"),
        jobs_waiting: queue.and_then(|row| row.count("jobs_waiting")),
        failed_ratio: number("failed_ratio"),
    }
}

fn team(row: &Row, found: &Found) -> Option<TeamUse> {
    let team = row.text("held_by")?;
    let of = |found: &[Row], column: &str| {
        let mut own = found.iter().filter(|row| row.text("held_by").as_deref() == Some(&team));
        own.next()?.number(column)
    };
    Some(TeamUse {
        gpu_hours_held: row.number("gpu_hours_held").unwrap_or(0.0),
        gpu_hours_observed: row.number("gpu_hours_observed"),
        gpu_hours_busy: row.number("gpu_hours_busy"),
        gpu_hours_idle_held: of(&found.idle, "idle"),
        cost: of(&found.cost, "cost"),
        team,
    })
}
