//! Job arrays: tasks that wait share one row, whose id shows which they are, as `14_[1-10:2%4]`.

/// Tasks of the row with this id that may run at once: as many as wait, or the limit after `%`.
/// `None` where the id is of one task or job.
///
/// # Source
/// `sacct(1)` and `squeue(1)`; Slurm cuts a long list off with `...`: what is told counts.
pub(super) fn tasks(shown_id: &str) -> Option<u64> {
    let (_, list) = shown_id.split_once("_[")?;
    let list = list.strip_suffix(']').unwrap_or(list);
    let (list, limit) = match list.split_once('%') {
        Some((list, limit)) => (list, limit.parse().ok().filter(|limit| *limit > 0)),
        None => (list, None),
    };
    let told: u64 = list.split(',').filter_map(of_range).fold(0, u64::saturating_add);
    let told = told.max(1);
    Some(limit.map_or(told, |limit: u64| told.min(limit)))
}

/// Tasks of `5`, `1-10` or `1-10:2`.
fn of_range(text: &str) -> Option<u64> {
    let (range, step) = text.trim().split_once(':').unwrap_or((text.trim(), "1"));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let step: u64 = step.parse().ok().filter(|step| *step > 0)?;
    (last.checked_sub(first)? / step).checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tasks_that_wait_are_counted() {
        for (id, told) in [
            ("14_[1-2]", Some(2)),
            ("14_[1,3,5-9]", Some(7)),
            ("14_[0-10:5]", Some(3)),
            ("14_[1-100%4]", Some(4)),
            ("14_[1-2%4]", Some(2)),
            ("14_[1-3,7,...", Some(4)),
            ("14_[...]", Some(1)),
            ("14_[9-1]", Some(1)),
            ("14_[0-18446744073709551615]", Some(1)),
            ("14_2", None),
            ("14", None),
        ] {
            assert_eq!(tasks(id), told, "{id}");
        }
    }
}
