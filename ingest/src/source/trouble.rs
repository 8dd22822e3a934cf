//! What a source says of GPUs in trouble: told when it begins and ends, not at every reading.

use std::collections::BTreeMap;

use super::sample::{Name, Sample};
use super::value::Measure;
use crate::event::{Event, EventKind};

/// Xid of a GPU that has fallen off the bus.
pub(crate) const XID_LOST: i32 = 79;

/// What is said of a recovery, wherever it is found.
pub(crate) const RECOVERED: &str = "first good reading after it";

/// Events beyond these of one import are not kept.
const EVENTS_MAX: usize = 100_000;

/// Which GPUs are in trouble, and the events that were seen.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    current: BTreeMap<String, EventKind>,
    events: Vec<Event>,
}

impl Troubles {
    /// Takes an event as it is.
    pub(crate) fn event(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }

    /// Takes an event that lasts; while it does, the same again is no news.
    pub(crate) fn begin(&mut self, event: Event) {
        let subject = subject(&event);
        if self.current.get(&subject) != Some(&event.kind) {
            self.current.insert(subject, event.kind);
            self.event(event);
        }
    }

    /// A reading of a board without a word of trouble: where it is a good one, that of its GPU is
    /// over, which is an event, and that of its node. Whether its GPU had any.
    pub(crate) fn reading(&mut self, sample: &Sample) -> bool {
        if self.current.is_empty() || sample.mig.is_some() || !good(sample) {
            return false;
        }
        let well = of(sample, EventKind::Recovered, RECOVERED.to_owned());
        let node =
            Event { gpu: None, gpu_uuid: None, kind: EventKind::DriverFailed, ..well.clone() };
        self.current.remove(&subject(&node));
        let over = self.current.remove(&subject(&well)).is_some();
        if over {
            self.event(well);
        }
        over
    }

    /// What was seen since the last call, and forgets it; troubles go on.
    pub(crate) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

/// An event at the time and of the GPU of a reading.
pub(crate) fn of(sample: &Sample, kind: EventKind, detail: String) -> Event {
    Event {
        event_at_ms: sample.sampled_at_ms,
        cluster: sample.cluster.clone(),
        node: sample.node.clone(),
        gpu: sample.gpu,
        gpu_uuid: sample.gpu_uuid.clone(),
        mig: None,
        kind,
        detail,
    }
}

/// Whether a reading says that the GPU has fallen off the bus.
pub(crate) fn lost(sample: &Sample) -> bool {
    sample.get(Measure::Xid) == Some(f64::from(XID_LOST))
}

/// Whether a reading shows a GPU that works.
fn good(sample: &Sample) -> bool {
    let known = |measure| sample.get(measure).is_some();
    !lost(sample) && (known(Measure::GpuUtil) || known(Measure::Power) || known(Measure::Temp))
}

/// Whose trouble it is: the board's, the place's, the node's; a message that names none of them
/// stands for itself.
fn subject(event: &Event) -> String {
    let text = |name: &Name| name.as_deref().unwrap_or_default().to_owned();
    match (&event.gpu_uuid, event.gpu, event.kind) {
        (Some(uuid), _, _) => uuid.to_string(),
        (None, Some(gpu), _) => format!("{}/{gpu}", text(&event.node)),
        (None, None, EventKind::DriverFailed) => format!("{}/", text(&event.node)),
        (None, None, _) => format!("{}/{}", text(&event.node), event.detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: i64, power_w: Option<f64>) -> Sample {
        let mut sample = Sample { sampled_at_ms: at, gpu: Some(1), ..Sample::default() };
        sample.put(Measure::Power, power_w);
        sample
    }

    #[test]
    fn trouble_is_told_when_it_begins_and_again_after_a_good_reading() {
        // Breaks when a loop that prints a message for days makes a row of each, or the second
        // loss of a GPU is no news.
        let mut troubles = Troubles::default();
        for (at, power_w) in [(1, None), (2, None), (3, Some(80.0)), (4, None)] {
            let sample = sample(at, power_w);
            match power_w {
                Some(_) => assert_eq!(troubles.reading(&sample), at == 3),
                None => troubles.begin(of(&sample, EventKind::Lost, "lost".into())),
            }
        }
        let seen = troubles.take();
        let seen: Vec<_> = seen.iter().map(|event| (event.event_at_ms, event.kind)).collect();
        let (lost, recovered) = (EventKind::Lost, EventKind::Recovered);
        assert_eq!(seen, [(1, lost), (3, recovered), (4, lost)]);
        let mut xid = sample(5, Some(80.0));
        xid.put(Measure::Xid, Some(79.0));
        assert!(!good(&xid));
    }
}
