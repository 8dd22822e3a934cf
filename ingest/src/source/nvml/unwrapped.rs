#![expect(unsafe_code, reason = "two calls of the library that its wrapper does not offer")]

//! Calls that the wrapper lacks: the number of a slice, and fields with a scope.

use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper_sys::bindings::{
    nvmlFieldValue_t, nvmlReturn_enum_NVML_SUCCESS as SUCCESS,
    nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE as DOUBLE,
    nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT as SIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG as SIGNED_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG as UNSIGNED_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as UNSIGNED_LONG_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_SHORT as UNSIGNED_SHORT,
};

/// A field of the driver, and the part of the GPU that is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) id: u32,
    pub(super) scope: u32,
}

/// The GPU instance that a MIG device belongs to.
///
/// # Errors
/// What the driver answers; that the symbol is missing where the driver is older than MIG.
pub(super) fn gpu_instance(device: &Device<'_>) -> Result<u32, NvmlError> {
    let symbol = device.nvml().lib().nvmlDeviceGetGpuInstanceId.as_ref();
    let call = symbol.map_err(|error| NvmlError::FailedToLoadSymbol(error.to_string()))?;
    let mut id = 0;
    // SAFETY: the handle is valid as long as the wrapper's borrow of the library, and the library
    // writes one number to where it is told.
    let code = unsafe { call(device.handle(), &raw mut id) };
    if code == SUCCESS { Ok(id) } else { Err(NvmlError::from(code)) }
}

/// Values of `fields`; `None` where the driver has none.
///
/// # Errors
/// What the driver answers to the call as a whole.
pub(super) fn field_values<const N: usize>(
    device: &Device<'_>,
    fields: &[Field; N],
) -> Result<[Option<f64>; N], NvmlError> {
    let symbol = device.nvml().lib().nvmlDeviceGetFieldValues.as_ref();
    let call = symbol.map_err(|error| NvmlError::FailedToLoadSymbol(error.to_string()))?;
    let mut asked = fields.map(|field| {
        // SAFETY: the structure is numbers only, for which zero is a value.
        let mut value: nvmlFieldValue_t = unsafe { std::mem::zeroed() };
        value.fieldId = field.id;
        value.scopeId = field.scope;
        value
    });
    let count = i32::try_from(N).expect("a handful of fields");
    // SAFETY: the handle is valid as above, and the library fills `count` structures in place.
    let code = unsafe { call(device.handle(), count, asked.as_mut_ptr()) };
    if code != SUCCESS {
        return Err(NvmlError::from(code));
    }
    Ok(asked.map(|value| figure(&value)))
}

fn figure(value: &nvmlFieldValue_t) -> Option<f64> {
    if value.nvmlReturn != SUCCESS {
        return None;
    }
    // SAFETY: each member of the union is a plain number, and the library says which it wrote.
    unsafe {
        Some(match value.valueType {
            DOUBLE => value.value.dVal,
            UNSIGNED_INT => f64::from(value.value.uiVal),
            UNSIGNED_LONG => value.value.ulVal as f64,
            UNSIGNED_LONG_LONG => value.value.ullVal as f64,
            SIGNED_LONG => value.value.sllVal as f64,
            SIGNED_INT => f64::from(value.value.siVal),
            UNSIGNED_SHORT => f64::from(value.value.usVal),
            _ => return None,
        })
    }
}
