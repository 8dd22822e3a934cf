//! Whom the processes of a node belong to.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use super::cgroup;

/// Time in milliseconds for which an owner is remembered: a process joins its job a moment after it
/// began, and its number is given to another one later.
const HOLD_MS: i64 = 10_000;

/// Whose a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// It has ended.
    Gone,
    /// It lives, and nothing says for whom.
    Unknown,
    /// Id of the job, pod, unit or user.
    Job(Arc<str>),
}

/// Owners that were looked up lately.
#[derive(Debug)]
pub(super) struct Owners {
    proc_root: PathBuf,
    passwd: PathBuf,
    known: HashMap<u32, Owner>,
    since_ms: i64,
    sees_all: bool,
}

impl Owners {
    pub(super) fn new(proc_root: PathBuf, passwd: PathBuf) -> Self {
        Self { proc_root, passwd, known: HashMap::new(), since_ms: i64::MIN, sees_all: false }
    }

    /// Begins a round.
    pub(super) fn round(&mut self, now_ms: i64) {
        if (0..HOLD_MS).contains(&now_ms.saturating_sub(self.since_ms)) {
            return;
        }
        self.known.clear();
        self.since_ms = now_ms;
        // Process 2 of a machine is its kernel's, and no container sees it.
        let second = std::fs::read_to_string(self.proc_root.join("2/comm"));
        self.sees_all = second.is_ok_and(|name| name.trim() == "kthreadd");
    }

    /// Whether all processes of the machine can be seen: in a container that one is missing says
    /// nothing.
    pub(super) fn sees_all(&self) -> bool {
        self.sees_all
    }

    /// Whose process `pid` is.
    pub(super) fn of(&mut self, pid: u32) -> Owner {
        if let Some(known) = self.known.get(&pid) {
            return known.clone();
        }
        let owner = self.look_up(pid);
        self.known.insert(pid, owner.clone());
        owner
    }

    fn look_up(&self, pid: u32) -> Owner {
        let folder = self.proc_root.join(pid.to_string());
        let cgroup = match std::fs::read_to_string(folder.join("cgroup")) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound && !folder.exists() => {
                return if self.sees_all { Owner::Gone } else { Owner::Unknown };
            }
            Err(_) => String::new(),
        };
        if let Some(group) = cgroup::owner(&cgroup) {
            return Owner::Job(Arc::from(group.job_id().as_str()));
        }
        let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
        match uid(&status) {
            Some(uid) => Owner::Job(Arc::from(format!("user:{}", self.user(uid)).as_str())),
            None => Owner::Unknown,
        }
    }

    /// The name of a user, else the number.
    fn user(&self, uid: &str) -> String {
        let passwd = std::fs::read_to_string(&self.passwd).unwrap_or_default();
        // `name:password:uid:...`
        let named = passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == uid).then(|| name.to_owned())
        });
        named.unwrap_or_else(|| uid.to_owned())
    }
}

/// The real user id in `/proc/<pid>/status`.
fn uid(status: &str) -> Option<&str> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()
}
