//! What the answers say of a store that tells little: each sentence true, and what would tell more.

use loadline_forecast::Basis;

use super::super::data::{Action, HardwareFinding, Outlook, TeamUse, Totals, VerdictUse};
use super::super::lack::Lack;
use super::super::tested::Tested;
use super::*;

const EN: Language = Language::En;
const ZH: Language = Language::Zh;

fn report(totals: Totals, lack_of_demand: Option<Lack>) -> ReportData {
    ReportData { totals, lack_of_demand, teams_by: "team".to_owned(), ..ReportData::default() }
}

fn holder(team: &str, gpu_hours_held: f64) -> TeamUse {
    TeamUse {
        team: team.to_owned(),
        gpu_hours_held,
        gpu_hours_observed: None,
        gpu_hours_busy: None,
        gpu_hours_idle_held: None,
        cost: None,
    }
}

/// A fleet read for a day and half busy.
fn readings() -> Totals {
    Totals {
        gpu_hours_observed: Some(48.0),
        gpu_hours_busy: Some(24.0),
        coverage_ratio: Some(1.0),
        ..Totals::default()
    }
}

#[test]
fn readings_alone_tell_how_busy_and_what_to_import() {
    let data = report(readings(), Some(Lack::Ledger));
    let told = used(&data, EN);
    assert_eq!(told.figure, "50 %");
    assert!(told.sentence.contains("50 % was busy"), "{}", told.sentence);
    assert!(told.sentence.contains("loadline import sacct"), "{}", told.sentence);
    assert!(used(&data, ZH).sentence.contains("loadline import sacct"));
    assert_eq!(by_whom(&data, EN).figure, "unknown");
}

#[test]
fn a_store_without_gpus_claims_no_0_gpu_hours() {
    // Readings of nodes only, and jobs that ask for no GPU.
    for lack in [Lack::Ledger, Lack::GpuJobs { jobs: 20 }, Lack::Counts] {
        let ledger = lack != Lack::Ledger;
        let data = report(Totals::default(), Some(lack));
        assert_eq!(by_whom(&data, EN).sentence.contains("Nobody is known"), ledger);
        for language in [EN, ZH] {
            let told = used(&data, language).sentence;
            assert!(!told.contains("0 GPU-hours") && !told.contains("0 GPU 小时"), "{told}");
            assert!(!told.contains("unknown of"), "{told}");
            assert!(told.contains("import") || told.contains("导入"), "{told}");
        }
        assert_eq!(used(&data, EN).figure, "unknown");
    }
}

#[test]
fn a_job_that_waits_is_not_no_ledger() {
    let totals = Totals {
        gpu_hours_held: Some(0.0),
        jobs_submitted: Some(1),
        jobs_waiting: Some(1),
        ..Totals::default()
    };
    let data = report(totals, None);
    let told = used(&data, EN).sentence;
    assert!(told.starts_with("No job held a GPU in this period: 1 job asked for one"), "{told}");
    assert!(used(&data, ZH).sentence.contains("1 个仍在排队"));
    assert_eq!(by_whom(&data, EN).sentence, "Nobody held a GPU in this period.");
    assert!(healthy(&data, EN).sentence.contains("no readings of GPUs"));
}

#[test]
fn zeros_are_zeros_of_what_is_installed() {
    let totals = Totals {
        gpus_installed: Some(16.0),
        gpu_hours_installed: Some(16.0 * 24.0),
        capacity_source: Some("counts".to_owned()),
        gpu_hours_held: Some(0.0),
        ..Totals::default()
    };
    let mut data = report(totals, None);
    data.teams = vec![holder("(none)", 0.0)];
    assert_eq!(used(&data, EN).figure, "0 %");
    assert!(used(&data, EN).sentence.starts_with("No job held a GPU of 16 GPUs"));
    assert_eq!(by_whom(&data, EN).sentence, "Nobody held a GPU in this period.");
    assert!(data.holders().is_empty());
}

#[test]
fn counts_name_nobody() {
    let totals = Totals { gpu_hours_held: Some(100.0), ..Totals::default() };
    let mut data = report(totals, None);
    data.teams = vec![holder("(none)", 100.0)];
    assert!(by_whom(&data, EN).sentence.contains("not by whom"));
    assert!(by_whom(&data, ZH).sentence.contains("不知道由谁占用"));
    assert!(used(&data, EN).sentence.starts_with("Jobs held 100 GPU-hours"));
}

#[test]
fn a_floor_stands_behind_its_number() {
    let totals = Totals {
        gpus_installed: Some(1.0),
        gpu_hours_installed: Some(24.0),
        capacity_source: Some("peak-held".to_owned()),
        gpu_hours_held: Some(12.0),
        jobs: Some(1),
        queue_time_s_p50: Some(0.0),
        ..readings()
    };
    let data = report(totals, None);
    let told = used(&data, EN).sentence;
    assert!(told.starts_with("Of 1 GPU (the most ever held at once"), "{told}");
    // Readings and a job that do not meet.
    let told = healthy(&data, EN).sentence;
    assert!(told.contains("import allocations") && told.contains("started at once"), "{told}");
}

#[test]
fn jobs_read_too_little_are_not_jobs_without_readings() {
    let mut data = report(Totals { jobs: Some(3), ..readings() }, None);
    data.health =
        vec![VerdictUse { verdict: "not-enough-data".to_owned(), jobs: 3, gpu_hours: 0.2 }];
    assert!(healthy(&data, EN).sentence.contains("too little was read of each of 3 jobs"));
    assert!(healthy(&data, ZH).sentence.contains("3 个作业的采样都太少"));
}

#[test]
fn lost_gpus_are_told_where_no_job_is_judged() {
    // Breaks if a fleet that lost half of its GPUs reads "unknown" on the first screen.
    let gpu = |index, problem: &str| HardwareFinding {
        node: "n".to_owned(),
        gpu: Some(index),
        gpu_uuid: None,
        problem: problem.to_owned(),
        occurrences: Some(1),
        hours: Some(3.0),
        last_seen_at: None,
        reason: "the whole node is silent".to_owned(),
    };
    let installed = |gpus| Totals {
        gpus_installed: Some(gpus),
        capacity_source: Some("inventory".to_owned()),
        ..readings()
    };
    let mut data = report(installed(17.0), Some(Lack::Ledger));
    data.hardware = (0..9).map(|index| gpu(index, "lost")).collect();
    data.hardware.push(gpu(0, "state"));
    data.hardware.push(gpu(9, "hot"));
    let told = healthy(&data, EN);
    assert_eq!(told.figure, "9 GPUs lost");
    let first = "9 GPUs of 17 are lost, and 1 more needs a look. No job can be judged";
    assert!(told.sentence.starts_with(first), "{}", told.sentence);
    let told = healthy(&data, ZH);
    assert_eq!(told.figure, "9 块失联");
    assert!(told.sentence.starts_with("17 块中有 9 块 GPU 失联，另有 1 块需要检查。"), "{told:?}");
    assert!(used(&data, EN).sentence.contains("What jobs held of 17 GPUs is not known"));
    data.hardware = vec![gpu(9, "hot")];
    assert_eq!(healthy(&data, EN).figure, "1 GPU to look at");
    data.hardware.clear();
    assert_eq!(healthy(&data, EN).figure, "unknown");
}

#[test]
fn the_name_of_who_held_most_is_the_answer_to_by_whom() {
    // Breaks if a share stands where a name is asked for.
    let mut data = report(Totals { jobs: Some(4), ..Totals::default() }, None);
    data.teams = vec![holder("nlp", 75.0), holder("ads", 25.0)];
    let told = by_whom(&data, EN);
    assert_eq!(told.figure, "nlp");
    assert_eq!(told.sentence, "75 % of all that was held, 75 GPU-hours, among 2 teams and 4 jobs.");
    assert_eq!(by_whom(&data, ZH).figure, "nlp");
}

#[test]
fn a_forecast_that_is_worth_little_is_not_switched_by() {
    // Breaks if the decision sends a reader after a forecast that the same page calls bad.
    let mut data = report(Totals::default(), None);
    data.decision.action = Action::Scale;
    data.decision.planned = true;
    let told = |tested: Option<Tested>| {
        let mut data = data.clone();
        data.outlook.tested = tested;
        [EN, ZH].map(|language| decision(&data, language).sentence)
    };
    let tested = |lost: bool, skill: f64, covered: f64| Tested {
        basis: if lost { Basis::SeasonalNaive } else { Basis::WeeklyElasticNet },
        lost: lost.then_some(Basis::WeeklyElasticNet),
        plain: None,
        origins: Some(8),
        skill_ratio: Some(skill),
        no_skill: None,
        coverage_80_ratio: Some(covered),
    };
    let [en, _] = told(Some(tested(false, 0.3, 0.9)));
    assert!(
        en.ends_with("swings with the hours: switch GPUs on and off with the forecast."),
        "{en}"
    );
    let [en, zh] = told(Some(tested(true, -0.9, 0.67)));
    for told in [
        "the model does worse than the seasonal naive (skill -90 %), and 67 % of outcomes lay inside the 80 % interval",
        "Do not switch by it alone",
        "headroom",
    ] {
        assert!(en.contains(told), "{en}");
    }
    assert!(!en.contains("with the forecast."), "{en}");
    assert!(zh.contains("-90 %") && zh.contains("67 %") && zh.contains("余量"), "{zh}");
    let [en, _] = told(Some(tested(false, 0.3, 0.55)));
    assert!(en.contains("55 % of outcomes lay inside the 80 % interval"), "{en}");
}

#[test]
fn the_last_hours_are_not_called_a_day() {
    let mut data = report(Totals::default(), None);
    let at = chrono::DateTime::UNIX_EPOCH;
    data.outlook = Outlook {
        history: vec![super::super::data::HourDemand { at: at.fixed_offset(), gpus: 8.0 }; 2],
        ..Outlook::default()
    };
    data.decision.demand_gpus_last_day = Some(8.0);
    let told = decision(&data, EN).sentence;
    assert!(told.contains("over the last 2 hours was 8 GPUs on average."), "{told}");
    assert!(decision(&data, ZH).sentence.contains("最近 2 小时平均需求为 8 块 GPU"));
}
