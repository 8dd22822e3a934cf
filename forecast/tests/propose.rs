#![allow(clippy::unwrap_used, missing_docs)]

//! Proposals on made-up jobs: what must be told, what must not leak, and what must be doubted.

use loadline_forecast::{
    DividedBy, ErrorKind, LABELLED_MIN, LabelledJob, MEASUREMENTS, MEASUREMENTS_COUNT, Proposer,
    Signature,
};

/// Numbers in 0 to 1 that look like chance and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1_u32 << 31)
    }
}

/// Utilisation, memory and hours of a job; all else was not read.
fn signature(util: f64, memory: f64, hours: f64) -> Signature {
    let mut values = [None; MEASUREMENTS_COUNT];
    for (name, value) in
        [("util_mean_ratio", util), ("mem_used_ratio", memory), ("hours_run", hours)]
    {
        let at = MEASUREMENTS.iter().position(|known| known.name == name).unwrap();
        values[at] = Some(value);
    }
    Signature::new(values)
}

/// Jobs of 12 users: trainings near 90 %, services near 30 % with much memory, notebooks near 5 %.
fn jobs(each: usize) -> Vec<LabelledJob> {
    let mut dice = Dice(7);
    let mut jobs = Vec::new();
    for n in 0..each * 3 {
        let (workload, util, memory, hours) = match n % 3 {
            0 => ("train", 0.9, 0.7, 10.0),
            1 => ("inference", 0.3, 0.9, 60.0),
            _ => ("interactive", 0.05, 0.1, 2.0),
        };
        let near = |middle: f64, dice: &mut Dice| middle + 0.1 * (dice.roll() - 0.5);
        jobs.push(LabelledJob {
            job: format!("job{n}"),
            user: format!("user{}", (n * 7) % 12),
            workload: workload.to_owned(),
            signature: signature(
                near(util, &mut dice),
                near(memory, &mut dice),
                hours * (0.5 + dice.roll()),
            ),
        });
    }
    jobs
}

#[test]
fn twenty_jobs_of_two_workloads_are_enough_and_fewer_are_refused_in_words() {
    // Breaks if a limit moves, or a refusal does not say what is missing.
    let of = |train: usize, inference: usize| -> Vec<LabelledJob> {
        let all = jobs(LABELLED_MIN + 1);
        let some = |name: &str, count| {
            all.iter().filter(|job| job.workload == name).take(count).cloned().collect::<Vec<_>>()
        };
        [some("train", train), some("inference", inference)].concat()
    };
    assert!(Proposer::learn(&of(LABELLED_MIN, LABELLED_MIN)).is_ok());
    let refused = Proposer::learn(&of(LABELLED_MIN, LABELLED_MIN - 1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert_eq!(
        refused.to_string(),
        "cannot propose workloads: 1 of 2 workloads have 20 labelled jobs with enough readings"
    );
    assert_eq!(refused.detail().unwrap(), "`inference` has 19, `train` has 20; 20 each are needed");
    assert!(refused.hint().unwrap().contains("[[workload]]"));
    let none = Proposer::learn(&[]).unwrap_err();
    assert!(none.detail().unwrap().starts_with("no labelled job has enough readings"));
    assert!(none.hint().unwrap().contains("import readings"));
    // A third workload of 19 is not proposed, and stands in nobody's way.
    let mut three = jobs(LABELLED_MIN);
    let last = three.iter().rposition(|job| job.workload == "interactive").unwrap();
    three.remove(last);
    assert_eq!(Proposer::learn(&three).unwrap().workloads(), ["inference", "train"]);
}

#[test]
fn what_is_alike_is_proposed_with_its_reasons_and_what_is_strange_resembles_none() {
    // Breaks if a clear job is missed, the reason is not what tells it, or anything is certain.
    let proposer = Proposer::learn(&jobs(40)).unwrap();
    assert_eq!(proposer.divided_by(), DividedBy::User);
    assert!(proposer.right_ratio() > 0.97, "{}", proposer.right_ratio());
    assert!((proposer.most_frequent_ratio() - 1.0 / 3.0).abs() < 1e-9);
    let train = proposer.propose(&signature(0.88, 0.72, 9.0));
    assert_eq!(train.workload, "train");
    assert!(train.sure_ratio > 0.9 && train.sure_ratio < 1.0, "{train:?}");
    assert!(train.runner_up_ratio < 0.1 && train.runner_up != "train");
    assert!(train.distance_ratio <= 1.0, "{train:?}");
    let reason = &train.reasons[0];
    assert_eq!(MEASUREMENTS[reason.measurement].name, "util_mean_ratio");
    assert!(reason.usual.0 > 0.8 && reason.usual.1 < 1.0 && train.reasons.len() <= 3);
    // Busy and without memory, for a thousand hours: none of the labelled jobs is near.
    let strange = proposer.propose(&signature(0.5, 0.0, 1000.0));
    assert!(strange.distance_ratio > 1.0, "{strange:?}");
    let bands = proposer.reliability();
    assert_eq!(bands.iter().map(|band| band.jobs).sum::<usize>(), 120);
    assert!(bands.iter().all(|band| band.right <= band.jobs));
}

#[test]
fn the_label_of_a_held_out_job_changes_nothing_of_its_own_shares() {
    // Breaks if a job is judged by a model or a calibration that its label had a part in.
    let all = jobs(30);
    let of = |proposer: &Proposer, job: &str| {
        proposer.held_out().iter().find(|held| held.job == job).unwrap().shares.clone()
    };
    let honest = Proposer::learn(&all).unwrap();
    for at in [0, 31, 62, 89] {
        let mut lied = all.clone();
        lied[at].workload =
            if all[at].workload == "train" { "inference" } else { "train" }.to_owned();
        let told = Proposer::learn(&lied).unwrap();
        assert_eq!(of(&told, &all[at].job), of(&honest, &all[at].job), "job {at}");
        // The others do learn from it.
        assert!(all.iter().any(|job| of(&told, &job.job) != of(&honest, &job.job)));
    }
}

#[test]
fn labels_dealt_out_by_chance_are_told_no_better_than_by_chance() {
    // Breaks if something beside the signature tells the label, or noise is told surely.
    let mut dice = Dice(11);
    let mut dealt = jobs(60);
    for job in &mut dealt {
        let names = ["train", "inference", "interactive"];
        job.workload = names[((dice.roll() * 3.0) as usize).min(2)].to_owned();
    }
    let proposer = Proposer::learn(&dealt).unwrap();
    assert!(proposer.right_ratio() < proposer.most_frequent_ratio() + 0.1);
    let said: f64 = proposer.held_out().iter().map(|held| held.sure_ratio).sum();
    let said = said / proposer.held_out().len() as f64;
    assert!((said - proposer.right_ratio()).abs() < 0.15, "{said} {}", proposer.right_ratio());
    assert!(proposer.propose(&signature(0.9, 0.7, 10.0)).sure_ratio < 0.6);
}

#[test]
fn sureness_is_how_often_it_is_right_where_half_of_two_workloads_look_alike() {
    // Breaks if shares are what the fit says and not what was found: half are told only by chance.
    let mut dice = Dice(5);
    let alike: Vec<LabelledJob> = (0..400)
        .map(|n| {
            let is_train = n % 2 == 0;
            let util = if dice.roll() < 0.5 {
                0.5
            } else if is_train {
                0.9
            } else {
                0.1
            };
            LabelledJob {
                job: format!("job{n}"),
                user: format!("user{}", n % 13),
                workload: if is_train { "train" } else { "dataprep" }.to_owned(),
                signature: signature(util + 0.05 * dice.roll(), 0.5, 1.0),
            }
        })
        .collect();
    let proposer = Proposer::learn(&alike).unwrap();
    assert!((proposer.right_ratio() - 0.75).abs() < 0.07, "{}", proposer.right_ratio());
    for band in proposer.reliability().iter().filter(|band| band.jobs >= 30) {
        let found = band.right as f64 / band.jobs as f64;
        assert!((found - band.sure_mean_ratio.unwrap()).abs() < 0.12, "{band:?}");
    }
    assert!(proposer.propose(&signature(0.52, 0.5, 1.0)).sure_ratio < 0.65);
    assert!(proposer.propose(&signature(0.92, 0.5, 1.0)).sure_ratio > 0.85);
}

#[test]
fn the_order_of_the_jobs_does_not_matter() {
    // Breaks if two runs over one store differ.
    let forwards = jobs(25);
    let backwards: Vec<LabelledJob> = forwards.iter().rev().cloned().collect();
    let (one, other) = (Proposer::learn(&forwards).unwrap(), Proposer::learn(&backwards).unwrap());
    assert_eq!(one.held_out(), other.held_out());
    let asked = signature(0.6, 0.8, 20.0);
    assert_eq!(one.propose(&asked), other.propose(&asked));
}
