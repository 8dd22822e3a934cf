//! Local times of readings through the night in which clocks go back.

use super::*;

#[test]
fn readings_in_a_doubled_hour_are_told_apart_by_their_order() {
    // Breaks when the second pass of the hour has the instants of the first, and is dropped.
    let zone = "zone = \"America/Los_Angeles\"\n";
    let pass =
        |hour: u32| (0..60).map(move |minute| format!("2026-11-01 {hour:02}:{minute:02}:00"));
    let mut text = "sampled_at,gpu_uuid,gpu_util_ratio\n".to_owned();
    for time in pass(0).chain(pass(1)).chain(pass(1)).chain(pass(2)) {
        text.push_str(&format!("{time},GPU-a,0.5\n{time},GPU-b,0.5\n"));
    }
    let out = import(Table::Samples, zone, &text);
    let mut instants = millis(&out.table(Table::Samples), "sampled_at");
    assert_eq!(instants.len(), 480);
    assert_eq!(instants[0], at("2026-11-01T07:00:00Z"));
    assert_eq!(instants[479], at("2026-11-01T10:59:00Z"));
    assert!(instants.is_sorted());
    instants.dedup();
    assert_eq!(instants.len(), 240);
    let told = &out.notices[0].text;
    assert!(told.contains("240 local times happened twice") && told.contains("order"), "{told}");
    // The mapping may say otherwise, and jobs are no stream.
    let earlier = import(Table::Samples, &format!("{zone}ambiguous = \"earlier\""), &text);
    let instants = millis(&earlier.table(Table::Samples), "sampled_at");
    assert!(!instants.is_sorted());
}
