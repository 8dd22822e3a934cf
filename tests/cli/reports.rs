//! The report as a page that can be handed over.

use super::fleet::{ask, fleet, words};

#[test]
fn the_page_is_self_contained_and_small() {
    // `demo` wrote it on its way.
    fleet();
    let page = std::fs::read_to_string(fleet().folder.join("demo.html")).unwrap();
    assert!(page.len() < 1_000_000 && page.len() > 20_000, "{} bytes", page.len());
    assert!(!page.contains("<script") && !page.contains("<link"));
    let outside = page.matches("http").count() - page.matches("http://www.w3.org/").count();
    assert_eq!(outside, 0, "names something outside");
    for part in ["How much is used?", "By whom?", "Is it healthy?", "Decision", "Held while idle"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.matches("<svg").count() >= 5);
}

#[test]
fn the_report_reads_in_chinese_without_english_left() {
    let text = ask(&words("report --lang zh --format md --output -")).stdout;
    insta::assert_snapshot!(text);
    for english in ["GPU-hours", "capacity", "seasonal", "held", "weeks"] {
        assert!(!text.contains(english), "`{english}` in\n{text}");
    }
}

#[test]
fn a_period_in_local_dates_gives_the_figures_as_json() {
    let args = words("report --from 2026-03-02 --to 2026-03-09 --format json --output -");
    let text = ask(&args).stdout;
    let data: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(data["from"], "2026-03-02T00:00:00+08:00");
    assert_eq!(data["days"].as_array().unwrap().len(), 7);
    let number = |name: &str| data["totals"][name].as_f64().unwrap();
    // Held, free and down are what is installed: 16 GPUs for 168 h.
    assert!((number("gpu_hours_installed") - 16.0 * 168.0).abs() < 1e-6);
    let parts = number("gpu_hours_held") + number("gpu_hours_free") + number("gpu_hours_down");
    assert!((parts - number("gpu_hours_installed")).abs() < 1e-6, "{parts}");
    let teams = data["teams"].as_array().unwrap();
    let held: f64 = teams.iter().map(|team| team["gpu_hours_held"].as_f64().unwrap()).sum();
    assert!((held - number("gpu_hours_held")).abs() < 1e-6);
}
