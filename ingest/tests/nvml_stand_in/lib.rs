#![expect(
    unsafe_code,
    reason = "it answers C calls, as the driver's library does that it stands in for"
)]
#![allow(missing_docs, clippy::missing_safety_doc)]

//! A library that answers as `libnvidia-ml` would, from a script: the file beside it that is named
//! like it and ends in `.json`, read anew at each call. What the script does not hold, the driver
//! does not support. Tests copy the library, so that each has its own.

pub mod activity;
mod script;

use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEventData_t, nvmlEventSet_t, nvmlFieldValue_t, nvmlMemory_v2_t,
    nvmlProcessInfo_t, nvmlReturn_t, nvmlSample_t, nvmlUtilization_t,
};
use script::{
    Gpu, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, OK, TIMEOUT, gpu, handle,
    script,
};

/// Value types of samples and fields.
const UNSIGNED_INT: c_uint = 1;
const UNSIGNED_LONG_LONG: c_uint = 3;

const XID_EVENT: c_ulonglong = 8;

/// Writes what `answer` finds; its error is what the call returns.
unsafe fn put<T>(to: *mut T, answer: Result<T, nvmlReturn_t>) -> nvmlReturn_t {
    match answer {
        Ok(value) => {
            unsafe { to.write(value) };
            OK
        }
        Err(code) => code,
    }
}

unsafe fn put_text(to: *mut c_char, length: c_uint, answer: Result<String, nvmlReturn_t>) -> u32 {
    let text = match answer {
        Ok(text) => CString::new(text).unwrap_or_default(),
        Err(code) => return code,
    };
    let bytes = text.as_bytes_with_nul();
    if bytes.len() > length as usize {
        return INSUFFICIENT_SIZE;
    }
    unsafe { to.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
    OK
}

/// Fills a list by the rule of the library: too little room is told with the room that is needed.
unsafe fn put_all<T: Copy>(to: *mut T, room: *mut c_uint, all: &[T]) -> nvmlReturn_t {
    let given = unsafe { room.replace(all.len() as c_uint) } as usize;
    if all.is_empty() {
        return OK;
    }
    if to.is_null() || given < all.len() {
        return INSUFFICIENT_SIZE;
    }
    unsafe { to.copy_from_nonoverlapping(all.as_ptr(), all.len()) };
    OK
}

/// Calls that write one thing of a device.
macro_rules! of_device {
    ($($name:ident($to:ty) = $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(device: nvmlDevice_t, to: *mut $to) -> nvmlReturn_t {
            let answer: fn(&Gpu) -> Result<$to, nvmlReturn_t> = $answer;
            unsafe { put(to, gpu(device, stringify!($name)).and_then(|gpu| answer(&gpu))) }
        }
    )*};
}

/// Calls that write one thing of a device for one more argument.
macro_rules! of_part {
    ($($name:ident($part:ty, $to:ty) = $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            device: nvmlDevice_t,
            part: $part,
            to: *mut $to,
        ) -> nvmlReturn_t {
            let answer: fn(&Gpu, $part) -> Result<$to, nvmlReturn_t> = $answer;
            unsafe { put(to, gpu(device, stringify!($name)).and_then(|gpu| answer(&gpu, part))) }
        }
    )*};
}

of_device! {
    nvmlDeviceGetUtilizationRates(nvmlUtilization_t) = |gpu| {
        let [gpu, memory] = gpu.pair("util")?;
        Ok(nvmlUtilization_t { gpu: gpu as c_uint, memory: memory as c_uint })
    };
    nvmlDeviceGetMemoryInfo_v2(nvmlMemory_v2_t) = |gpu| {
        let [used, total] = gpu.pair("memory")?;
        let version = (size_of::<nvmlMemory_v2_t>() | 2 << 24) as c_uint;
        Ok(nvmlMemory_v2_t { version, total, used, free: total - used, reserved: 0 })
    };
    nvmlDeviceGetPowerUsage(c_uint) = |gpu| Ok(gpu.number("power_mw")? as c_uint);
    nvmlDeviceGetTotalEnergyConsumption(c_ulonglong) = |gpu| gpu.energy_mj();
    nvmlDeviceGetNumFans(c_uint) = |gpu| Ok(gpu.list("fans")?.len() as c_uint);
    nvmlDeviceGetCurrentClocksThrottleReasons(c_ulonglong) = |gpu| gpu.number("throttle");
    nvmlDeviceGetSupportedEventTypes(c_ulonglong) = |gpu| gpu.list("xids").map(|_| XID_EVENT);
    nvmlDeviceGetMaxMigDeviceCount(c_uint) = |gpu| gpu.list("mig").map(|_| 7);
    nvmlDeviceGetGpuInstanceId(c_uint) = |gpu| Ok(gpu.number("gi")? as c_uint);
}

of_part! {
    nvmlDeviceGetTemperature(c_uint, c_uint) = |gpu, _| Ok(gpu.number("temp")? as c_uint);
    nvmlDeviceGetFanSpeed_v2(c_uint, c_uint) = |gpu, fan| Ok(gpu.item("fans", fan)? as c_uint);
    nvmlDeviceGetClockInfo(c_uint, c_uint) = |gpu, clock| Ok(gpu.item("clocks", clock)? as c_uint);
    nvmlDeviceGetPcieThroughput(c_uint, c_uint) = |gpu, way| Ok(gpu.item("pcie", way)? as c_uint);
    nvmlDeviceGetMigDeviceHandleByIndex(c_uint, nvmlDevice_t) = |gpu, slice| {
        if (slice as usize) < gpu.list("mig")?.len() { Ok(gpu.slice(slice)) } else { Err(NOT_FOUND) }
    };
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    script().map_or_else(|code| code, |script| script["init"].as_u64().unwrap_or(0) as u32)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, length: c_uint) -> u32 {
    let text = script().and_then(|all| all["driver"].as_str().map(str::to_owned).ok_or(NOT_FOUND));
    unsafe { put_text(to, length, text) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(to: *mut c_int) -> nvmlReturn_t {
    let version = script().and_then(|all| all["cuda"].as_i64().ok_or(NOT_FOUND));
    unsafe { put(to, version.map(|version| version as c_int)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> nvmlReturn_t {
    unsafe { put(to, script::gpus().map(|gpus| gpus as c_uint)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(
    index: c_uint,
    to: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    let device = handle(index, None);
    let found = gpu(device, "nvmlDeviceGetHandleByIndex_v2");
    unsafe { put(to, found.map(|_| device)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(
    device: nvmlDevice_t,
    to: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    let text = gpu(device, "nvmlDeviceGetUUID").and_then(|gpu| gpu.text("uuid"));
    unsafe { put_text(to, length, text) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(
    device: nvmlDevice_t,
    to: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    let text = gpu(device, "nvmlDeviceGetName").and_then(|gpu| gpu.text("name"));
    unsafe { put_text(to, length, text) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetVbiosVersion(
    device: nvmlDevice_t,
    to: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    let text = gpu(device, "nvmlDeviceGetVbiosVersion").and_then(|gpu| gpu.text("vbios"));
    unsafe { put_text(to, length, text) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    device: nvmlDevice_t,
    error: c_uint,
    counter: c_uint,
    to: *mut c_ulonglong,
) -> nvmlReturn_t {
    // 1 is the count over the life of the board.
    let count = gpu(device, "nvmlDeviceGetTotalEccErrors").and_then(|gpu| match counter {
        1 => gpu.item("ecc", error),
        _ => Err(NOT_SUPPORTED),
    });
    unsafe { put(to, count) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(
    device: nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> nvmlReturn_t {
    let on = gpu(device, "nvmlDeviceGetMigMode").and_then(|gpu| gpu.list("mig").map(|_| 1));
    unsafe { put(pending, on) };
    unsafe { put(current, on) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    count: c_int,
    values: *mut nvmlFieldValue_t,
) -> nvmlReturn_t {
    let gpu = match gpu(device, "nvmlDeviceGetFieldValues") {
        Ok(gpu) => gpu,
        Err(code) => return code,
    };
    let values = unsafe { std::slice::from_raw_parts_mut(values, count as usize) };
    for value in values {
        match gpu.under("fields", &format!("{}/{}", value.fieldId, value.scopeId)) {
            Some(figure) => {
                value.nvmlReturn = OK;
                value.valueType = UNSIGNED_LONG_LONG;
                value.value.ullVal = figure as u64;
            }
            None => value.nvmlReturn = NOT_SUPPORTED,
        }
    }
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSamples(
    device: nvmlDevice_t,
    kind: c_uint,
    after_us: c_ulonglong,
    value_type: *mut c_uint,
    room: *mut c_uint,
    to: *mut nvmlSample_t,
) -> nvmlReturn_t {
    let listed =
        gpu(device, "nvmlDeviceGetSamples").and_then(|gpu| gpu.pairs("samples", &kind.to_string()));
    let listed = match listed {
        Ok(listed) => listed,
        Err(code) => return code,
    };
    let sample = |[at, value]: [u64; 2]| {
        let mut sample: nvmlSample_t = unsafe { std::mem::zeroed() };
        sample.timeStamp = at;
        sample.sampleValue.uiVal = value as c_uint;
        sample
    };
    let all: Vec<_> = listed.into_iter().filter(|[at, _]| *at > after_us).map(sample).collect();
    unsafe { value_type.write(UNSIGNED_INT) };
    unsafe { put_all(to, room, &all) }
}

unsafe fn processes(
    device: nvmlDevice_t,
    call: &str,
    kind: &str,
    room: *mut c_uint,
    to: *mut nvmlProcessInfo_t,
) -> nvmlReturn_t {
    let all = gpu(device, call).and_then(|gpu| gpu.processes(kind));
    match all {
        Ok(all) => unsafe { put_all(to, room, &all) },
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: nvmlDevice_t,
    room: *mut c_uint,
    to: *mut nvmlProcessInfo_t,
) -> nvmlReturn_t {
    unsafe { processes(device, "nvmlDeviceGetComputeRunningProcesses_v3", "processes", room, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    device: nvmlDevice_t,
    room: *mut c_uint,
    to: *mut nvmlProcessInfo_t,
) -> nvmlReturn_t {
    unsafe { processes(device, "nvmlDeviceGetGraphicsRunningProcesses_v3", "graphics", room, to) }
}

/// A set holds the devices it listens to, each with the number of events that it has handed out.
type EventSet = Vec<(usize, usize)>;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetCreate(to: *mut nvmlEventSet_t) -> nvmlReturn_t {
    unsafe { put(to, Ok(Box::into_raw(Box::new(EventSet::new())).cast())) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetFree(set: nvmlEventSet_t) -> nvmlReturn_t {
    drop(unsafe { Box::from_raw(set.cast::<EventSet>()) });
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceRegisterEvents(
    device: nvmlDevice_t,
    kinds: c_ulonglong,
    set: nvmlEventSet_t,
) -> nvmlReturn_t {
    let set = unsafe { &mut *set.cast::<EventSet>() };
    match gpu(device, "nvmlDeviceRegisterEvents").and_then(|gpu| gpu.list("xids").map(|_| ())) {
        Ok(()) if kinds == XID_EVENT => {
            set.push((device.cast::<c_void>().addr(), 0));
            OK
        }
        Ok(()) => INVALID_ARGUMENT,
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetWait_v2(
    set: nvmlEventSet_t,
    to: *mut nvmlEventData_t,
    _timeout_ms: c_uint,
) -> nvmlReturn_t {
    for (device, given) in unsafe { &mut *set.cast::<EventSet>() } {
        let device: nvmlDevice_t = std::ptr::without_provenance_mut(*device);
        let xid =
            gpu(device, "nvmlEventSetWait_v2").and_then(|gpu| gpu.item("xids", *given as c_uint));
        if let Ok(xid) = xid {
            *given += 1;
            let mut event: nvmlEventData_t = unsafe { std::mem::zeroed() };
            (event.device, event.eventType, event.eventData) = (device, XID_EVENT, xid);
            return unsafe { put(to, Ok(event)) };
        }
    }
    TIMEOUT
}
