//! GPM of the stand-in: a sample keeps what the script held when it was taken, as the counters of
//! the driver would; the activity between two is that of the later one.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpmMetricsGet_t, nvmlGpmSample_t, nvmlGpmSupport_t, nvmlReturn_t,
};
use serde_json::Value;

use super::put;
use super::script::{INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, OK, gpu};

/// Of which board or slice, and its metrics.
#[derive(Default)]
struct Sample {
    of: Option<(usize, Option<c_uint>)>,
    metrics: Value,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmQueryDeviceSupport(
    device: nvmlDevice_t,
    to: *mut nvmlGpmSupport_t,
) -> nvmlReturn_t {
    let told = gpu(device, "nvmlGpmQueryDeviceSupport").map(|gpu| gpu.object("gpm").is_ok());
    let told = told.map(|has| nvmlGpmSupport_t { version: 1, isSupportedDevice: has.into() });
    unsafe { put(to, told) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(to: *mut nvmlGpmSample_t) -> nvmlReturn_t {
    unsafe { put(to, Ok(Box::into_raw(Box::<Sample>::default()).cast())) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> nvmlReturn_t {
    drop(unsafe { Box::from_raw(sample.cast::<Sample>()) });
    OK
}

unsafe fn fill(
    to: nvmlGpmSample_t,
    of: (usize, Option<c_uint>),
    metrics: Result<Value, nvmlReturn_t>,
) -> nvmlReturn_t {
    match metrics {
        Ok(metrics) => {
            unsafe { *to.cast::<Sample>() = Sample { of: Some(of), metrics } };
            OK
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleGet(
    device: nvmlDevice_t,
    to: nvmlGpmSample_t,
) -> nvmlReturn_t {
    let metrics = gpu(device, "nvmlGpmSampleGet").and_then(|gpu| gpu.object("gpm"));
    unsafe { fill(to, (device.addr(), None), metrics) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMigSampleGet(
    device: nvmlDevice_t,
    instance: c_uint,
    to: nvmlGpmSample_t,
) -> nvmlReturn_t {
    let metrics = gpu(device, "nvmlGpmMigSampleGet").and_then(|gpu| {
        let same = |slice: &&Value| slice["gi"].as_u64() == Some(instance.into());
        let slice = gpu.list("mig")?.iter().find(same).ok_or(NOT_FOUND)?;
        Some(slice["gpm"].clone()).filter(Value::is_object).ok_or(NOT_SUPPORTED)
    });
    unsafe { fill(to, (device.addr(), Some(instance)), metrics) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    let request = unsafe { &mut *request };
    let (old, new) = (request.sample1.cast::<Sample>(), request.sample2.cast::<Sample>());
    // One sample tells nothing, and neither do two of different devices.
    let (same, old, new) = unsafe { (old == new, &*old, &*new) };
    if same || old.of.is_none() || old.of != new.of {
        return INVALID_ARGUMENT;
    }
    for metric in &mut request.metrics[..request.numMetrics as usize] {
        match new.metrics[metric.metricId.to_string()].as_f64() {
            Some(value) => (metric.nvmlReturn, metric.value) = (OK, value),
            None => metric.nvmlReturn = NOT_SUPPORTED,
        }
    }
    OK
}
