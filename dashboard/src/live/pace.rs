//! How much of what changed goes out at once. A browser puts a row in place within about a
//! millisecond; a thousand rows in one piece would keep it from everything else for a second, each
//! second. So rows go in small messages with pauses between, and of many rows a share goes with each
//! snapshot, in turns: none is passed over, and none is sent as it was a while ago.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::fragment::{Fragment, When};

/// Between two messages of one snapshot: the page does what else it has to do.
pub(super) const PAUSE: Duration = Duration::from_millis(40);
/// Bytes of rows in one message: some ten of the overview's, which a browser takes in one go.
const MESSAGE_BYTES: usize = 24 * 1024;
/// Messages of rows with one snapshot; with the pauses they fill most of the second until the next.
const MESSAGES: usize = 16;

/// What a page was sent, and whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Hash of what was last sent for each element.
    sent: HashMap<String, u64>,
    /// The row that is the next one's turn.
    turn: usize,
}

impl Pace {
    /// The messages that bring a page to what `fragments` say, or nearer to it.
    pub(super) fn messages(&mut self, fragments: &[Fragment]) -> Vec<String> {
        let (rows, parts): (Vec<_>, Vec<_>) = fragments.iter().partition(|it| it.outer);
        let mut messages = vec![String::new()];
        for part in parts {
            if self.is_due(part) {
                part.write(&mut messages[0]);
            }
        }
        // Of rows in the last message: the page's other parts go in one piece, with the first of them.
        let mut bytes = 0;
        let from = self.turn.min(rows.len());
        for place in (from..rows.len()).chain(0..from) {
            let row = rows[place];
            let full = bytes >= MESSAGE_BYTES;
            if full && messages.len() >= MESSAGES && row.when == When::Changed {
                self.turn = place;
                break;
            }
            if self.is_due(row) {
                if full {
                    messages.push(String::new());
                    bytes = 0;
                }
                let last = messages.last_mut().expect("it begins with one");
                let before = last.len();
                row.write(last);
                bytes += last.len() - before;
            }
        }
        messages.retain(|it| !it.is_empty());
        messages
    }

    /// Whether it has to be sent; remembered as sent.
    fn is_due(&mut self, fragment: &Fragment) -> bool {
        let mut hasher = DefaultHasher::new();
        fragment.html.hash(&mut hasher);
        let hash = hasher.finish();
        let differs = self.sent.insert(fragment.id.clone(), hash) != Some(hash);
        match fragment.when {
            When::Always => true,
            When::Changed => differs,
            When::Covered => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn rows(count: usize, text: &str) -> Vec<Fragment> {
        (0..count)
            .map(|i| Fragment {
                id: format!("r-{i}"),
                outer: true,
                html: format!("<tr>{text}{}</tr>", "x".repeat(3_000)),
                when: When::Changed,
            })
            .collect()
    }

    fn ids(messages: &[String]) -> Vec<String> {
        let all = messages.concat();
        let parts = all.split("hx-target=\"#").skip(1);
        parts
            .map(|part| part.split('"').next().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn few_rows_go_in_one_message_and_once() {
        let mut pace = Pace::default();
        assert_eq!(pace.messages(&rows(5, "a")).len(), 1);
        assert!(pace.messages(&rows(5, "a")).is_empty());
        assert_eq!(ids(&pace.messages(&rows(5, "b"))).len(), 5);
    }

    #[test]
    fn of_many_rows_each_has_its_turn_in_messages_of_a_bounded_size() {
        let (mut pace, mut seen) = (Pace::default(), BTreeSet::new());
        for turn in 0..10 {
            let messages = pace.messages(&rows(1_000, &turn.to_string()));
            assert!(messages.len() <= MESSAGES, "{}", messages.len());
            for message in &messages {
                assert!(message.len() < MESSAGE_BYTES + 4_000, "{}", message.len());
            }
            let sent = ids(&messages);
            assert!(sent.len() >= 100, "{}", sent.len());
            let anew = sent.iter().filter(|id| !seen.contains(*id)).count();
            assert!(anew == sent.len() || seen.len() + anew == 1_000, "in turns");
            seen.extend(sent);
        }
        assert_eq!(seen.len(), 1_000);
    }

    #[test]
    fn what_goes_as_a_piece_of_the_table_is_not_sent_again_and_the_frame_never_waits() {
        let mut pace = Pace::default();
        let mut all = rows(1_000, "a");
        for row in &mut all {
            row.when = When::Covered;
        }
        all.push(Fragment {
            id: "fleet".into(),
            outer: false,
            html: "<table></table>".into(),
            when: When::Always,
        });
        assert_eq!(ids(&pace.messages(&all)), ["fleet"]);
        assert!(pace.messages(&rows(1_000, "a")).is_empty());
        let mut all = rows(1_000, "b");
        all.push(Fragment {
            id: "kills".into(),
            outer: false,
            html: "everything".into(),
            when: When::Changed,
        });
        assert_eq!(ids(&pace.messages(&all))[0], "kills");
    }
}
