//! Whose the processes are.

use super::*;

fn with(processes: &Value) -> Value {
    driver(&[over(plain("GPU-a"), &json!({ "processes": processes, "graphics": [] }))])
}

#[test]
fn a_reading_names_the_jobs_of_its_processes() {
    // Breaks when GPU-hours go to nobody, to the wrong job, or to one job twice.
    let uid = "0d3c8d4e-8b0f-4a53-9f6e-4d2f8a2f3c11";
    let mut node = Node::new(&with(&json!([
        [10, GIB],
        [11, GIB],
        [12, GIB],
        [13, GIB],
        [14, GIB],
        [15, GIB],
        [99, GIB],
    ])));
    node.write("passwd", "root:x:0:0::/root:/bin/sh\nada:x:1000:100::/home/ada:/bin/sh\n");
    node.process(10, "0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0\n", 1000);
    node.process(11, "9:devices:/slurm/uid_1000/job_123/step_1\n", 1000);
    node.process(12, &format!("0::/kubepods/burstable/pod{uid}/x\n"), 0);
    node.process(13, "0::/system.slice/vllm.service\n", 7);
    node.process(14, "0::/user.slice/user-1000.slice/session-3.scope\n", 1000);
    node.process(15, "0::/user.slice/user-1001.slice/session-4.scope\n", 1001);
    let found = row(&node.well(0), 0);
    let jobs = format!("{uid},123,user:1001,user:ada,vllm.service");
    assert_eq!(found["job_id"], json!(jobs));
    assert_eq!(found["processes"], json!(7));
    // Remembered for a while, then looked up again.
    node.says(&with(&json!([[13, GIB]])));
    node.process(13, "0::/system.slice/slurmstepd.scope/job_9/step_0\n", 7);
    assert_eq!(row(&node.well(5), 0)["job_id"], json!("vllm.service"));
    assert_eq!(row(&node.well(15), 0)["job_id"], json!("9"));
    node.says(&with(&json!([])));
    let found = row(&node.well(30), 0);
    assert_eq!((found.get("job_id"), &found["processes"]), (None, &json!(0)));
}

#[test]
fn memory_without_a_living_process_is_an_event() {
    // Breaks when a leak stays unseen, or a job that ends is taken for one.
    let mut node = Node::new(&with(&json!([[10, 8 * GIB]])));
    node.process(10, "0::/system.slice/vllm.service\n", 7);
    assert_eq!(events(&node.well(0)), [""; 0]);
    // Its process has ended, and the driver still lists it.
    std::fs::remove_dir_all(node.folder.path().join("proc/10")).unwrap();
    assert_eq!(events(&node.well(30)), [""; 0], "it may be ending");
    let told = format!("GPU-a memory-held: {} bytes held by no living process", 8 * GIB);
    let out = node.well(60);
    assert_eq!(events(&out), [told]);
    assert_eq!(row(&out, 0).get("job_id"), None);
    assert_eq!(events(&node.well(90)), [""; 0], "told once");
}

#[test]
fn in_a_container_a_process_that_is_not_seen_says_nothing() {
    // Breaks when a collector in a container takes every job for a leak.
    let mut node = Node::new(&with(&json!([[10, 8 * GIB]])));
    node.write("proc/2/comm", "bash\n");
    for at_s in [0, 30, 60, 90] {
        let out = node.well(at_s);
        assert_eq!(events(&out), [""; 0]);
        assert_eq!(row(&out, 0)["processes"], json!(1));
    }
}
