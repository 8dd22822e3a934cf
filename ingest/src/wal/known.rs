//! Which logs of senders a log remembers, and for how long.
//!
//! # Why
//! A sender begins a log of a new identity each time that it is started, so that a spool put back
//! to an older copy is never taken for what it has sent before. What is remembered must not grow
//! with every start of every node: of the logs of one name the latest are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::origin::{Position, Reached, Source};

/// Logs of one name that are remembered: those of a sender's last starts, and of its copies.
const LOGS_OF_ONE_MAX: usize = 16;

/// How far the logs of senders are known.
#[derive(Debug, Default)]
pub(super) struct Known {
    reached: Reached,
    /// When each log was last heard of, by a count.
    heard: BTreeMap<Arc<str>, u64>,
    count: u64,
}

impl Known {
    pub(super) fn is_empty(&self) -> bool {
        self.reached.is_empty()
    }

    pub(super) fn reached(&self) -> &Reached {
        &self.reached
    }

    /// Takes note of how far logs are known, where it is further than before.
    pub(super) fn take(&mut self, news: impl IntoIterator<Item = (Source, Position)>) {
        for (key, until) in news {
            self.count += 1;
            let log = Arc::clone(&key.0);
            let known = self.reached.entry(key).or_default();
            *known = until.max(*known);
            if self.heard.insert(Arc::clone(&log), self.count).is_none() {
                self.prune(&log);
            }
        }
    }

    /// All of it, the log that was last heard of at the end.
    pub(super) fn in_order(&self) -> Vec<(&Source, &Position)> {
        let mut all: Vec<_> = self.reached.iter().collect();
        all.sort_by_key(|((log, _), _)| self.heard.get(log));
        all
    }

    /// Forgets the oldest of the logs that have the name of `log`.
    fn prune(&mut self, log: &str) {
        let Some((name, _)) = log.rsplit_once('/') else { return };
        let of_name = self
            .heard
            .iter()
            .filter(|(log, _)| log.rsplit_once('/').is_some_and(|(other, _)| other == name));
        let mut of_name: Vec<_> = of_name.map(|(log, at)| (*at, Arc::clone(log))).collect();
        let Some(surplus) = of_name.len().checked_sub(LOGS_OF_ONE_MAX).filter(|n| *n > 0) else {
            return;
        };
        of_name.sort_unstable();
        let gone: BTreeSet<_> = of_name.into_iter().take(surplus).map(|(_, log)| log).collect();
        self.heard.retain(|log, _| !gone.contains(log));
        self.reached.retain(|(log, _), _| !gone.contains(log));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Table;

    #[test]
    fn of_the_logs_of_one_name_the_latest_are_kept() {
        // Breaks when a node that starts every hour fills the memory of its server, or when its
        // starts make the server forget another node.
        let key = |log: String| (Arc::<str>::from(log), Table::Samples);
        let at = |segment| Position { segment, ..Position::default() };
        let mut known = Known::default();
        known.take([(key("w/other/0".into()), at(7)), (key("plain".into()), at(8))]);
        for start in 0..LOGS_OF_ONE_MAX as u64 {
            known.take([(key(format!("w/n1/{start:02}")), at(start))]);
        }
        assert_eq!(known.reached().len(), 2 + LOGS_OF_ONE_MAX, "as many as are kept");
        // The first is heard of again; the second is now the oldest.
        known.take([(key("w/n1/00".into()), at(99))]);
        known.take([(key("w/n1/new".into()), at(1))]);
        assert_eq!(known.reached().len(), 2 + LOGS_OF_ONE_MAX);
        assert!(!known.reached().contains_key(&key("w/n1/01".into())));
        assert_eq!(known.reached()[&key("w/n1/00".into())], at(99));
        assert_eq!(known.reached()[&key("w/other/0".into())], at(7));
        let last: Vec<_> = known.in_order().into_iter().map(|((log, _), _)| &**log).collect();
        assert_eq!(last[last.len() - 2..], ["w/n1/00", "w/n1/new"]);
        // What is older than what is known changes nothing.
        known.take([(key("w/n1/00".into()), at(5))]);
        assert_eq!(known.reached()[&key("w/n1/00".into())], at(99));
    }
}
