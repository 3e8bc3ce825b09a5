//! Which rows of an open overview are sent when.
//!
//! A thousand rows whose figures all change each second are megabytes a second that nobody can read.
//! So: what a row says in words (state, reason, alerts, who holds what) is sent at once, in whatever
//! row; figures are sent each second for the first rows, which are the worst and the ones in sight,
//! and in turn for the others, those first that have waited longest. With as many rows as are sent
//! at once, or fewer, every change is sent as it comes.

use std::collections::HashMap;

/// Rows whose figures are sent with each snapshot, from the top.
const FIRST: usize = 40;
/// Further rows whose figures are sent with each snapshot, in turn.
const IN_TURN: usize = 40;

/// A row as it is now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now<'a> {
    pub(super) id: &'a str,
    pub(super) gist: u64,
    pub(super) hash: u64,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    gist: u64,
    /// None: what the page shows is not known.
    hash: Option<u64>,
    turn: u64,
}

/// What an open page has been sent.
#[derive(Debug, Default)]
pub(super) struct Turns {
    sent: HashMap<String, Sent>,
    turn: u64,
}

impl Turns {
    /// The page shows these rows, rendered a moment ago: their figures are due in turn.
    pub(super) fn shown(&mut self, rows: &[Now<'_>]) {
        self.keep(rows, |row| Sent {
            gist: row.gist,
            hash: None,
            turn: 0,
        });
    }

    /// All of them go out as they are.
    pub(super) fn all(&mut self, rows: &[Now<'_>]) {
        let turn = self.turn;
        self.keep(rows, |row| Sent {
            gist: row.gist,
            hash: Some(row.hash),
            turn,
        });
    }

    fn keep<'a>(&mut self, rows: &[Now<'a>], sent: impl Fn(&Now<'a>) -> Sent) {
        self.sent = rows
            .iter()
            .map(|row| (row.id.to_owned(), sent(row)))
            .collect();
    }

    /// Places of the rows to be sent now, in their order.
    pub(super) fn pick(&mut self, rows: &[Now<'_>]) -> Vec<usize> {
        self.turn += 1;
        let mut picked = Vec::new();
        let mut waiting = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            match self.sent.get(row.id) {
                Some(sent) if sent.hash == Some(row.hash) => {}
                Some(sent) if sent.gist == row.gist && place >= FIRST => {
                    waiting.push((sent.turn, place));
                }
                _ => picked.push(place),
            }
        }
        waiting.sort_unstable();
        picked.extend(waiting.into_iter().take(IN_TURN).map(|(_, place)| place));
        picked.sort_unstable();
        for &place in &picked {
            let row = rows[place];
            self.sent.insert(
                row.id.to_owned(),
                Sent {
                    gist: row.gist,
                    hash: Some(row.hash),
                    turn: self.turn,
                },
            );
        }
        if self.sent.len() > rows.len() * 2 + FIRST {
            // Rows that are gone: what stays is what is there.
            let there: std::collections::HashSet<&str> = rows.iter().map(|row| row.id).collect();
            self.sent.retain(|id, _| there.contains(id.as_str()));
        }
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ids: &[String], second: u64, gist: impl Fn(usize) -> u64) -> Vec<Now<'_>> {
        ids.iter()
            .enumerate()
            .map(|(i, id)| Now {
                id,
                gist: gist(i),
                hash: second * 10_000 + i as u64,
            })
            .collect()
    }

    fn ids(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("r-{i}")).collect()
    }

    #[test]
    fn u01_few_rows_are_sent_as_they_change_and_only_then() {
        let ids = ids(13);
        let mut turns = Turns::default();
        turns.all(&rows(&ids, 0, |_| 0));
        assert!(turns.pick(&rows(&ids, 0, |_| 0)).is_empty());
        assert_eq!(turns.pick(&rows(&ids, 1, |_| 0)).len(), 13);
    }

    #[test]
    fn u01_of_a_thousand_rows_no_second_sends_more_than_a_few_and_each_has_its_turn() {
        let ids = ids(1000);
        let mut turns = Turns::default();
        turns.shown(&rows(&ids, 0, |_| 0));
        let mut last = vec![0; 1000];
        for second in 1..=60 {
            let picked = turns.pick(&rows(&ids, second, |_| 0));
            assert_eq!(picked.len(), FIRST + IN_TURN);
            assert!(picked.starts_with(&(0..FIRST).collect::<Vec<_>>()));
            for place in picked {
                last[place] = second;
            }
        }
        let longest = last.iter().map(|at| 60 - at).max().unwrap();
        assert!(longest <= 24, "a row waited {longest} s");
    }

    #[test]
    fn u01_a_change_of_state_does_not_wait_for_its_turn() {
        let ids = ids(1000);
        let mut turns = Turns::default();
        turns.all(&rows(&ids, 0, |_| 0));
        let picked = turns.pick(&rows(&ids, 1, |i| u64::from(i == 999)));
        assert!(picked.contains(&999));
        assert_eq!(picked.len(), FIRST + IN_TURN + 1);
    }
}
