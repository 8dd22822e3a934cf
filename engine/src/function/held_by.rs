//! Whose GPU-hours are they, where a question is asked by team, user or another? `held_by(...)`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::text;

/// What a question can be asked by, in the order of the arguments after the first.
const HOLDERS: [&str; 6] = ["team", "user", "project", "workload", "pool", "job"];
const FLEET: &str = "fleet";

/// `held_by($by, team, user, project, workload, pool[, job_id])`: the column that `$by` names, or
/// `fleet` for all together; NULL where it names none of them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct HeldBy {
    signature: Signature,
}

impl HeldBy {
    pub(super) fn new() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

/// The argument that holds what `by` names, if one does.
fn place(by: &str, args: usize) -> Option<usize> {
    let holder = HOLDERS.iter().position(|holder| *holder == by)?;
    Some(holder + 1).filter(|place| *place < args)
}

impl ScalarUDFImpl for HeldBy {
    fn name(&self) -> &str {
        "held_by"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    /// The column itself, so that those which are not asked for are never read.
    fn simplify(&self, mut args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Some(Expr::Literal(ScalarValue::Utf8(Some(by)), _)) = args.first() else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        if by == FLEET {
            return Ok(ExprSimplifyResult::Simplified(args.swap_remove(0)));
        }
        match place(by, args.len()) {
            Some(place) => Ok(ExprSimplifyResult::Simplified(args.swap_remove(place))),
            None => Ok(ExprSimplifyResult::Original(args)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(rows) = arrays.first().map(|array| array.len()) else {
            return exec_err!("held_by takes $by, team, user, project, workload, pool, job_id");
        };
        let by = text(arrays.first())?.unwrap_or_default();
        let found: ArrayRef = if by == FLEET {
            Arc::new(StringArray::from(vec![FLEET; rows]))
        } else if let Some(place) = place(&by, arrays.len()) {
            cast(&arrays[place], &DataType::Utf8)?
        } else {
            new_null_array(&DataType::Utf8, rows)
        };
        Ok(ColumnarValue::Array(found))
    }
}
