use super::*;

/// One attempt from 0 to 100 ms, suspended for a part of it, with what others took of its GPUs.
fn suspended(used_ratio: f64, taken: &[(i64, i64)]) -> Suspensions {
    let one =
        Suspension { ended: 100, used_ratio, used_else_ratio: used_ratio, ..Suspension::default() };
    let mut all = Suspensions { jobs: HashMap::from([("1".to_owned(), vec![0])]), all: vec![one] };
    all.take(taken.iter().map(|stretch| (0, *stretch)).collect());
    all
}

#[test]
fn suspension_lies_where_others_held_the_gpu_then_evenly() {
    // Breaks when a job and the one that it made room for are both taken to hold the GPU.
    let all = suspended(0.7, &[(20, 30), (25, 40), (90, 120)]);
    let one = all.get(0);
    // 30 of 100 suspended, 30 taken: all of it there.
    let told = [10, 20, 21, 40, 41, 90, 91, 100].map(|at| one.used_ratio(at));
    assert_eq!(told, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    let mut cuts = Vec::new();
    one.cuts((10, 95), &mut cuts);
    assert_eq!(cuts, [20, 40, 90]);
    // 40 suspended, 20 taken: the other 20 over the 80 that are left. 10 suspended: half of it.
    let more = suspended(0.6, &[(0, 20)]);
    assert_eq!([10, 50].map(|at| more.get(0).used_ratio(at)), [0.0, 0.75]);
    let less = suspended(0.9, &[(0, 20)]);
    assert_eq!([10, 50].map(|at| less.get(0).used_ratio(at)), [0.5, 1.0]);
    assert!(!suspended(0.5, &[(-20, 0), (100, 140)]).get(0).was_taken());
}

#[test]
fn suspension_explains_idle_readings_before_busy_ones() {
    // Breaks when a job is called idle, or less busy, for the time of its suspension.
    let read = |used_ratio: f64, idle_ratio: f64| {
        let mut all = suspended(used_ratio, &[]);
        all.all[0].idle_ratio = Some(idle_ratio);
        [Some(true), Some(false), None].map(|idle| all.get(0).read_ratio(50, idle))
    };
    // Half suspended: all of a half that is idle, half of what is always idle, and where a quarter
    // is idle that and a third of the rest.
    assert_eq!(read(0.5, 0.5), [0.0, 1.0, 0.5]);
    assert_eq!(read(0.5, 1.0), [0.5, 1.0, 0.5]);
    let quarter = read(0.5, 0.25);
    assert_eq!(quarter[0], 0.0);
    assert!((quarter[1] - 2.0 / 3.0).abs() < 1e-12);
    assert_eq!(read(0.5, 0.0), [0.0, 0.5, 0.5]);
    // What counts is the share that was not suspended, however it is laid.
    for (used_ratio, idle_ratio) in [(0.9, 0.3), (0.2, 0.3), (0.0, 1.0), (0.4, 0.6)] {
        let [idle, busy, _] = read(used_ratio, idle_ratio);
        let sum = idle * idle_ratio + busy * (1.0 - idle_ratio);
        assert!((sum - used_ratio).abs() < 1e-12, "{used_ratio} {idle_ratio}: {sum}");
    }
}
