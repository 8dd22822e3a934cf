use super::*;

const TEXT: &str = "-- How many?\n-- parameters: $from timestamp, $least int64 = 3,\n\
    --     $team text\n-- columns: n int64\nSELECT $least AS \"$n\", '$team' -- $from\n";

fn values(given: &[(&str, &str)]) -> Result<Vec<(String, ScalarValue)>, EngineError> {
    let given = given.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let span = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH);
    let query = NamedQuery::parse("q", TEXT).unwrap();
    super::values(&query, &given.collect(), span, &Calendar::default())
}

#[test]
fn every_header_of_the_program_reads() {
    // Breaks if a query file is added whose header does not say what it is.
    let all = queries().unwrap();
    assert!(all.len() > 10);
    assert!(all.iter().all(|query| !query.purpose().is_empty()));
}

#[test]
fn a_parameter_that_is_missing_or_wrong_is_named() {
    let missing = values(&[]).unwrap_err();
    assert_eq!(missing.to_string(), "query `q` needs `$team`, which was not given");
    let declared = "parameters are $from timestamp, $least int64 = 3, $team text";
    assert_eq!(missing.detail().as_deref(), Some(declared));
    assert_eq!(missing.hint().as_deref(), Some("add `--param team=TEXT`"));
    let wrong = values(&[("team", "a"), ("least", "many")]).unwrap_err();
    assert!(wrong.to_string().starts_with("cannot use `many` for `$least` of query `q`"));
    let unknown = values(&[("teem", "a")]).unwrap_err();
    assert_eq!(unknown.to_string(), "query `q` has no parameter `$teem`");
    assert_eq!(unknown.detail().as_deref(), Some(declared));
    assert_eq!(unknown.hint().as_deref(), Some("did you mean `$team`?"));
    assert_eq!(values(&[("team", "a")]).unwrap().len(), 3);
}

#[test]
fn only_what_is_no_text_and_no_comment_is_replaced() {
    // Breaks if a `$` inside quotes or a comment becomes a value, or a quote ends the text.
    let bound = bind(
        "SELECT $a + '$a' -- $a\n, \"$a\", $ab - 1",
        &[
            ("a".into(), ScalarValue::Utf8(Some("it's".into()))),
            ("ab".into(), ScalarValue::Int64(Some(2))),
        ],
    );
    assert_eq!(bound.unwrap(), "SELECT 'it''s' + '$a' -- $a\n, \"$a\", 2 - 1");
    assert!(bind("SELECT $b", &[]).unwrap_err().to_string().contains("`$b` is not declared"));
}

#[test]
fn a_file_of_the_folder_stands_in_for_the_program_s_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("queue.sql"), "-- Ours.\nSELECT 1").unwrap();
    std::fs::write(folder.path().join("mine.sql"), "-- Mine.\nSELECT 2").unwrap();
    let (all, bad) = queries_with(folder.path()).unwrap();
    assert!(bad.is_empty(), "{bad:?}");
    assert_eq!(all.len(), queries().unwrap().len() + 1);
    assert_eq!(find_in(all.clone(), "queue").unwrap().purpose(), "Ours.");
    assert_eq!(find_in(all, "mine").unwrap().purpose(), "Mine.");
    assert!(queries_with(&folder.path().join("absent")).is_err());
}

#[test]
fn a_value_that_is_none_of_the_choices_is_refused() {
    // Breaks if a slip in a value answers with an empty table, or a bin that SQL takes is refused.
    let text = "-- How many?\n-- parameters: $by text = 'team' of team|user, \
        $per text = 'day' of bin|all, $step text of bin\n-- columns: n int64\nSELECT 1\n";
    let query = NamedQuery::parse("q", text).unwrap();
    let bins = "hour|6 hours|day|week|month|...";
    let declared = format!(
        "$by text = team of team|user, $per text = day of {bins}|all, $step text of {bins}"
    );
    assert_eq!(query.declared(), declared);
    let ask = |given: &[(&str, &str)]| {
        let given = given.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let span = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH);
        super::values(&query, &given.collect(), span, &Calendar::default())
    };
    assert!(ask(&[("step", "hour")]).is_ok());
    assert!(ask(&[("step", "15 minutes"), ("per", "all"), ("by", "user")]).is_ok());
    // Each has a value of its own here: one does not stand in for the other.
    assert!(ask(&[("per", "all")]).is_err());
    let refused = |given: &[(&str, &str)]| ask(given).unwrap_err().to_string();
    assert_eq!(
        refused(&[("step", "hour"), ("by", "foo")]),
        "cannot use `foo` for `$by` of query `q`: must be one of team, user"
    );
    assert!(refused(&[("step", "fortnight")]).ends_with("`week`, `month`"));
    assert!(refused(&[("step", "all")]).contains("unknown bin `all`"));
    assert!(refused(&[("step", "bin")]).contains("unknown bin `bin`"));
    assert!(refused(&[("step", "day"), ("per", "bin")]).ends_with("`month`, or `all`"));
    let parse = |text: &str| {
        let text = format!("-- How many?\n-- parameters: {text}\nSELECT 1\n");
        NamedQuery::parse("q", &text).map_err(|error| error.to_string())
    };
    assert!(parse("$by text = 'none' of team|user").unwrap_err().contains("must be one of"));
    assert!(parse("$least int64 = 3 of 3|4").unwrap_err().contains("is no text"));
    assert!(parse("$of text = 'a of b'").is_ok());
}

#[test]
fn the_length_of_a_bin_has_one_name_and_takes_the_old_one() {
    // Breaks if `step` here is `per` there, or a script that says `per` is turned away.
    let shared: Vec<String> = queries().unwrap().iter().map(NamedQuery::declared).collect();
    assert!(shared.iter().all(|declared| !declared.contains("$per ")), "{shared:?}");
    let query = find("gpu_hours").unwrap();
    let span = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH);
    let ask = |name: &str| {
        let given = [(name.to_owned(), "week".to_owned())].into();
        let values = super::values(&query, &given, span, &Calendar::default()).unwrap();
        values.into_iter().find(|(name, _)| name == "step").unwrap().1
    };
    assert_eq!(ask("step"), ScalarValue::Utf8(Some("week".to_owned())));
    assert_eq!(ask("per"), ask("step"));
}
