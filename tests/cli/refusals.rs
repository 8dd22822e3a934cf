//! What goes wrong is said with the thing, the measure, the limit and the way out.

use super::fleet::{run_in, try_ask, words};

#[test]
fn mistakes_are_told_with_the_way_out() {
    let mut told = String::new();
    for args in [
        "query gpu_hour",
        "query gpu_hours --param bi=team",
        "query gpu_hours --param from=April",
        "query job_profile",
        "health no-such-job",
        "baseline --workload no-such-workload",
        "plan --pool no-such-pool",
        "plan --quantile 2",
        "scale --lead-time 90m",
        "scale --min 9 --max 3",
        "forecast --step 5h",
        "report --from 2030-01-01",
        "report --from yesterday",
        "export no_such_view --to out/none",
        "export gpus --to out/none2 --partition-by no_such_column",
        "sql SELEC",
    ] {
        let run = try_ask(&words(args), "");
        assert!(matches!(run.code, Some(1 | 2)), "{args}: {:?}", run.code);
        assert!(run.stdout.is_empty(), "{args}: {}", run.stdout);
        told.push_str(&format!("$ loadline {args}   [{}]\n{}\n", run.code.unwrap(), run.stderr));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_store_that_holds_nothing_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for args in ["query gpu_hours", "report", "plan", "forecast", "sql SELECT"] {
        let run = run_in(folder.path(), &words(args), "");
        assert_eq!(run.code, Some(1), "{args}");
        assert!(run.stderr.contains("holds nothing yet"), "{args}: {}", run.stderr);
        assert!(run.stderr.contains("loadline import"), "{args}: {}", run.stderr);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn help_has_examples() {
    for command in [
        "demo", "import", "sql", "query", "export", "baseline", "health", "forecast", "plan",
        "scale", "report",
    ] {
        let help = run_in(std::path::Path::new("."), &[command, "--help"], "").stdout;
        assert!(help.contains("Example"), "{command}");
    }
}
