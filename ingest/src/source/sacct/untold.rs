//! What a ledger without some columns cannot tell.

use super::columns::{Column, Layout};

/// What to ask sacct for, so that every answer can be given.
pub(crate) const ASKED: &str = "JobID,JobIDRaw,Cluster,Account,User,Partition,ReqTRES,AllocTRES,Submit,\
    Eligible,Start,End,Suspended,State,Restarts,NodeList,Timelimit,ExitCode,JobName";

/// Columns that tell GPUs, any of which will do.
const GPUS: [Column; 8] = [
    Column::AllocTres,
    Column::ReqTres,
    Column::UsedGres,
    Column::ReqGres,
    Column::TresPerJob,
    Column::TresPerNode,
    Column::TresPerTask,
    Column::SubmitLine,
];

/// What no row of `layout` can tell, in words, and how to ask for it.
pub(crate) fn untold(layout: &Layout) -> Option<String> {
    let lacks = |column| layout.position(column).is_none();
    let mut untold = Vec::new();
    if lacks(Column::Submit) {
        untold.push("no Submit: how long jobs waited is not known");
    }
    if lacks(Column::Eligible) {
        untold.push("no Eligible: time that jobs were held back counts as waiting");
    }
    if lacks(Column::Start) {
        untold.push("no Start: when jobs held GPUs is not known");
    }
    if GPUS.into_iter().all(lacks) {
        untold.push(
            "none of AllocTRES, ReqTRES, AllocGRES, ReqGRES, TresPerJob, TresPerNode, TresPerTask \
             and SubmitLine: how many GPUs jobs held is not known",
        );
    }
    if untold.is_empty() {
        return None;
    }
    let untold = untold.join("; ");
    Some(match layout.slurmdb {
        true => format!("among the columns is {untold}"),
        false => format!("among the columns is {untold}; ask with `sacct -o {ASKED}`"),
    })
}
