//! Query CSV: columns by name, whatever their number, order, unit and driver.

use std::num::{IntErrorKind, ParseIntError};

use super::Gpu;
use crate::batch::Output;
use crate::source::sample::{Names, Sample};
use crate::source::value::{Measure, Reading, available, distress, index};

/// What a column is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    Time,
    Uuid,
    Index,
    Model,
    Host,
    Bus,
    Driver,
    Vbios,
    Recovery,
    Pid,
    ProcessName,
    ThrottleMask,
    Throttle(u32),
    Measure(Measure),
    /// A field of another query (`--query-accounted-apps`, `--query-retired-pages`).
    Foreign,
    /// Known to the driver, of no use here.
    Other,
}

/// A field name to its role, and its rank among fields of the same role: the first that has a
/// figure counts. `power.draw` is the driver's own choice, so it goes before its two kinds;
/// lifetime errors go before those since the driver was loaded.
fn role(name: &str) -> Option<(Role, u8)> {
    use Measure as M;
    let reason = |name: &str| {
        let bit = match name {
            "gpu_idle" => 0x1,
            "applications_clocks_setting" => 0x2,
            "sw_power_cap" => 0x4,
            "hw_slowdown" => 0x8,
            "sync_boost" => 0x10,
            "sw_thermal_slowdown" => 0x20,
            "hw_thermal_slowdown" => 0x40,
            "hw_power_brake_slowdown" => 0x80,
            "display_clock_setting" => 0x100,
            "active" => return Role::ThrottleMask,
            _ => return Role::Other,
        };
        Role::Throttle(bit)
    };
    for prefix in ["clocks_throttle_reasons.", "clocks_event_reasons."] {
        if let Some(rest) = name.strip_prefix(prefix) {
            return Some((reason(rest), 0));
        }
    }
    Some(match name {
        "timestamp" => (Role::Time, 0),
        "uuid" | "gpu_uuid" => (Role::Uuid, 0),
        "index" => (Role::Index, 0),
        "name" | "gpu_name" => (Role::Model, 0),
        "hostname" => (Role::Host, 0),
        "pci.bus_id" | "gpu_bus_id" => (Role::Bus, 0),
        "driver_version" => (Role::Driver, 0),
        "vbios_version" => (Role::Vbios, 0),
        "gpu_recovery_action" => (Role::Recovery, 0),
        "pid" => (Role::Pid, 0),
        "process_name" => (Role::ProcessName, 0),
        "utilization.gpu" => (Role::Measure(M::GpuUtil), 0),
        "utilization.memory" => (Role::Measure(M::MemCopyUtil), 0),
        "memory.used" => (Role::Measure(M::MemUsed), 0),
        "memory.total" => (Role::Measure(M::MemTotal), 0),
        "power.draw" => (Role::Measure(M::Power), 0),
        "power.draw.average" => (Role::Measure(M::Power), 1),
        "power.draw.instant" => (Role::Measure(M::Power), 2),
        "total_energy_consumption" | "energy.consumption" => (Role::Measure(M::Energy), 0),
        "temperature.gpu" => (Role::Measure(M::Temp), 0),
        "temperature.memory" => (Role::Measure(M::MemTemp), 0),
        "fan.speed" => (Role::Measure(M::Fan), 0),
        "clocks.sm" | "clocks.current.sm" => (Role::Measure(M::SmClock), 0),
        "clocks.mem" | "clocks.current.memory" => (Role::Measure(M::MemClock), 0),
        "ecc.errors.corrected.aggregate.total" => (Role::Measure(M::EccCorrected), 0),
        "ecc.errors.corrected.volatile.total" => (Role::Measure(M::EccCorrected), 1),
        "ecc.errors.uncorrected.aggregate.total" => (Role::Measure(M::EccUncorrected), 0),
        "ecc.errors.uncorrected.volatile.total" => (Role::Measure(M::EccUncorrected), 1),
        "gpu_util" | "mem_util" | "max_memory_usage" | "time" | "retired_pages.address" => {
            (Role::Foreign, 0)
        }
        "count"
        | "serial"
        | "pstate"
        | "compute_mode"
        | "compute_cap"
        | "gpu_serial"
        | "used_gpu_memory"
        | "memory.free"
        | "power.limit"
        | "pcie.link.gen.current"
        | "pcie.link.width.current"
        | "mig.mode.current"
        | "clocks.gr"
        | "clocks.video"
        | "power.management"
        | "persistence_mode"
        | "display_active"
        | "display_mode" => (Role::Other, 0),
        _ => return None,
    })
}

#[derive(Debug)]
struct Field {
    position: usize,
    role: Role,
    unit: String,
}

/// The columns of a block.
#[derive(Debug)]
pub(super) struct Header {
    columns: usize,
    /// The fields of use, those of one role by rank.
    fields: Vec<Field>,
    processes: bool,
    foreign: bool,
    last_unit: bool,
}

impl Header {
    /// Reads a line as header, if it is one: two fields of the driver in it, or nothing else.
    pub(super) fn of(text: &str) -> Option<Self> {
        // Rows begin with a digit, an index, a `GPU-` or a name; most are told by this alone.
        let first = text.trim_start_matches('"').as_bytes().first()?;
        if !first.is_ascii_lowercase() {
            return None;
        }
        let mut fields = Vec::new();
        let (mut columns, mut known) = (0, 0);
        let mut last_unit = false;
        for (position, cell) in text.split(',').enumerate() {
            let cell = unquoted(cell);
            let (name, unit) = cell.split_once('[').unwrap_or((cell, ""));
            let unit = unit.trim_end_matches(']').trim();
            columns += 1;
            last_unit = !unit.is_empty();
            if let Some((role, rank)) = role(&name.trim().to_ascii_lowercase()) {
                known += 1;
                fields.push((rank, Field { position, role, unit: unit.to_owned() }));
            }
        }
        if known < 2 && known < columns {
            return None;
        }
        fields.sort_by_key(|(rank, field)| (*rank, field.position));
        let fields: Vec<Field> = fields.into_iter().map(|(_, field)| field).collect();
        let has = |role| fields.iter().any(|field| field.role == role);
        let foreign = has(Role::Foreign);
        Some(Self { columns, processes: has(Role::Pid) && !foreign, foreign, last_unit, fields })
    }

    pub(super) fn len(&self) -> usize {
        self.columns
    }

    /// Whether the rows are processes.
    pub(super) fn processes(&self) -> bool {
        self.processes
    }

    /// Whether the rows are of a query that is passed over.
    pub(super) fn foreign(&self) -> bool {
        self.foreign
    }

    /// Whether a row can tell its GPU.
    pub(super) fn names_gpu(&self) -> bool {
        self.fields.iter().any(|field| matches!(field.role, Role::Uuid | Role::Index))
    }

    /// Whether the line has as many cells as the header; names of processes may hold commas.
    pub(super) fn fits(&self, text: &str, ended: bool) -> bool {
        let cells = text.bytes().filter(|b| *b == b',').count() + 1;
        if self.processes || self.foreign {
            return cells >= self.columns && cells > 1 && ended;
        }
        cells == self.columns
    }

    /// The cell of a role.
    pub(super) fn cell<'t>(&self, role: Role, text: &'t str) -> Option<&'t str> {
        let field = self.fields.iter().find(|field| field.role == role)?;
        text.split(',').nth(field.position).map(unquoted)
    }
}

/// One row, its text split by role.
#[derive(Debug, Default)]
pub(super) struct Row<'t> {
    pub(super) time: Option<&'t str>,
    pub(super) host: Option<&'t str>,
    pub(super) bus: Option<&'t str>,
    pub(super) model: Option<&'t str>,
    pub(super) driver: Option<&'t str>,
    pub(super) vbios: Option<&'t str>,
    pub(super) state: Option<&'static str>,
    pub(super) sample: Sample,
    /// Whether the last cell was left out because the file ends inside it.
    pub(super) last_doubtful: bool,
    uuid: Option<&'t str>,
}

impl<'t> Row<'t> {
    pub(super) fn read(header: &Header, text: &'t str, ended: bool, out: &mut dyn Output) -> Self {
        let mut cells: Vec<&str> = Vec::with_capacity(header.columns);
        cells.extend(text.split(',').map(unquoted));
        let mut row = Self::default();
        if !ended && let Some(last) = cells.last_mut() {
            row.last_doubtful = !whole(last, header.last_unit);
            if row.last_doubtful {
                *last = "";
            }
        }
        row.state = cells
            .iter()
            .filter(|cell| cell.len() > 5 && cell.starts_with('['))
            .find_map(|cell| distress(cell));
        let mut bits = None;
        for field in &header.fields {
            let Some(&cell) = cells.get(field.position) else { continue };
            row.take(field, cell, &mut bits, out);
        }
        if row.sample.get(Measure::Throttle).is_none() {
            row.sample.put(Measure::Throttle, bits);
        }
        row
    }

    fn take(&mut self, field: &Field, cell: &'t str, bits: &mut Option<f64>, out: &mut dyn Output) {
        match field.role {
            Role::Time => self.time = available(cell),
            Role::Uuid => self.uuid = available(cell),
            Role::Index => {
                self.sample.gpu = available(cell).and_then(|c| index(c, "gpu", out));
            }
            Role::Model => self.model = available(cell),
            Role::Host => self.host = available(cell),
            Role::Bus => self.bus = available(cell),
            Role::Driver => self.driver = available(cell),
            Role::Vbios => self.vbios = available(cell),
            Role::Recovery => {
                if available(cell).is_some() {
                    self.state = self.state.or(Some("needs reset"));
                }
            }
            Role::ThrottleMask => {
                let mask = available(cell).and_then(|c| c.strip_prefix("0x")).map(|hex| {
                    let mask = u64::from_str_radix(hex, 16);
                    mask.map_or_else(
                        |error| unmasked(&error),
                        |mask| Measure::Throttle.check(mask as f64),
                    )
                });
                self.sample.set(Measure::Throttle, mask.unwrap_or(Reading::Unavailable), out);
            }
            Role::Throttle(bit) => match cell {
                "Active" => *bits = Some(bits.unwrap_or(0.0) + f64::from(bit)),
                "Not Active" => *bits = Some(bits.unwrap_or(0.0)),
                _ => {}
            },
            Role::Measure(measure) => {
                if self.sample.get(measure).is_none() {
                    self.sample.set(measure, measure.read(cell, &field.unit), out);
                }
            }
            Role::Pid | Role::ProcessName | Role::Foreign | Role::Other => {}
        }
    }

    /// Which GPU the row is of.
    pub(super) fn gpu(&self, names: &mut Names) -> Option<Gpu> {
        match (self.uuid, self.sample.gpu) {
            (Some(uuid), _) => Some(Gpu::Uuid(names.of(uuid))),
            (None, Some(index)) => Some(Gpu::Index(index)),
            (None, None) => None,
        }
    }
}

/// Whether the last cell of a file that ends without a newline is surely whole.
fn whole(cell: &str, unit_in_header: bool) -> bool {
    let uuid = cell.len() == 40 && cell.starts_with("GPU-");
    let unit = unit_in_header && cell.ends_with(['%', 'W', 'B', 'z', 'C']);
    uuid || unit || cell.ends_with(']')
}

/// What a mask is that could not be read: one of too many bits, or no number.
fn unmasked(error: &ParseIntError) -> Reading {
    match error.kind() {
        IntErrorKind::PosOverflow => Reading::Impossible,
        _ => Reading::Unreadable,
    }
}

fn unquoted(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"').and_then(|c| c.strip_suffix('"')).unwrap_or(cell).trim()
}

/// The text of a message that `nvidia-smi` prints instead of rows.
pub(super) fn driver_message(text: &str) -> Option<&str> {
    const MESSAGES: [&str; 11] = [
        "unable to determine the device handle",
        "gpu is lost",
        "requires reset",
        "no devices were found",
        "failed to initialize nvml",
        "nvidia-smi has failed",
        "unknown error",
        "driver/library version mismatch",
        "reboot the system to recover",
        "insufficient permissions",
        "make sure that the latest nvidia driver is installed",
    ];
    let said = text.to_ascii_lowercase();
    MESSAGES.iter().any(|message| said.contains(message)).then_some(text)
}

/// Whether a message says that the driver answers for no GPU of the node.
pub(super) fn driver_failed(text: &str) -> bool {
    const MESSAGES: [&str; 4] = [
        "no devices were found",
        "failed to initialize nvml",
        "nvidia-smi has failed",
        "driver/library version mismatch",
    ];
    let said = text.to_ascii_lowercase();
    MESSAGES.iter().any(|message| said.contains(message))
}
