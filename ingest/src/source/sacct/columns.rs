//! Which field of a line is which: headers, delimiters, and lines with a field too many.

use std::borrow::Cow;

use super::state::known_state;

/// A column that is used, under any of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    JobId,
    JobIdRaw,
    Name,
    Cluster,
    Partition,
    Account,
    User,
    UserId,
    Submit,
    Eligible,
    Start,
    End,
    Elapsed,
    ElapsedRaw,
    Suspended,
    State,
    ExitCode,
    WaitStatus,
    ReqTres,
    AllocTres,
    ReqGres,
    UsedGres,
    TresPerJob,
    TresPerNode,
    TresPerTask,
    Tasks,
    Nodes,
    NodeList,
    TimeLimit,
    TimeLimitMinutes,
    Priority,
    Restarts,
    SubmitLine,
    Comment,
    WorkDir,
    Qos,
    Group,
    WcKey,
    Constraints,
    Reservation,
    JobType,
}

/// Names in lower case; `time_submit` and its like are slurmdb's own, `submit_time` and its like
/// those of `squeue`.
const NAMES: &[(&str, Column)] = &[
    ("jobid", Column::JobId),
    ("jobidraw", Column::JobIdRaw),
    ("id_job", Column::JobIdRaw),
    ("jobname", Column::Name),
    ("job_name", Column::Name),
    ("name", Column::Name),
    ("cluster", Column::Cluster),
    ("cluster_name", Column::Cluster),
    ("partition", Column::Partition),
    ("account", Column::Account),
    ("acct", Column::Account),
    ("user", Column::User),
    ("user_name", Column::User),
    ("uid", Column::UserId),
    ("id_user", Column::UserId),
    ("submit", Column::Submit),
    ("submit_time", Column::Submit),
    ("time_submit", Column::Submit),
    ("eligible", Column::Eligible),
    ("eligible_time", Column::Eligible),
    ("time_eligible", Column::Eligible),
    ("start", Column::Start),
    ("start_time", Column::Start),
    ("time_start", Column::Start),
    ("end", Column::End),
    ("end_time", Column::End),
    ("time_end", Column::End),
    ("elapsed", Column::Elapsed),
    ("elapsedraw", Column::ElapsedRaw),
    ("suspended", Column::Suspended),
    ("time_suspended", Column::Suspended),
    ("state", Column::State),
    ("st", Column::State),
    ("exitcode", Column::ExitCode),
    ("exit_code", Column::WaitStatus),
    ("reqtres", Column::ReqTres),
    ("tres_req", Column::ReqTres),
    ("alloctres", Column::AllocTres),
    ("tres_alloc", Column::AllocTres),
    ("reqgres", Column::ReqGres),
    ("gres_req", Column::ReqGres),
    ("allocgres", Column::UsedGres),
    ("gresused", Column::UsedGres),
    ("gres_used", Column::UsedGres),
    ("gres_alloc", Column::UsedGres),
    ("tresperjob", Column::TresPerJob),
    ("tres_per_job", Column::TresPerJob),
    ("trespernode", Column::TresPerNode),
    ("tres_per_node", Column::TresPerNode),
    ("trespertask", Column::TresPerTask),
    ("tres_per_task", Column::TresPerTask),
    ("ntasks", Column::Tasks),
    ("nnodes", Column::Nodes),
    ("nodes", Column::Nodes),
    ("nodes_alloc", Column::Nodes),
    ("nodelist", Column::NodeList),
    ("timelimit", Column::TimeLimit),
    ("time_limit", Column::TimeLimit),
    ("timelimitraw", Column::TimeLimitMinutes),
    ("priority", Column::Priority),
    ("restarts", Column::Restarts),
    ("restart_cnt", Column::Restarts),
    ("submitline", Column::SubmitLine),
    ("submit_line", Column::SubmitLine),
    ("comment", Column::Comment),
    ("workdir", Column::WorkDir),
    ("work_dir", Column::WorkDir),
    ("qos", Column::Qos),
    ("id_qos", Column::Qos),
    ("group", Column::Group),
    ("id_group", Column::Group),
    ("wckey", Column::WcKey),
    ("constraints", Column::Constraints),
    ("reservation", Column::Reservation),
    ("job_type", Column::JobType),
];

/// Columns that hold whatever a user typed, the delimiter included; the likeliest first.
const FREE_TEXT: [Column; 4] = [Column::Name, Column::SubmitLine, Column::Comment, Column::WorkDir];

fn column_named(name: &str) -> Option<Column> {
    // `JobName%30` asks sacct for a width.
    let name = name.trim().trim_matches('"').split('%').next().unwrap_or("");
    let name = name.to_lowercase().replace('-', "_");
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, column)| *column)
}

/// Where each column stands in a line, and how a line is split.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    delimiter: String,
    names: Vec<String>,
    columns: Vec<Option<Column>>,
    quoted: bool,
    trailing: bool,
    pub(crate) slurmdb: bool,
}

impl Layout {
    /// The layout of a header line, or `None` where `line` is no header.
    pub(crate) fn of_header(line: &str, delimiter: Option<&str>) -> Option<Self> {
        let guesses = ["|", "\t", ";", ","];
        let candidates = delimiter.map_or(guesses.to_vec(), |given| vec![given]);
        candidates.into_iter().find_map(|delimiter| {
            let mut names: Vec<String> =
                line.split(delimiter).map(|name| name.trim().trim_matches('"').into()).collect();
            let trailing = names.len() > 1 && names.last().is_some_and(String::is_empty);
            if trailing {
                names.pop();
            }
            let layout = Self::of_names(&names, delimiter, trailing);
            layout.has_job_and_time().then_some(layout)
        })
    }

    /// The layout of a file without header, its columns as given to `--columns`.
    pub(crate) fn of_columns(columns: &[String], delimiter: Option<&str>) -> Self {
        let names: Vec<String> = columns
            .iter()
            .flat_map(|text| text.split([',', '|']))
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        Self::of_names(&names, delimiter.unwrap_or("|"), false)
    }

    fn of_names(names: &[String], delimiter: &str, trailing: bool) -> Self {
        let columns: Vec<_> = names.iter().map(|name| column_named(name)).collect();
        let slurmdb =
            names.iter().any(|n| n.eq_ignore_ascii_case("id_job") || n.starts_with("time_"));
        Self {
            delimiter: delimiter.to_owned(),
            names: names.to_vec(),
            columns,
            // sacct quotes nothing: a quote is part of the name. Exports of the database do.
            quoted: slurmdb || delimiter == ",",
            trailing,
            slurmdb,
        }
    }

    pub(crate) fn has_job_and_time(&self) -> bool {
        let has = |column| self.position(column).is_some();
        (has(Column::JobId) || has(Column::JobIdRaw))
            && (has(Column::Submit) || has(Column::Start) || has(Column::State))
    }

    pub(crate) fn position(&self, column: Column) -> Option<usize> {
        self.columns.iter().position(|found| *found == Some(column))
    }

    /// The field called `name`, whether or not it is one of ours.
    pub(crate) fn position_named(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|found| found.eq_ignore_ascii_case(name))
    }

    /// Whether `line` repeats the header.
    pub(crate) fn repeated_by(&self, line: &str) -> bool {
        let mut names = line.split(&*self.delimiter).map(|n| n.trim().trim_matches('"'));
        self.names.iter().all(|name| names.next().is_some_and(|n| n.eq_ignore_ascii_case(name)))
    }

    /// The fields of `line`, one for each column.
    ///
    /// # Errors
    /// How many fields there are and how many there should be. A field too many goes back into the
    /// column whose text may hold the delimiter, if the rest of the line then makes sense.
    pub(crate) fn fields<'a>(&self, line: &'a str) -> Result<Vec<Cow<'a, str>>, String> {
        let mut fields = split(line, &self.delimiter, self.quoted);
        let width = self.columns.len();
        let ends_blank = fields.last().is_some_and(|field| field.is_empty());
        if ends_blank && (self.trailing || fields.len() == width + 1) && fields.len() > width {
            fields.pop();
        }
        if fields.len() > width {
            return self.joined(&fields);
        }
        if fields.len() < width {
            return Err(format!("{} fields where {width} were expected", fields.len()));
        }
        Ok(fields)
    }

    fn joined<'a>(&self, fields: &[Cow<'a, str>]) -> Result<Vec<Cow<'a, str>>, String> {
        let (width, extra) = (self.columns.len(), fields.len() - self.columns.len());
        let join_at = |at: usize| {
            let mut joined = fields[..at].to_vec();
            joined.push(Cow::Owned(fields[at..=at + extra].join(&self.delimiter)));
            joined.extend_from_slice(&fields[at + extra + 1..]);
            joined
        };
        let makes_sense = |fields: &Vec<Cow<'a, str>>| self.makes_sense(fields);
        let places = FREE_TEXT.iter().filter_map(|column| self.position(*column));
        places.map(join_at).find(makes_sense).ok_or_else(|| {
            format!(
                "{} fields where {width} were expected, and no column whose text may hold `{}` \
                 explains them",
                fields.len(),
                self.delimiter
            )
        })
    }

    fn makes_sense(&self, fields: &[Cow<'_, str>]) -> bool {
        let at = |column| self.position(column).map(|at| fields[at].trim());
        let timely = |text: &str| {
            matches!(text, "" | "Unknown" | "None")
                || text.starts_with(|c: char| c.is_ascii_digit())
        };
        let times = [Column::Submit, Column::Eligible, Column::Start, Column::End];
        at(Column::State).is_none_or(known_state)
            && times.into_iter().all(|column| at(column).is_none_or(timely))
    }
}

/// Fields between delimiters; with `quoted`, double quotes protect them as in CSV.
fn split<'a>(line: &'a str, delimiter: &str, quoted: bool) -> Vec<Cow<'a, str>> {
    if !quoted || !line.contains('"') {
        return line.split(delimiter).map(Cow::Borrowed).collect();
    }
    let (mut fields, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let (field, after) = match text.strip_prefix('"') {
            Some(inner) => quoted_field(inner, delimiter),
            None => match text.split_once(delimiter) {
                Some((field, after)) => (Cow::Borrowed(field), Some(after)),
                None => (Cow::Borrowed(text), None),
            },
        };
        fields.push(field);
        rest = after;
    }
    fields
}

fn quoted_field<'a>(inner: &'a str, delimiter: &str) -> (Cow<'a, str>, Option<&'a str>) {
    let mut text = String::new();
    let mut rest = inner;
    loop {
        let Some((before, after)) = rest.split_once('"') else {
            text.push_str(rest);
            return (Cow::Owned(text), None);
        };
        text.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                text.push('"');
                rest = more;
            }
            None => return (Cow::Owned(text), after.split_once(delimiter).map(|(_, next)| next)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(header: &str, line: &str) -> Result<Vec<String>, String> {
        let layout = Layout::of_header(header, None).unwrap();
        Ok(layout.fields(line)?.into_iter().map(Cow::into_owned).collect())
    }

    #[test]
    fn a_delimiter_in_a_name_stays_in_the_name() {
        // Breaks when a job called `a|b` shifts every later column, or is lost.
        let last = fields("JobID|State|JobName", "1|FAILED|a|b|").unwrap();
        assert_eq!(last, ["1", "FAILED", "a|b|"]);
        let middle = fields("JobID|JobName|State|Start", "1|a|b|COMPLETED|Unknown").unwrap();
        assert_eq!(middle, ["1", "a|b", "COMPLETED", "Unknown"]);
        // Two free texts: only the one that leaves a state in place explains the line.
        let comment = fields("JobID|JobName|State|Comment", "1|a|COMPLETED|x|y").unwrap();
        assert_eq!(comment, ["1", "a", "COMPLETED", "x|y"]);
        assert!(fields("JobID|State|User", "1|FAILED|u|v").unwrap_err().starts_with("4 fields"));
        assert!(fields("JobID|State|JobName", "1|FAI").unwrap_err().starts_with("2 fields"));
    }

    #[test]
    fn a_trailing_delimiter_is_no_field() {
        // Breaks on `sacct --parsable`, whose lines and header end in the delimiter.
        assert_eq!(fields("JobID|State|", "1|FAILED|").unwrap(), ["1", "FAILED"]);
        let layout = Layout::of_columns(&["JobID,State".into()], None);
        assert_eq!(layout.fields("1|FAILED|").unwrap().len(), 2);
    }

    #[test]
    fn delimiters_are_told_from_the_header_and_csv_quotes_count() {
        // Breaks when a quoted list of resources is cut at its commas.
        assert_eq!(fields("JobID;State", "1;FAILED").unwrap(), ["1", "FAILED"]);
        let got = fields("id_job,state,tres_alloc", "7.0,3,\"1=20,2=\"\"x\"\"\"").unwrap();
        assert_eq!(got, ["7.0", "3", "1=20,2=\"x\""]);
        assert_eq!(fields("JobID|State|JobName", "1|FAILED|\"x").unwrap()[2], "\"x");
        assert!(Layout::of_header("hello|world", None).is_none());
    }
}
