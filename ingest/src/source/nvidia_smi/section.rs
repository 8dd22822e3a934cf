//! Sections of a capture: outputs of several commands in one file, parted by `#` banners.

use crate::source::clock::{Stamp, stamp};

/// Follows the banners of a file; a file without any is wanted whole.
#[derive(Debug, Default)]
pub(super) struct Sections {
    /// When the capture was made, from its first lines.
    pub(super) collected_at_ms: Option<i64>,
    state: State,
    heading: Vec<String>,
    unwanted: bool,
    passed: u64,
    read: u64,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    #[default]
    Body,
    Heading,
}

/// Shortest line of `#` that is a banner.
const BANNER_LENGTH_MIN: usize = 20;

impl Sections {
    /// Whether the line belongs to a banner.
    pub(super) fn banner(&mut self, text: &str) -> bool {
        if !text.starts_with('#') {
            // A single rule of `#` is decoration, not the start of a banner.
            self.state = State::Body;
            return false;
        }
        let rule = text.len() >= BANNER_LENGTH_MIN && text.bytes().all(|b| b == b'#');
        match (&self.state, rule) {
            (State::Body, true) => {
                self.state = State::Heading;
                self.heading.clear();
                true
            }
            (State::Heading, false) => {
                self.heading.push(text.trim_start_matches('#').trim().to_owned());
                true
            }
            (State::Heading, true) => {
                self.state = State::Body;
                self.enter();
                true
            }
            // `# gpu  pwr ...` in the middle of a section is text of its command.
            (State::Body, false) => self.unwanted,
        }
    }

    fn enter(&mut self) {
        let command = self.heading.iter().find_map(|line| line.strip_prefix("$ "));
        let wanted = command.is_some_and(|command| {
            command.contains("--query-gpu=")
                || command.contains("--query-compute-apps=")
                || command.contains(" -x")
        });
        self.unwanted = !wanted;
        if wanted {
            self.read += 1;
        } else if command.is_some() {
            self.passed += 1;
        }
    }

    /// Whether lines of the current section are read.
    pub(super) fn wanted(&self) -> bool {
        !self.unwanted
    }

    /// Whether banners parted the file.
    pub(super) fn whole_capture(&self) -> bool {
        self.read > 0
    }

    /// What was passed over, in words.
    pub(super) fn summary(&self) -> Option<String> {
        (self.passed > 0).then(|| {
            format!("{} sections of other commands passed over, {} read", self.passed, self.read)
        })
    }
}

/// The instant of a line `collected_at: 2026-07-14T08:12:38Z`.
pub(super) fn collected_at(text: &str) -> Option<i64> {
    match stamp(text.strip_prefix("collected_at:")?)? {
        Stamp::Utc(ms) => Some(ms),
        Stamp::Local(..) => None,
    }
}
