//! How much of a GPU does each grant count for where several hold it at once?
//!
//! What was granted on one device never counts for more than the device. Where the shares granted
//! at an instant, less suspension, sum to more than 1, each counts its share / that sum, as readings
//! are given to jobs; slices are divided among theirs first, then the board among its slices. Such
//! a grant is cut where its part changes. A device that was never granted to two at once costs one
//! look-up.

mod body;
mod device;

use std::collections::HashMap;
use std::sync::Arc;

pub(super) use self::body::{parts_body, parts_type, shared_body};
pub(super) use self::device::Devices;
use self::device::Grant;
use super::suspension::Suspensions;

/// Columns that [`Devices::read`] reads, in this order: what names a GPU, and who holds it.
pub(super) const GRANTS_SQL: &str = "SELECT a.cluster, a.node, a.gpu, a.gpu_uuid, a.mig, \
     a.gpu_share_ratio, a.started_at, a.ended_at, a.job_id, a.attempt FROM allocation_shares a \
     WHERE a.started_at IS NOT NULL AND coalesce(a.ended_at > a.started_at, true) \
     AND (a.gpu_uuid IS NOT NULL OR a.node IS NOT NULL AND a.gpu IS NOT NULL)";

/// `gpu_shared(cluster, node, gpu, gpu_uuid)`: whether two grants ever held that GPU at once, or one
/// of it was suspended for others.
pub(super) const GPU_SHARED: &str = "gpu_shared";
/// `grant_parts(cluster, node, gpu, gpu_uuid, mig, gpu_share_ratio, started_at, ended_at, job_id,
/// attempt)`: what the grant counts for, stretch by stretch.
pub(super) const PARTS: &str = "grant_parts";

/// Until when something counts for `factor` of its share, and how many hold it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    mig: Option<i16>,
    factor: f64,
    holders: usize,
}

/// Who holds a device from an instant to the next: a part for each slice, and for the board.
#[derive(Debug)]
struct Stretch {
    from: i64,
    until: i64,
    parts: Vec<Part>,
}

/// Devices that several grants held at once, by cluster and UUID, else node and index.
#[derive(Debug, Default)]
pub(super) struct GrantIndex {
    devices: HashMap<String, Vec<Stretch>>,
    suspensions: Arc<Suspensions>,
}

impl GrantIndex {
    /// Cuts the time of each device where what is held of it changes.
    pub(super) fn build(mut devices: Devices, suspensions: Arc<Suspensions>) -> Self {
        let mut found = HashMap::new();
        for (key, number) in devices.keys {
            let grants = std::mem::take(&mut devices.grants[number]);
            let suspended = grants.iter().filter_map(|grant| grant.suspended);
            let taken = suspended.map(|number| suspensions.get(number)).any(|one| one.was_taken());
            let stretches = stretches(grants, &suspensions);
            if taken || !stretches.is_empty() {
                found.insert(key, stretches);
            }
        }
        Self { devices: found, suspensions }
    }
}

/// When another attempt than a suspended one held a GPU of its own, by the number of the suspended.
pub(super) fn taken(devices: &mut Devices) -> Vec<(usize, (i64, i64))> {
    let mut found = Vec::new();
    for grants in &mut devices.grants {
        if grants.len() < 2 || grants.iter().all(|grant| grant.suspended.is_none()) {
            continue;
        }
        sweep(grants, Vec::new(), |stretch, active| {
            let parts = parts(active, |grant| grant.share_ratio);
            let crowded = |grant: &Grant| {
                let part = parts.iter().find(|part| part.mig == grant.mig);
                part.is_some_and(|part| part.factor < 1.0 - 1e-9)
                    && active.iter().any(|other| other.suspended != grant.suspended)
            };
            let suspended = active.iter().filter(|grant| crowded(grant));
            found.extend(suspended.filter_map(|grant| Some((grant.suspended?, stretch))));
        });
    }
    found
}

/// Stretches in which more than one grant holds a device, or more than all of it is granted.
fn stretches(mut grants: Vec<Grant>, suspensions: &Suspensions) -> Vec<Stretch> {
    let mut cuts = Vec::new();
    if grants.len() > 1 {
        for grant in &grants {
            let suspension = grant.suspended.map(|number| suspensions.get(number));
            suspension.inspect(|one| one.cuts((grant.started, grant.ended), &mut cuts));
        }
    }
    let mut found = Vec::new();
    sweep(&mut grants, cuts, |(from, until), active| {
        if active.len() > 1 || active.iter().any(|grant| grant.share_ratio > 1.0) {
            let used = |grant: &Grant| {
                let suspension = grant.suspended.map(|number| suspensions.get(number));
                grant.share_ratio * suspension.map_or(1.0, |one| one.used_ratio(until))
            };
            found.push(Stretch { from, until, parts: parts(active, used) });
        }
    });
    found
}

/// Tells `met` who holds a device from each instant at which that changes, or of `cuts`, to the next.
fn sweep(grants: &mut [Grant], mut cuts: Vec<i64>, mut met: impl FnMut((i64, i64), &[Grant])) {
    grants.sort_by_key(|grant| (grant.started, grant.ended));
    cuts.extend(grants.iter().flat_map(|grant| [grant.started, grant.ended]));
    cuts.sort_unstable();
    cuts.dedup();
    let (mut active, mut next) = (Vec::new(), 0);
    for cut in cuts.windows(2) {
        active.retain(|grant: &Grant| grant.ended > cut[0]);
        while let Some(grant) = grants.get(next).filter(|grant| grant.started <= cut[0]) {
            active.push(*grant);
            next += 1;
        }
        met((cut[0], cut[1]), &active);
    }
}

/// The part of each slice that is granted, and of the board as such, where a grant holds `held`.
fn parts(active: &[Grant], held: impl Fn(&Grant) -> f64) -> Vec<Part> {
    let mut migs: Vec<Option<i16>> = active.iter().map(|grant| grant.mig).collect();
    migs.push(None);
    migs.sort_unstable();
    migs.dedup();
    let granted = |mig: Option<i16>| -> f64 {
        active.iter().filter(|grant| grant.mig == mig).map(&held).sum()
    };
    let holders = || active.iter().filter(|grant| held(grant) > 0.0);
    let count = |mig: Option<i16>| holders().filter(|grant| grant.mig == mig).count();
    // Of what is granted on a slice, what is left of it: at most the slice.
    let slice = |mig: Option<i16>| if mig.is_some() { factor(granted(mig)) } else { 1.0 };
    let board = factor(migs.iter().map(|mig| granted(*mig) * slice(*mig)).sum());
    let part = |mig: Option<i16>| Part {
        mig,
        factor: slice(mig) * board,
        holders: if mig.is_some() { count(mig) + count(None) } else { holders().count() },
    };
    migs.into_iter().map(part).collect()
}

/// What a whole share counts for where `granted` are granted in all.
fn factor(granted: f64) -> f64 {
    // Three thirds are one, whatever their sum is to the last digit.
    if granted <= 1.0 + 1e-9 { 1.0 } else { 1.0 / granted }
}

#[cfg(test)]
mod tests;
