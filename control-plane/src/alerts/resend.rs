//! Telling a receiver that forgets again what still fires.
//!
//! These are no notices: an episode's beginning and end are still told once each, and counted once.
//! One that fails is not tried again before the next is due.

use hedgerow_core::effect::AlertState;

use super::deliver::Carrier;
use super::notice::Notice;

/// Most alerts in one request.
const AT_ONCE: usize = 200;

impl Carrier {
    /// Tells the receiver of every episode that it was told the beginning of and that goes on. Not
    /// while notices are handed over: what ends must not be told again after its end.
    pub(super) async fn resend(&self) {
        let receiver = self.receiver.name();
        let standing = match self.store.outbox_standing(receiver).await {
            Ok(standing) => standing,
            Err(error) => {
                tracing::error!(receiver, error = error.in_full(), "outbox not read");
                return;
            }
        };
        for alerts in standing.chunks(AT_ONCE) {
            if let Err(problem) = self.tell_again(alerts).await {
                let (alerts, problem) = (alerts.len(), problem.to_string());
                tracing::warn!(
                    receiver,
                    alerts,
                    problem,
                    "what still fires was not told again"
                );
                return;
            }
        }
    }

    async fn tell_again(&self, alerts: &[AlertState]) -> Result<(), super::attempt::AttemptError> {
        let dashboard = self.settings.dashboard.as_ref();
        let notices = alerts.iter().map(|it| Notice::of(it, false, dashboard));
        let message = self
            .settings
            .message(&self.receiver, notices.collect(), false);
        self.receiver.attempt(&message).await.map(|_| ())
    }
}
