//! Pages that are fetched again and again, and series that are sent: what was learned of the GPUs
//! stays from one to the next.

use std::io::Cursor;

use super::metric::Told;
use super::page::Key;
use super::series::{Printed, Series, meaning};
use super::{Options, Pages};
use crate::batch::Output;
use crate::error::IngestError;
use crate::source::input::Input;
use crate::source::instant::untimely;
use crate::source::sample::Samples;
use crate::source::value::Measure;

/// What is known of the GPUs of one sender.
#[derive(Debug, Default)]
pub(crate) struct Live {
    samples: Samples,
    learned: Learned,
}

/// What earlier series tell of later ones.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Learned {
    /// Measurements of which a true ratio was seen, by their number.
    pub(super) ratios: u32,
    /// Whether the driver tells utilisation of a whole GPU.
    pub(super) driver_util: bool,
    /// Whether memory that the driver keeps is told.
    pub(super) mem_reserved: bool,
    /// Whether a page may hold only some series of a GPU, the others being in another.
    pub(super) in_parts: bool,
}

impl Learned {
    /// Takes note of a series of the GPU or slice `key`.
    pub(super) fn see(&mut self, told: Told, key: &Key) {
        match told {
            Told::Measure { measure: Measure::GpuUtil, .. } if key.mig.is_none() => {
                self.driver_util = true;
            }
            Told::MemReserved(_) => self.mem_reserved = true,
            _ => {}
        }
    }
}

/// One value of one series.
#[derive(Debug)]
pub(crate) struct Sent<'t> {
    pub(crate) name: &'t str,
    /// Name and value of each label.
    pub(crate) labels: &'t [(&'t str, &'t str)],
    /// Name and labels in one, which tell one series from another.
    pub(crate) identity: &'t str,
    pub(crate) value: f64,
    /// Milliseconds since 1970.
    pub(crate) at_ms: i64,
}

impl Live {
    /// Of a sender that may tell of a GPU in parts.
    pub(crate) fn in_parts() -> Self {
        let learned = Learned { in_parts: true, ..Learned::default() };
        Self { learned, ..Self::default() }
    }

    /// Reads one page, of `options.time` where its lines tell none.
    ///
    /// # Errors
    /// [`IngestError::Format`] where it is no page, or fills no column.
    pub(crate) fn page(
        &mut self,
        input: &Input,
        page: Vec<u8>,
        options: &Options,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        let mut pages = Pages::new(input, options, &mut self.samples);
        pages.live = true;
        pages.page.learned = self.learned;
        let read = pages.text(Box::new(Cursor::new(page)), out);
        self.learned = pages.page.learned;
        let read = read.and_then(|()| pages.finish(out));
        self.samples.hand_over(out)?;
        read
    }

    /// Takes series that were sent.
    ///
    /// # Errors
    /// Whatever `out` answers.
    pub(crate) fn sent<'t>(
        &mut self,
        input: &Input,
        sent: impl Iterator<Item = Sent<'t>>,
        options: &Options,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        let mut pages = Pages::new(input, options, &mut self.samples);
        pages.live = true;
        pages.page.learned = self.learned;
        for sent in sent {
            let labels = sent.labels.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let labels: Printed<'_> = labels.collect();
            let (told, labels) = meaning(sent.name, labels, pages.maps);
            let series = Series {
                name: sent.name,
                told,
                labels,
                value: sent.value,
                decimals: false,
                at_ms: Some(sent.at_ms),
                identity: sent.identity,
            };
            pages.series(&series, None, "", out)?;
        }
        pages.end_page(out)?;
        self.learned = pages.page.learned;
        self.samples.hand_over(out)
    }
}

impl Pages<'_> {
    /// Why a series of a page that was fetched cannot be of its time: whoever fetches knows his own.
    pub(super) fn untimely(&self, series: &Series<'_>) -> Option<String> {
        let now_ms = self.now.filter(|_| self.live)?.timestamp_millis();
        let at_ms = series.at_ms?;
        let why = untimely(at_ms, now_ms)?;
        Some(format!("its time, {at_ms} ms since 1970, is {why}"))
    }
}
