//! The script: what the devices of the stand-in are and answer.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlProcessInfo_t, nvmlReturn_t};
use serde_json::Value;

pub(crate) const OK: nvmlReturn_t = 0;
pub(crate) const INVALID_ARGUMENT: nvmlReturn_t = 2;
pub(crate) const NOT_SUPPORTED: nvmlReturn_t = 3;
pub(crate) const NOT_FOUND: nvmlReturn_t = 6;
pub(crate) const INSUFFICIENT_SIZE: nvmlReturn_t = 7;
pub(crate) const TIMEOUT: nvmlReturn_t = 10;
const UNKNOWN: nvmlReturn_t = 999;

/// Memory of a process that the driver does not tell.
const NOT_TOLD: u64 = u64::MAX;

#[repr(C)]
struct DlInfo {
    file: *const c_char,
    base: *mut c_void,
    name: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
}

/// The script as it stands. One that says that it is `fixed` is read once: what a collector costs
/// can be measured then.
pub(crate) fn script() -> Result<Arc<Value>, nvmlReturn_t> {
    static FIXED: OnceLock<Arc<Value>> = OnceLock::new();
    if let Some(fixed) = FIXED.get() {
        return Ok(Arc::clone(fixed));
    }
    let text = std::fs::read(path().ok_or(UNKNOWN)?).map_err(|_| UNKNOWN)?;
    let script: Arc<Value> = Arc::new(serde_json::from_slice(&text).map_err(|_| UNKNOWN)?);
    if script["fixed"] == Value::Bool(true) {
        return Ok(Arc::clone(FIXED.get_or_init(|| script)));
    }
    Ok(script)
}

/// Beside the file that this code was loaded from.
fn path() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<DlInfo>::uninit();
    let here = path as fn() -> Option<PathBuf> as *const c_void;
    // SAFETY: the address is of this library, and the loader fills the structure in.
    let info = unsafe {
        if dladdr(here, info.as_mut_ptr()) == 0 {
            return None;
        }
        info.assume_init()
    };
    // SAFETY: the loader tells the path as a C string that lives as long as the library.
    let file = unsafe { CStr::from_ptr(info.file) };
    let mut path = Path::new(OsStr::from_bytes(file.to_bytes())).as_os_str().to_owned();
    path.push(".json");
    Some(path.into())
}

/// How many GPUs the script has.
pub(crate) fn gpus() -> Result<usize, nvmlReturn_t> {
    script()?["gpus"].as_array().map(Vec::len).ok_or(UNKNOWN)
}

/// A handle says which GPU, and which slice of it.
pub(crate) fn handle(index: c_uint, slice: Option<c_uint>) -> nvmlDevice_t {
    let slice = slice.map_or(0, |slice| slice + 1);
    std::ptr::without_provenance_mut(((slice << 16) | (index + 1)) as usize)
}

/// A GPU or slice of the script.
pub(crate) struct Gpu {
    index: c_uint,
    slice: Option<usize>,
    script: Arc<Value>,
}

/// What `device` is, where it answers to `call`. A GPU that hangs does not answer at all.
pub(crate) fn gpu(device: nvmlDevice_t, call: &str) -> Result<Gpu, nvmlReturn_t> {
    let code = device.addr();
    let index = (code & 0xffff).checked_sub(1).ok_or(INVALID_ARGUMENT)?;
    let script = loop {
        let script = script()?;
        let board = script["gpus"].get(index).ok_or(INVALID_ARGUMENT)?;
        if board["hangs"] != Value::Bool(true) {
            break script;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let board = &script["gpus"][index];
    if let Some(code) = board["fails"].as_u64().or(board["errors"][call].as_u64()) {
        return Err(code as nvmlReturn_t);
    }
    let slice = (code >> 16).checked_sub(1);
    if slice.is_some_and(|slice| board["mig"].get(slice).is_none()) {
        return Err(NOT_FOUND);
    }
    Ok(Gpu { index: index as c_uint, slice, script })
}

impl Gpu {
    /// What the script tells of it.
    fn told(&self) -> &Value {
        let board = &self.script["gpus"][self.index as usize];
        self.slice.map_or(board, |slice| &board["mig"][slice])
    }

    pub(crate) fn slice(&self, slice: c_uint) -> nvmlDevice_t {
        handle(self.index, Some(slice))
    }

    pub(crate) fn text(&self, key: &str) -> Result<String, nvmlReturn_t> {
        self.told()[key].as_str().map(str::to_owned).ok_or(NOT_SUPPORTED)
    }

    pub(crate) fn number(&self, key: &str) -> Result<u64, nvmlReturn_t> {
        self.told()[key].as_u64().ok_or(NOT_SUPPORTED)
    }

    /// Energy spent, in mJ: as the script tells, and what the power made of it since 1970 where the
    /// GPU is `alive`. One whose counter stands still under power is taken for hung.
    pub(crate) fn energy_mj(&self) -> Result<u64, nvmlReturn_t> {
        let told = self.number("energy_mj")?;
        if self.told()["alive"] != Value::Bool(true) {
            return Ok(told);
        }
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().map_err(|_| UNKNOWN)?;
        Ok(told + (self.number("power_mw")? as f64 * since.as_secs_f64()) as u64)
    }

    pub(crate) fn list(&self, key: &str) -> Result<&Vec<Value>, nvmlReturn_t> {
        self.told()[key].as_array().ok_or(NOT_SUPPORTED)
    }

    pub(crate) fn item(&self, key: &str, place: c_uint) -> Result<u64, nvmlReturn_t> {
        self.told()[key].get(place as usize).and_then(Value::as_u64).ok_or(NOT_SUPPORTED)
    }

    pub(crate) fn pair(&self, key: &str) -> Result<[u64; 2], nvmlReturn_t> {
        Ok([self.item(key, 0)?, self.item(key, 1)?])
    }

    pub(crate) fn object(&self, key: &str) -> Result<Value, nvmlReturn_t> {
        Some(self.told()[key].clone()).filter(Value::is_object).ok_or(NOT_SUPPORTED)
    }

    /// A number below `key`.
    pub(crate) fn under(&self, key: &str, name: &str) -> Option<f64> {
        self.told()[key][name].as_f64()
    }

    /// Pairs of numbers below `key`.
    pub(crate) fn pairs(&self, key: &str, name: &str) -> Result<Vec<[u64; 2]>, nvmlReturn_t> {
        let listed = self.told()[key][name].as_array().ok_or(NOT_SUPPORTED)?;
        let pair = |pair: &Value| Some([pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?]);
        listed.iter().map(pair).collect::<Option<_>>().ok_or(UNKNOWN)
    }

    /// Processes: number, memory or `null`, GPU instance or nothing.
    pub(crate) fn processes(&self, key: &str) -> Result<Vec<nvmlProcessInfo_t>, nvmlReturn_t> {
        let process = |told: &Value| {
            let instance = told.get(2).and_then(Value::as_u64).map_or(u32::MAX, |id| id as u32);
            nvmlProcessInfo_t {
                pid: told[0].as_u64().unwrap_or(0) as c_uint,
                usedGpuMemory: told[1].as_u64().unwrap_or(NOT_TOLD),
                gpuInstanceId: instance,
                computeInstanceId: if instance == u32::MAX { u32::MAX } else { 0 },
            }
        };
        Ok(self.list(key)?.iter().map(process).collect())
    }
}
