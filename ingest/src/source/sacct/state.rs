//! Job states and exit codes, as text or as the database's numbers.

/// States by their number in slurmdb.
const STATES: [&str; 12] = [
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
    "OUT_OF_MEMORY",
];

/// Short forms and the states that come without a number.
const SHORT: [(&str, &str); 18] = [
    ("PD", "PENDING"),
    ("R", "RUNNING"),
    ("S", "SUSPENDED"),
    ("CD", "COMPLETED"),
    ("CA", "CANCELLED"),
    ("F", "FAILED"),
    ("TO", "TIMEOUT"),
    ("NF", "NODE_FAIL"),
    ("PR", "PREEMPTED"),
    ("BF", "BOOT_FAIL"),
    ("DL", "DEADLINE"),
    ("OOM", "OUT_OF_MEMORY"),
    ("CG", "COMPLETING"),
    ("CF", "CONFIGURING"),
    ("RQ", "REQUEUED"),
    ("RS", "RESIZING"),
    ("RV", "REVOKED"),
    ("OUT_OF_ME", "OUT_OF_MEMORY"),
];

/// The upper-case base state of `CANCELLED by 380693`, `CANCELLED+`, `CA` or `4`; `None` for
/// blank. A word that Slurm does not know stays, in upper case.
pub(crate) fn base_state(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?.trim_end_matches('+').to_uppercase();
    if let Ok(number) = word.parse::<u32>() {
        // The low byte is the base state, the rest are flags.
        return STATES.get((number & 0xff) as usize).map(|state| (*state).to_owned());
    }
    let long = SHORT.iter().find(|(short, _)| *short == word).map(|(_, long)| (*long).to_owned());
    Some(long.unwrap_or(word))
}

/// A state of any scheduler in upper case; Slurm's own lose what stands behind them.
pub(crate) fn upper_state(text: &str) -> String {
    match base_state(text) {
        Some(state) if known_state(text) => state,
        _ => text.trim().to_uppercase(),
    }
}

/// Whether Slurm has such a state.
pub(crate) fn known_state(text: &str) -> bool {
    base_state(text).is_some_and(|state| {
        STATES.contains(&state.as_str()) || SHORT.iter().any(|(_, long)| *long == state)
    })
}

/// Whether a job in `state` has not yet left: it waits, runs or is held still.
pub(crate) fn unfinished(state: Option<&str>) -> bool {
    matches!(
        state,
        None | Some(
            "PENDING" | "RUNNING" | "SUSPENDED" | "COMPLETING" | "CONFIGURING" | "RESIZING"
        )
    )
}

/// Exit code of `CODE:SIGNAL`; a job killed by a signal has 128 plus the signal, as in a shell.
pub(crate) fn exit_code(text: &str) -> Option<i32> {
    let (code, signal) = text.trim().split_once(':').unwrap_or((text.trim(), "0"));
    let (code, signal): (i32, i32) = (code.parse().ok()?, signal.parse().ok()?);
    Some(if code == 0 && signal > 0 { 128_i32.checked_add(signal)? } else { code })
}

/// Exit code of the wait status that slurmdb keeps: code in the second byte, signal in the first.
pub(crate) fn wait_status(text: &str) -> Option<i32> {
    let status = text.trim().parse::<f64>().ok().filter(|s| (0.0..=4_294_967_295.0).contains(s))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let status = status as u32;
    let (code, signal) = ((status >> 8) & 0xff, status & 0x7f);
    i32::try_from(if code == 0 && signal > 0 { 128 + signal } else { code }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_lose_their_trimmings() {
        // Breaks when `CANCELLED by 380693` counts as a state of its own.
        for (text, state) in [
            ("CANCELLED by 380693", "CANCELLED"),
            ("CANCELLED+", "CANCELLED"),
            ("completed", "COMPLETED"),
            ("OOM", "OUT_OF_MEMORY"),
            ("11", "OUT_OF_MEMORY"),
            ("3", "COMPLETED"),
        ] {
            assert_eq!(base_state(text).as_deref(), Some(state));
            assert!(known_state(text));
        }
        assert_eq!(base_state(" "), None);
        assert_eq!(base_state("99"), None);
        assert!(!known_state("my job"));
    }

    #[test]
    fn a_signal_is_an_exit_code_above_128() {
        // Breaks when a killed job reads as a success; 35072 = 137 * 256.
        assert_eq!(exit_code("1:0"), Some(1));
        assert_eq!(exit_code("0:9"), Some(137));
        assert_eq!(exit_code("0:0"), Some(0));
        assert_eq!(exit_code("x"), None);
        assert_eq!(wait_status("35072"), Some(137));
        assert_eq!(wait_status("9"), Some(137));
        assert_eq!(wait_status("256"), Some(1));
        assert_eq!(wait_status("-1"), None);
    }
}
