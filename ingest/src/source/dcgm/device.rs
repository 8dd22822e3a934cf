//! What a page tells of the device itself: versions, and a GPU that has fallen off the bus.

use super::Pages;
use crate::batch::Output;
use crate::event::EventKind;
use crate::source::sample::{Name, Sample, keep};
use crate::source::trouble;
use crate::source::value::Measure;

impl Pages<'_> {
    pub(super) fn note_device(
        &mut self,
        sample: &Sample,
        driver: &Name,
        vbios: &Name,
        line: Option<u64>,
        out: &mut dyn Output,
    ) {
        // Xid 79: the GPU has fallen off the bus. The field keeps the last error, so it is said
        // once, not at every page.
        let lost = trouble::lost(sample);
        let mut over = false;
        if lost {
            let event = trouble::of(sample, EventKind::Lost, "Xid 79".into());
            self.samples.troubles.begin(event);
        } else if !self.page.learned.in_parts || sample.get(Measure::Xid).is_some() {
            over = self.samples.troubles.reading(sample);
        }
        let Some(uuid) = &sample.gpu_uuid else { return };
        self.samples.driver(sample, driver);
        let device = self.samples.device(uuid);
        keep(&mut device.vbios_version, vbios);
        if over {
            device.state = None;
        }
        if lost && device.state != Some("lost") {
            device.state = Some("lost");
            self.notice(line, format!("`{uuid}`: lost (Xid 79)"), out);
        }
    }
}
