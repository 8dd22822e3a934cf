//! When was a page read whose lines do not say?

use chrono::SecondsFormat;

use super::Options;
use crate::source::clock::{Clock, Fault, Stamp};
use crate::source::input::Input;
use crate::source::instant::plausible;

/// The times that the pages of one file may have from outside their lines.
#[derive(Debug)]
pub(super) struct When {
    clock: Clock,
    given_ms: Option<i64>,
    given_used: bool,
    /// Time of the pages after a `date` line, or why that line tells none.
    block: Option<Result<i64, String>>,
    written_ms: Option<i64>,
}

/// The time of a page.
#[derive(Debug, PartialEq)]
pub(super) enum PageTime {
    /// Milliseconds since 1970.
    At(i64),
    /// That at which the file was written, in ms since 1970, for the first time: with what is to
    /// be said of it.
    Written(i64, String),
    /// The `date` line before the page tells none, and why.
    Unclear(String),
    /// Nothing tells it.
    Unknown,
}

impl When {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            clock: Clock::new(options.zone),
            given_ms: options.time.map(|time| time.timestamp_millis()),
            given_used: false,
            block: None,
            written_ms: None,
        }
    }

    /// Takes what `date` printed as the time of the pages after it; returns what is worth telling.
    pub(super) fn begin(&mut self, stamp: &Stamp, text: &str) -> Option<String> {
        let resolved = self.clock.resolve(stamp);
        self.block = Some(resolved.map_err(|fault| match fault {
            Fault::Unclear(why) => why,
            Fault::NoZone => format!("`{text}` has no zone: give `--zone`"),
        }));
        self.clock.notice()
    }

    /// The time of a page of `input`: that of the `date` line before it, else the one given,
    /// else that at which the file was written.
    pub(super) fn of_page(&mut self, input: &Input) -> PageTime {
        match &self.block {
            Some(Ok(at)) => return PageTime::At(*at),
            Some(Err(why)) => return PageTime::Unclear(why.clone()),
            None => {}
        }
        if let Some(at) = self.given_ms {
            self.given_used = true;
            return PageTime::At(at);
        }
        if let Some(at) = self.written_ms {
            return PageTime::At(at);
        }
        let Some(written) = input.modified_at() else { return PageTime::Unknown };
        let at = written.timestamp_millis();
        self.written_ms = Some(at);
        let said = format!(
            "no time in the page: taken as {}, when the file was written; `--time` sets another",
            written.to_rfc3339_opts(SecondsFormat::Secs, true)
        );
        PageTime::Written(at, said)
    }

    /// Whether a time was given and no page needed it.
    pub(super) fn given_in_vain(&self) -> bool {
        self.given_ms.is_some() && !self.given_used
    }
}

/// A time of a line: milliseconds in the Prometheus format, seconds in OpenMetrics.
pub(super) fn of_line(word: &str) -> Result<i64, &'static str> {
    const WRONG: &str = "the time after the value is no number";
    const OUTSIDE: &str = "the time after the value is outside the years 2000 to 2099";
    let value: f64 = word.parse().map_err(|_| WRONG)?;
    let seconds = word.contains('.') || value.abs() < 1e11;
    let ms = if seconds { value * 1000.0 } else { value };
    if !ms.is_finite() {
        return Err(WRONG);
    }
    let ms = ms.round() as i64;
    if plausible(ms) { Ok(ms) } else { Err(OUTSIDE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_line_is_one_at_which_a_gpu_can_be_read() {
        // Breaks when a slip of an exporter stretches every answer over a century.
        for (time, fault) in [
            ("946684800000", None),
            ("946684799999", Some("outside the years 2000 to 2099")),
            ("4102444799999", None),
            ("4102444800000", Some("outside the years 2000 to 2099")),
            ("-5", Some("outside the years 2000 to 2099")),
            ("NaN", Some("no number")),
        ] {
            let why = of_line(time).err();
            assert_eq!(why.is_some(), fault.is_some(), "{time}");
            assert!(why.unwrap_or_default().ends_with(fault.unwrap_or_default()), "{time}");
        }
    }
}
