//! The driver's library, opened, and the places of the node behind it.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use super::NvmlSettings;
use super::fault::words;
use super::place::{Place, Request};
use super::reading::{Facts, Reading};
use crate::error::IngestError;
use crate::source::sample::Name;

/// What the loader looks for where no path is given.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Time that the threads have to end.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// An open driver. Without it, its threads end; the last one closes the library.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) version: Name,
    pub(super) cuda: Name,
    pub(super) places: Vec<Place>,
    answers: Receiver<Reading>,
}

impl Driver {
    /// Opens the library and watches every place that it tells.
    ///
    /// # Errors
    /// [`IngestError::Driver`] where it cannot be loaded, or does not answer.
    pub(super) fn open(settings: &NvmlSettings) -> Result<Self, IngestError> {
        let path = settings.library.as_deref().map_or(OsStr::new(LIBRARY), |path| path.as_os_str());
        let library = || path.to_string_lossy().into_owned();
        let refused = |error: NvmlError| match error {
            NvmlError::LibloadingError(cause) => IngestError::Driver {
                library: library(),
                reason: "it cannot be loaded".into(),
                source: Some(Box::new(cause)),
            },
            other => {
                IngestError::Driver { library: library(), reason: words(&other), source: None }
            }
        };
        let nvml = Nvml::builder().lib_path(path).init().map_err(refused)?;
        let count = match nvml.device_count().map_err(refused)? {
            0 => {
                let reason = "it knows no GPU on this node".into();
                return Err(IngestError::Driver { library: library(), reason, source: None });
            }
            count => count,
        };
        let text = |text: &str| Some(Arc::<str>::from(text));
        let version = nvml.sys_driver_version().ok().and_then(|version| text(&version));
        // 13000 is 13.0.
        let cuda = nvml.sys_cuda_driver_version().ok();
        let cuda = cuda.and_then(|n| text(&format!("{}.{}", n / 1000, n % 1000 / 10)));
        let nvml = Arc::new(nvml);
        let (answer, answers) = mpsc::channel();
        let interval_ms = super::millis(settings.interval);
        let places = (0..count).map(|index| Place::watch(&nvml, index, interval_ms, &answer));
        Ok(Self { version, cuda, places: places.collect(), answers })
    }

    /// Asks every place for a round and waits for the answers, up to `limit`. A place that has not
    /// answered by then is left out, and asked again once it has.
    pub(super) fn read(&mut self, request: Request, limit: Duration) -> Vec<Reading> {
        for place in &mut self.places {
            place.ask(request);
        }
        // One that hung before is not waited for.
        let mut waited = self.places.iter().filter(|place| place.asked == request.round).count();
        let until = Instant::now() + limit;
        let mut readings = Vec::with_capacity(waited);
        while waited > 0 {
            let left = until.saturating_duration_since(Instant::now());
            match self.answers.recv_timeout(left) {
                Ok(reading) => {
                    let place = &mut self.places[reading.index as usize];
                    place.busy = false;
                    // What comes late stands for another time.
                    if reading.round == request.round {
                        if reading.facts.is_some() {
                            place.facts.clone_from(&reading.facts);
                            place.told = true;
                        }
                        readings.push(reading);
                        waited -= 1;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        readings.sort_by_key(|reading| reading.index);
        readings
    }

    /// Whether a GPU has not answered yet.
    pub(super) fn hangs(&self) -> bool {
        self.places.iter().any(|place| place.busy)
    }

    /// A place that has not told its board keeps what it was known to hold, unless that one has
    /// turned up elsewhere.
    pub(super) fn forget_moved(&mut self) {
        let told = |place: &Place| place.told.then(|| place.facts.clone()).flatten();
        let seen: Vec<_> = self.places.iter().filter_map(told).collect();
        for place in self.places.iter_mut().filter(|place| !place.told) {
            place.facts.take_if(|facts| seen.iter().any(|other| other.uuid == facts.uuid));
        }
    }

    /// Ends the threads and with them the session, so that the next one begins from nothing.
    ///
    /// # Output
    /// The board that each place was known to hold.
    pub(super) fn close(self) -> Vec<Option<Arc<Facts>>> {
        let until = Instant::now() + CLOSE_WITHIN;
        let (facts, threads): (Vec<_>, Vec<_>) = self.places.into_iter().map(Place::end).unzip();
        while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        facts
    }
}
