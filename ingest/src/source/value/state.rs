//! States of a GPU that a cell tells in place of a figure.

use crate::event::EventKind;

/// The state that a cell tells of its GPU, if it tells one.
pub(crate) fn distress(text: &str) -> Option<&'static str> {
    let has = |needle: &str| {
        text.len() >= needle.len()
            && text
                .as_bytes()
                .windows(needle.len())
                .any(|w| w.eq_ignore_ascii_case(needle.as_bytes()))
    };
    if has("requires reset") || has("needs reset") || has("reset required") {
        Some("needs reset")
    } else if has("is lost") || has("device handle for") || has("fallen off the bus") {
        Some("lost")
    } else {
        None
    }
}

/// The event that a state of [`distress`] begins.
pub(crate) fn kind(state: &str) -> EventKind {
    if state == "lost" { EventKind::Lost } else { EventKind::RequiresReset }
}

/// Whether a state of the inventory is one that [`distress`] tells.
pub(crate) fn distressed(state: &str) -> bool {
    matches!(state, "lost" | "needs reset")
}
