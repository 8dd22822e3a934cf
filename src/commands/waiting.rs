//! A spinner while a question is being answered, on a terminal only.

use std::sync::OnceLock;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

static BAR: OnceLock<ProgressBar> = OnceLock::new();

/// Shows that work is under way.
pub(super) fn begin(what: &'static str) {
    let bar = BAR.get_or_init(|| {
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
        ProgressBar::new_spinner().with_style(style.expect("a fixed text"))
    });
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(150));
}

/// Makes room for what is printed.
pub(super) fn end() {
    if let Some(bar) = BAR.get() {
        bar.finish_and_clear();
    }
}
