//! The configuration of the made-up site.

use std::fmt::Write as _;

use super::local::{holidays, makeup_days};
use super::{CLUSTER, Options};

/// Text of a `loadline.toml`: calendar with holidays and make-up days, and the rules that tell
/// workloads by job name.
#[must_use]
pub fn config_toml(options: &Options) -> String {
    let mut text = format!("# The made-up fleet `{CLUSTER}`.\n\n[calendar]\n");
    let holiday = |(from, until, name): &super::local::Holiday| {
        format!("  {{ date = \"{from}\", until = \"{until}\", name = \"{name}\" }},\n")
    };
    let makeup = |day: &chrono::NaiveDate| format!("  {{ date = \"{day}\", like = \"fri\" }},\n");
    writeln!(text, "timezone = \"{}\"", options.zone).expect("a String takes any text");
    text.push_str("working = \"mon-fri 09:00-19:00\"\nholidays = [\n");
    text.extend(holidays(options).iter().map(holiday));
    text.push_str("]\nmakeup_days = [\n");
    text.extend(makeup_days(options).iter().map(makeup));
    text.push_str("]\n");
    for (pattern, workload) in [
        ("train-*", "train"),
        ("ft-*", "finetune"),
        ("serve-*", "inference"),
        ("prep-*", "dataprep"),
        ("jupyter*", "interactive"),
        ("vscode*", "interactive"),
    ] {
        let rule = format!(
            "\n[[workload]]\nmatch = {{ name = \"{pattern}\" }}\nworkload = \"{workload}\"\n"
        );
        text.push_str(&rule);
    }
    text
}
