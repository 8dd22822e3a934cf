//! Who a process belongs to, from the control groups it is in.
//!
//! Told apart by the paths that the tools give them:
//!
//! | who                  | cgroup v1                           | cgroup v2                                   |
//! |----------------------|-------------------------------------|---------------------------------------------|
//! | Slurm job and step   | `/slurm/uid_1000/job_123/step_0/...`  | `/system.slice/slurmstepd.scope/job_123/...`  |
//! | Kubernetes pod       | `/kubepods/burstable/pod<uid>/...`    | `/kubepods.slice/...-pod<uid>.slice/...`        |
//! | container            | `/docker/<id>`                        | `/system.slice/docker-<id>.scope`             |
//! | systemd unit         | `1:name=systemd:/system.slice/<unit>` | `/system.slice/<unit>`                        |
//!
//! Sessions and services of a user are that user's.

/// What the control groups say; the most telling one stands first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// Id of a Slurm job, as `sacct` tells it in `JobIDRaw`.
    Slurm(String),
    /// UID of a Kubernetes pod.
    Pod(String),
    /// First twelve digits of a container's id.
    Container(String),
    /// Name of a systemd unit of the system.
    Unit(String),
}

impl Group {
    /// The id in `samples.job_id`.
    pub(super) fn job_id(&self) -> String {
        match self {
            Self::Slurm(id) | Self::Pod(id) | Self::Unit(id) => id.clone(),
            Self::Container(id) => format!("container:{id}"),
        }
    }
}

/// The owner that `/proc/<pid>/cgroup` tells, if it tells one.
pub(super) fn owner(text: &str) -> Option<Group> {
    // `hierarchy:controllers:path`
    text.lines().filter_map(|line| of_path(line.splitn(3, ':').nth(2)?)).min()
}

fn of_path(path: &str) -> Option<Group> {
    let parts = || path.split('/').filter(|part| !part.is_empty());
    slurm(parts()).or_else(|| pod(parts())).or_else(|| container(parts())).or_else(|| unit(parts()))
}

/// `job_123` below a folder of Slurm's.
fn slurm<'p>(mut parts: impl Iterator<Item = &'p str>) -> Option<Group> {
    parts.find(|part| part.starts_with("slurm") || part.ends_with("slurmstepd.scope"))?;
    let id = parts.find_map(|part| part.strip_prefix("job_"))?;
    (!id.is_empty() && id.bytes().all(|b| b.is_ascii_digit())).then(|| Group::Slurm(id.into()))
}

/// `pod<uid>` below a folder of the kubelet; systemd writes the dashes of the uid as `_`.
fn pod<'p>(mut parts: impl Iterator<Item = &'p str>) -> Option<Group> {
    let first = parts.find(|part| part.contains("kubepods"))?;
    std::iter::once(first).chain(parts).find_map(|part| {
        let part = part.strip_suffix(".slice").unwrap_or(part);
        // `kubepods` holds `pod` as well: the uid stands after the last one.
        let uid = part.rsplit_once("pod").map(|(_, uid)| uid)?.replace('_', "-");
        // Pods of a node's own files have a hash without dashes.
        let whole = matches!(uid.len(), 32 | 36);
        (whole && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-'))
            .then_some(Group::Pod(uid))
    })
}

/// A container's id of 64 hexadecimal digits, whatever stands around it.
fn container<'p>(mut parts: impl Iterator<Item = &'p str>) -> Option<Group> {
    parts.find_map(|part| {
        let part = part.strip_suffix(".scope").unwrap_or(part);
        let id = part.rsplit_once('-').map_or(part, |(_, id)| id);
        let whole = id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit());
        whole.then(|| Group::Container(id[..12].into()))
    })
}

/// The innermost unit of the system.
fn unit<'p>(parts: impl Iterator<Item = &'p str>) -> Option<Group> {
    let mut unit = None;
    for part in parts {
        if part == "user.slice" {
            return None;
        }
        let named = part.ends_with(".service") || part.ends_with(".scope");
        if named && part != "init.scope" {
            unit = Some(Group::Unit(part.into()));
        }
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_who_the_tools_put_it_under() {
        // Breaks when a process is counted for nobody, or for the service that started its job.
        let uid = "0d3c8d4e-8b0f-4a53-9f6e-4d2f8a2f3c11";
        let escaped = uid.replace('-', "_");
        let hash = "9c1185a5c5e9fc54612808977ee8f548";
        let id = "a".repeat(64);
        let lines = [
            ("0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0".into(), "123"),
            ("0::/system.slice/gpu017_slurmstepd.scope/job_124/step_batch".into(), "124"),
            ("9:devices:/slurm/uid_1000/job_123/step_0/task_1\n1:name=systemd:/system.slice/slurmd.service".into(), "123"),
            ("5:memory:/slurm_gpu017/uid_0/job_7/step_extern".into(), "7"),
            (format!("4:cpu:/kubepods/burstable/pod{uid}/{id}"), uid),
            (format!("4:cpu:/kubepods/pod{hash}/{id}"), hash),
            (format!("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{escaped}.slice/cri-containerd-{id}.scope"), uid),
            (format!("0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{escaped}.slice/{id}"), uid),
            (format!("0::/system.slice/docker-{id}.scope"), "container:aaaaaaaaaaaa"),
            (format!("0::/docker/{id}"), "container:aaaaaaaaaaaa"),
            ("0::/system.slice/vllm.service".into(), "vllm.service"),
            ("12:pids:/\n1:name=systemd:/system.slice/vllm.service\n0::/".into(), "vllm.service"),
        ];
        for (text, job_id) in lines {
            assert_eq!(owner(&text).map(|group| group.job_id()).as_deref(), Some(job_id), "{text}");
        }
        for text in [
            "0::/user.slice/user-1000.slice/session-3.scope",
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/train.service",
            "0::/init.scope",
            "0::/",
            "0::/system.slice/slurmstepd.scope/system",
            "",
        ] {
            let told = owner(text).filter(|group| !matches!(group, Group::Unit(_)));
            assert_eq!(told, None, "{text}");
        }
        assert_eq!(owner("0::/user.slice/user-1000.slice/session-3.scope"), None);
    }
}
