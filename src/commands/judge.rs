//! `loadline baseline` and `loadline health`: what is usual, and which jobs are not.

use loadline_engine::{Answer, Params, Session, query};

use super::row::{Row, rows};
use super::{Context, period, print};
use crate::cli::{BaselineArgs, HealthArgs, OutputFormat};
use crate::failure::Failure;

pub(super) async fn baseline(context: &Context, args: &BaselineArgs) -> Result<(), Failure> {
    let session = context.session().await?;
    let mut asked = Vec::new();
    if args.measurement != "all" {
        asked.push(format!("b.measurement = {}", quoted(&args.measurement)));
    }
    if let Some(workload) = &args.workload {
        asked.push(format!("b.workload = {}", quoted(workload)));
    }
    if let Some(model) = &args.model {
        asked.push(format!("strpos(lower(b.gpu_model), lower({})) > 0", quoted(model)));
    }
    let asked = if asked.is_empty() { "true".to_owned() } else { asked.join(" AND ") };
    let question = query::find_in(context.questions()?, "baselines")?;
    let columns = match args.table.form() {
        OutputFormat::Table => {
            "b.workload, b.gpu_model, b.hours, b.measurement, b.unit, round(b.mean, 3) AS mean, \
             round(b.sd, 3) AS sd, b.p5, b.p25, b.p50, b.p75, b.p95, b.jobs, \
             round(b.gpu_hours, 1) AS gpu_hours, round(b.days, 1) AS days, b.usable"
        }
        _ => "*",
    };
    let text = format!(
        "SELECT {columns} FROM answer b WHERE {asked} \
         ORDER BY b.workload, b.gpu_model, b.hours DESC, b.measurement"
    );
    let answer = session.query_over(&question, &Params::new(), &text).await?;
    if rows(&answer).is_empty() {
        let known = "SELECT DISTINCT b.measurement, b.workload FROM answer b ORDER BY 1, 2";
        let known = rows(&session.query_over(&question, &Params::new(), known).await?);
        return Err(none_found(&known));
    }
    if args.table.form() == OutputFormat::Table && args.table.output.is_none() {
        let day = session.as_of().with_timezone(&session.calendar().zone()).format("%Y-%m-%d");
        print::line(&format!("baselines of the 28 days up to {day}, usable from 7 days on"))?;
    }
    print::answer(&answer, &args.table)
}

/// Why no baseline is shown.
fn none_found(known: &[Row]) -> Failure {
    if known.is_empty() {
        return Failure::new(
            "there is no baseline: no reading of the last 28 days belongs to a job",
        )
        .hint("import readings and the jobs or allocations that explain them");
    }
    let names = |column: &str| {
        let mut names: Vec<String> = known.iter().filter_map(|row| row.text(column)).collect();
        names.sort();
        names.dedup();
        names.join(", ")
    };
    Failure::usage("no baseline fits").detail(format!(
        "measurements: {}; workloads: {}",
        names("measurement"),
        names("workload")
    ))
}

/// What a job can be judged as; the design's words.
const VERDICTS: [&str; 9] = [
    "healthy",
    "under-used",
    "idle-held",
    "memory-only",
    "starved-of-data",
    "unbalanced",
    "hot",
    "failing-hardware",
    "not-enough-data",
];

pub(super) async fn health(context: &Context, args: &HealthArgs) -> Result<(), Failure> {
    let (session, config) = (context.session().await?, context.config()?);
    let (from, until) = period(&session, &config, args.from.as_deref(), args.to.as_deref())?;
    let params: Params =
        [("from".to_owned(), from.to_rfc3339()), ("until".to_owned(), until.to_rfc3339())].into();
    let question = query::find_in(context.questions()?, "job_health")?;
    let mut asked = vec!["true".to_owned()];
    if let Some(job) = &args.job {
        asked.push(format!("h.job_id = {}", quoted(job)));
    }
    if let Some(verdict) = &args.verdict {
        if !VERDICTS.contains(&verdict.as_str()) {
            return Err(Failure::usage(format!("there is no verdict `{verdict}`"))
                .detail(format!("verdicts are {}", VERDICTS.join(", "))));
        }
        asked.push(format!("h.verdict = {}", quoted(verdict)));
    }
    let asked = asked.join(" AND ");
    let text = format!(
        "SELECT h.* FROM answer h WHERE {asked} ORDER BY h.gpu_hours_observed DESC, h.job_id, h.attempt"
    );
    let judged = session.query_over(&question, &params, &text).await?;
    let found = rows(&judged);
    if found.is_empty() {
        return Err(match &args.job {
            Some(job) => Failure::new(format!("job `{job}` has no reading in the period"))
                .detail(format!(
                    "the period is {} to {}",
                    config.calendar.told(from),
                    config.calendar.told(until)
                ))
                .hint("`loadline query ledger_unmatched` lists jobs without readings"),
            None => Failure::new("no job is judged: none that fits has a reading in the period"),
        });
    }
    if args.table.form() != OutputFormat::Table || args.table.output.is_some() {
        return print::answer(&judged, &args.table);
    }
    match &args.job {
        Some(job) => one(context, &session, job, &found).await,
        None => all(&found, args.limit),
    }
}

/// Every job: verdicts with their sums, then the jobs that need somebody.
fn all(found: &[Row], limit: usize) -> Result<(), Failure> {
    let mut verdicts: Vec<(String, u64, f64)> = Vec::new();
    for row in found {
        let verdict = row.text("verdict").unwrap_or_default();
        let hours = row.number("gpu_hours_observed").unwrap_or(0.0);
        match verdicts.iter_mut().find(|(known, _, _)| *known == verdict) {
            Some((_, jobs, sum)) => (*jobs, *sum) = (*jobs + 1, *sum + hours),
            None => verdicts.push((verdict, 1, hours)),
        }
    }
    verdicts.sort_by(|a, b| b.2.total_cmp(&a.2));
    for (verdict, jobs, hours) in &verdicts {
        print::line(&format!("{verdict:<18} {jobs:>8} jobs {hours:>12.1} GPU-hours read"))?;
    }
    let sick = |row: &&Row| {
        !matches!(row.text("verdict").as_deref(), Some("healthy" | "not-enough-data") | None)
    };
    let sick: Vec<&Row> = found.iter().filter(sick).collect();
    if sick.is_empty() {
        return Ok(());
    }
    print::line("")?;
    for row in sick.iter().take(limit) {
        print::line(&told(row))?;
    }
    if sick.len() > limit {
        print::line(&format!(
            "... and {} more: --limit shows more, --format csv all",
            sick.len() - limit
        ))?;
    }
    Ok(())
}

/// One job: the verdict of each attempt, then its own distribution beside the usual one.
async fn one(
    context: &Context,
    session: &Session,
    job: &str,
    found: &[Row],
) -> Result<(), Failure> {
    for row in found {
        print::line(&told(row))?;
    }
    let question = query::find_in(context.questions()?, "job_profile")?;
    let params: Params = [("job".to_owned(), job.to_owned())].into();
    let text = "SELECT p.attempt, p.hours, p.measurement, p.unit, \
        round(p.gpu_hours, 1) AS gpu_hours, round(p.mean, 3) AS mean, p.p5, p.p50, p.p95, \
        round(p.usual_mean, 3) AS usual_mean, p.usual_p5, p.usual_p50, p.usual_p95, \
        p.usual_jobs, p.usable FROM answer p ORDER BY p.attempt, p.hours DESC, p.measurement";
    let Answer { schema, batches } = session.query_over(&question, &params, text).await?;
    print::line(&print::table(&schema, &batches)?)
}

/// A verdict with its reason, in a line.
fn told(row: &Row) -> String {
    let text = |column: &str| row.text(column).unwrap_or_else(|| "unknown".to_owned());
    format!(
        "{:<16} job {} of {} ({}, {}): {}",
        text("verdict"),
        text("job_id"),
        text("team"),
        text("workload"),
        text("gpu_model"),
        text("reason")
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
