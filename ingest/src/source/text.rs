//! Text that comes from elsewhere: nothing in it steers a terminal, and none of it is endless.

use std::borrow::Cow;

/// Characters of one text, at most: more than any name of a node, a job or a label has.
pub(crate) const CHARS_MAX: usize = 1_024;

/// What stands where a character was that cannot be shown.
const MARK: char = '\u{fffd}';

/// Whether a character steers what is shown rather than being shown: control characters, and those
/// that turn the direction of what follows or separate lines.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with marks for what would steer a terminal, cut to [`CHARS_MAX`] characters.
pub(crate) fn bounded(text: &str) -> Cow<'_, str> {
    // Most of it is short and plain.
    if text.len() <= CHARS_MAX && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let longer = text.chars().nth(CHARS_MAX).is_some();
    if !longer && !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let kept = if longer { CHARS_MAX - 1 } else { CHARS_MAX };
    let shown = text.chars().take(kept).map(|c| if steers(c) { MARK } else { c });
    Cow::Owned(shown.chain(longer.then_some('…')).collect())
}

/// The same as a text of its own.
pub(crate) fn plain(text: &str) -> String {
    bounded(text).into_owned()
}

/// A line to be shown, of whatever length, with marks for what would steer a terminal.
pub(crate) fn shown(line: &str) -> Cow<'_, str> {
    match line.contains(steers) {
        true => Cow::Owned(line.replace(steers, "\u{fffd}")),
        false => Cow::Borrowed(line),
    }
}

/// `1 row`, `0 rows`, `7 rows`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_marked_and_what_is_endless_is_cut() {
        // Breaks when a label clears somebody's screen or fills the store.
        for (text, wanted) in [
            ("node-1 (rack 7)", "node-1 (rack 7)"),
            ("训练-a", "训练-a"),
            ("a\u{1b}[2Jb", "a\u{fffd}[2Jb"),
            ("a\nb\rc\u{7f}\u{9b}", "a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}"),
            ("x\u{202e}gpj", "x\u{fffd}gpj"),
        ] {
            assert_eq!(plain(text), wanted);
        }
        let long = "é".repeat(CHARS_MAX);
        assert_eq!(plain(&long), long, "as long as it may be");
        let cut = plain(&format!("{long}x"));
        assert_eq!((cut.chars().count(), cut.chars().last()), (CHARS_MAX, Some('…')));
        assert_eq!([0, 1, 2].map(|n| counted(n, "row")), ["0 rows", "1 row", "2 rows"]);
        assert_eq!(shown("a\u{1b}b\n"), "a\u{fffd}b\u{fffd}");
    }
}
