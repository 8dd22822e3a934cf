//! The thread of one place of the node: a GPU that hangs in the driver holds up this one alone.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use nvml_wrapper::Nvml;

use super::board::Board;
use super::fault::Fault;
use super::reading::{Facts, Reading, Row};

/// A round that is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) round: u64,
    pub(super) now_ms: i64,
}

/// A place, and what was last heard of it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) index: u32,
    /// The board that sat there when it last told.
    pub(super) facts: Option<Arc<Facts>>,
    /// Whether it told since the driver was opened.
    pub(super) told: bool,
    /// Whether a round is under way.
    pub(super) busy: bool,
    /// Number of the round that was last asked for.
    pub(super) asked: u64,
    ask: Sender<Request>,
    thread: JoinHandle<()>,
}

impl Place {
    /// Begins to watch place `index`; readings come through `answers`.
    pub(super) fn watch(
        nvml: &Arc<Nvml>,
        index: u32,
        interval_ms: i64,
        answers: &Sender<Reading>,
    ) -> Self {
        let (ask, asked) = mpsc::channel();
        let (nvml, answers) = (Arc::clone(nvml), answers.clone());
        // Not joined: one that hangs would hold up the end of the program.
        let thread = thread::spawn(move || answer(&nvml, index, interval_ms, &asked, &answers));
        Self { index, facts: None, told: false, busy: false, asked: 0, ask, thread }
    }

    /// Asks for a round, unless one is under way.
    pub(super) fn ask(&mut self, request: Request) {
        if !self.busy && self.ask.send(request).is_ok() {
            (self.busy, self.asked) = (true, request.round);
        }
    }

    /// Lets its thread end; the board that it was known to hold.
    pub(super) fn end(self) -> (Option<Arc<Facts>>, JoinHandle<()>) {
        (self.facts, self.thread)
    }
}

fn answer(
    nvml: &Nvml,
    index: u32,
    interval_ms: i64,
    asked: &Receiver<Request>,
    answers: &Sender<Reading>,
) {
    let mut board = None;
    for Request { round, now_ms } in asked {
        let mut reading =
            Reading { index, round, facts: None, rows: Vec::new(), processes: None, fault: None };
        match found(nvml, &mut board, index, now_ms) {
            Ok(board) => {
                reading.rows = board.read(now_ms, interval_ms);
                reading.processes = board.processes();
                reading.facts = Some(Arc::clone(&board.facts));
                reading.fault = verdict(&mut reading.rows);
            }
            Err(fault) => reading.fault = Some(fault),
        }
        // What was held of a GPU in trouble may be worth nothing when it is well again.
        if reading.fault.is_some() {
            board = None;
        }
        if answers.send(reading).is_err() {
            return;
        }
    }
}

/// The board at this place, opened or looked at again where it is time.
fn found<'b, 'n>(
    nvml: &'n Nvml,
    board: &'b mut Option<Board<'n>>,
    index: u32,
    now_ms: i64,
) -> Result<&'b mut Board<'n>, Fault> {
    if let Some(known) = board
        && !known.fresh(now_ms)
        && let Err(error) = known.look(now_ms)
    {
        return Err(Fault::of(&error));
    }
    let known = match board.take() {
        Some(known) => known,
        None => Board::open(nvml, index, now_ms).map_err(|error| Fault::of(&error))?,
    };
    Ok(board.insert(known))
}

/// What is wrong with the GPU as a whole: of a slice, only what reaches beyond it.
fn verdict(rows: &mut [Row]) -> Option<Fault> {
    let (board, slices) = rows.split_first_mut()?;
    board.verdict().or_else(|| slices.iter_mut().find_map(|slice| slice.fault.take()))
}
