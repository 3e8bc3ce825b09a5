//! Doing what the core wants done.

use hedgerow_core::effect::{Effect, Record};
use hedgerow_core::event::{Event, WriteId};

use super::run::Task;
use super::writer;

impl Task {
    /// Sets everything going that the core wants. A write that finds no room fails at once, which
    /// may make the core want something else.
    pub(super) fn carry_out(&mut self) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Persist { write, records } => self.persist(write, records),
                Effect::Push { connection, set } => {
                    if let Some(outbox) = self.outboxes.get(&connection) {
                        self.metrics.pushes.inc();
                        outbox.push(set);
                    }
                }
                Effect::Acknowledge {
                    connection,
                    sequence,
                    refused,
                } => {
                    if let Some(outbox) = self.outboxes.get(&connection) {
                        outbox.acknowledge(sequence, refused);
                    }
                }
                Effect::Reply { request, result } => {
                    // What was ordered shows at once, not with the next tick; and it shows before
                    // its sender is answered, who looks next.
                    self.publish_due = true;
                    if let Some(answer) = self.requests.remove(&request) {
                        self.replies.push((answer, result));
                    }
                }
            }
        }
    }

    fn persist(&mut self, write: WriteId, records: Vec<Record>) {
        let job = writer::Job {
            write,
            records,
            span: tracing::Span::current(),
        };
        if self.jobs.try_send(job).is_err() {
            self.metrics.writes.with_label_values(&["no_room"]).inc();
            let problem = format!("{} writes wait for the store already", writer::JOBS);
            let event = Event::PersistFailed { write, problem };
            self.core.handle_event(self.clock.now(), event);
        }
    }
}
