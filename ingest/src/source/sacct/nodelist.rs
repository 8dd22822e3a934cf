//! Node lists: `cpn-f13-[01-02],gpu[3,5-7]-ib` as every node by name.

/// Nodes that one list may name; a longer one stays as written.
const NODES_MAX: usize = 20_000;

/// The nodes of `text`, comma-separated; `None` where no node was assigned.
///
/// A list that cannot be read, or names more than 20 000 nodes, stays as written. Python's
/// `['a', 'b']` is read too.
///
/// # Example
/// ```
/// use loadline_ingest::source::sacct::nodes;
///
/// assert_eq!(nodes("cpn-[01-03],gpu7"), Some("cpn-01,cpn-02,cpn-03,gpu7".into()));
/// assert_eq!(nodes("None assigned"), None);
/// ```
#[must_use]
pub fn nodes(text: &str) -> Option<String> {
    let text = text.trim();
    if matches!(text, "" | "None assigned" | "None" | "N/A" | "(null)" | "\\N" | "[]" | "Unknown") {
        return None;
    }
    if let Some(list) = text.strip_prefix("['").and_then(|rest| rest.strip_suffix("']")) {
        let names: Vec<&str> = list.split(',').map(|n| n.trim().trim_matches('\'')).collect();
        return Some(names.join(","));
    }
    Some(expand(text).map_or_else(|| text.to_owned(), |names| names.join(",")))
}

fn expand(text: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for item in split_outside_brackets(text)? {
        all.extend(expand_item(item)?);
        if all.len() > NODES_MAX {
            return None;
        }
    }
    Some(all)
}

/// `a[1-2]b[3,4]` as a1b3, a1b4, a2b3, a2b4.
fn expand_item(item: &str) -> Option<Vec<String>> {
    let Some((head, rest)) = item.split_once('[') else { return Some(vec![item.to_owned()]) };
    let (ranges, tail) = rest.split_once(']')?;
    let tails = expand_item(tail)?;
    let mut names = Vec::new();
    for range in ranges.split(',') {
        for number in numbers(range)? {
            names.extend(tails.iter().map(|tail| format!("{head}{number}{tail}")));
            if names.len() > NODES_MAX {
                return None;
            }
        }
    }
    Some(names)
}

/// `01-03` as 01, 02, 03; the width of the first stays.
fn numbers(range: &str) -> Option<Vec<String>> {
    let Some((first, last)) = range.split_once('-') else { return Some(vec![range.to_owned()]) };
    let (from, to): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    if to < from || to - from > NODES_MAX {
        return None;
    }
    let width = first.len();
    Some((from..=to).map(|number| format!("{number:0width$}")).collect())
}

fn split_outside_brackets(text: &str) -> Option<Vec<&str>> {
    let (mut items, mut start, mut open) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' if open => return None,
            '[' => open = true,
            ']' => open = false,
            ',' if !open => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    Some(items)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_become_every_node() {
        // Breaks when leading zeros go or a comma inside brackets splits the list.
        let of = |text| nodes(text).unwrap();
        assert_eq!(
            of("cpn-f13-03-[01-02],cpn-f13-04-[01-02]"),
            "cpn-f13-03-01,cpn-f13-03-02,cpn-f13-04-01,cpn-f13-04-02"
        );
        assert_eq!(of("gpu[3,5-7]-ib"), "gpu3-ib,gpu5-ib,gpu6-ib,gpu7-ib");
        assert_eq!(of("r[1-2]n[08-10]"), "r1n08,r1n09,r1n10,r2n08,r2n09,r2n10");
        assert_eq!(of("['r918-n91', 'r97-n91']"), "r918-n91,r97-n91");
        assert_eq!(of("pe2"), "pe2");
    }

    #[test]
    fn a_list_that_cannot_be_read_stays_as_written() {
        // Breaks when a typo or a huge range takes the row or the memory down.
        for text in ["n[1-", "n[[1]]", "n[9-1]", "n[1-999999999]", "n[1-9999][1-9999]"] {
            assert_eq!(nodes(text).as_deref(), Some(text));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[a-c0-9,\\[\\]-]{0,30}") {
            let _ = nodes(&text);
        }
    }
}
