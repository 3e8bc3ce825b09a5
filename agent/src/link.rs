//! The stream to the controller: the only module of the agent that does network.
//!
//! What is to be said and when is decided in [`state`], without a socket or a clock. This file
//! moves bytes for it: one task an agent, no queue but a bounded outbox. Nothing here is on a
//! call's way; a controller that is gone, slow or wrong costs calls nothing.

mod backoff;
mod cache;
mod dial;
pub(crate) mod lost;
mod refusals;
pub(crate) mod state;

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::session::{AgentMessage, Hello};
use hedgerow_protocol::wire;
use parking_lot::Mutex;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tonic::Status;

pub use self::dial::LinkError;
use self::dial::Stream;
pub(crate) use self::dial::{Dialer, LinkSettings};
use self::lost::Lost;
use self::state::{Input, Link, Notice, Output};
use crate::host::Host;

/// How long the last words may take to be heard when the service stops.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// Keeps the link of one agent. Dropped, the link says goodbye by itself and ends.
pub(crate) struct LinkHandle {
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl LinkHandle {
    /// Sends what the last interval saw and goodbye, and waits a second at most for both to be
    /// heard. Twice does no harm.
    pub(crate) async fn shutdown(&self) {
        self.stop.cancel();
        let task = self.task.lock().take();
        if let Some(task) = task {
            // A task that panicked has nothing left to say.
            let _ = timeout(FAREWELL_MAX * 2, task).await;
        }
    }
}

impl Drop for LinkHandle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Starts the link on the current runtime. Never waits for the controller: the agent works without.
pub(crate) fn spawn(host: Arc<dyn Host>, dialer: Dialer) -> LinkHandle {
    let dialer = Arc::new(dialer);
    let stop = CancellationToken::new();
    let driver = Driver {
        link: Link::new(host, Instant::now()),
        dialer,
        connection: Connection::None,
    };
    let task = tokio::spawn(driver.run(stop.clone()));
    LinkHandle {
        stop,
        task: Mutex::new(Some(task)),
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<Stream, Lost>> + Send>>;

enum Connection {
    None,
    Opening(Opening),
    Open(Box<Stream>),
}

impl Connection {
    /// What comes next from the network. Cancel safe: an unfinished step goes on where it was.
    async fn next(&mut self) -> Input {
        loop {
            match self {
                Self::None => std::future::pending().await,
                Self::Opening(opening) => match opening.as_mut().await {
                    Ok(stream) => *self = Self::Open(Box::new(stream)),
                    Err(lost) => return Input::Ended(lost),
                },
                Self::Open(stream) => return read(stream.inbox.message().await),
            }
        }
    }
}

fn read(message: Result<Option<wire::proto::ControllerMessage>, Status>) -> Input {
    match message {
        Ok(Some(message)) => match wire::controller_message(message) {
            Ok(message) => Input::Message(message),
            Err(error) => Input::Ended(Lost::Unreadable(error.to_string())),
        },
        Ok(None) => Input::Ended(Lost::Closed),
        Err(status) => Input::Ended(status.into()),
    }
}

struct Driver {
    link: Link,
    dialer: Arc<Dialer>,
    connection: Connection,
}

impl Driver {
    async fn run(mut self, stop: CancellationToken) {
        let mut stopping = false;
        loop {
            if self.act().is_break() {
                return self.farewell().await;
            }
            let due = self.link.poll_timeout();
            let input = tokio::select! {
                // The order is a priority: leaving first, then what is due, then what came in. A
                // controller that talks without end cannot keep a heartbeat from being sent.
                biased;
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    Input::Shutdown
                }
                () = sleep_until(due) => Input::Timeout,
                input = self.connection.next() => input,
            };
            self.link.handle(input, Instant::now(), rand::random());
        }
    }

    /// Does what the state asks for. Breaks where nothing more is to come.
    fn act(&mut self) -> ControlFlow<()> {
        while let Some(output) = self.link.poll_output() {
            match output {
                Output::Open(hello) => self.open(*hello),
                Output::Send(message) => self.send(*message),
                Output::Drop => self.connection = Connection::None,
                Output::Notice(notice) => tell(&notice),
                Output::Finish => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }

    fn open(&mut self, hello: Hello) {
        let dialer = Arc::clone(&self.dialer);
        let hello = AgentMessage::Hello(hello).into();
        self.connection = Connection::Opening(Box::pin(async move { dialer.open(hello).await }));
    }

    fn send(&mut self, message: AgentMessage) {
        let Connection::Open(stream) = &self.connection else {
            return;
        };
        match stream.outbox.try_send(message.into()) {
            // Closed: the stream is over, and reading from it is about to say why.
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(_)) => {
                self.link.handle(
                    Input::Ended(Lost::NotReading),
                    Instant::now(),
                    rand::random(),
                );
            }
        }
    }

    /// Closes our side and waits for the controller to have read it.
    async fn farewell(self) {
        let Connection::Open(stream) = self.connection else {
            return;
        };
        let Stream {
            outbox,
            mut inbox,
            connection: _connection,
        } = *stream;
        drop(outbox);
        let read_to_the_end = async { while let Ok(Some(_)) = inbox.message().await {} };
        // A controller that does not close its side has had its second.
        let _ = timeout(FAREWELL_MAX, read_to_the_end).await;
    }
}

/// The only place that logs for the link: each episode once.
fn tell(notice: &Notice) {
    match notice {
        Notice::Up { controller } => {
            tracing::info!(link.controller = %controller, "the controller is there");
        }
        Notice::Down(lost) if lost.is_planned() => {
            tracing::info!(
                link.reason = lost.kind(),
                "{lost}; hedging goes on as last directed"
            );
        }
        Notice::Down(lost) => {
            tracing::warn!(
                link.reason = lost.kind(),
                "{lost}; hedging goes on as last directed"
            );
        }
        Notice::Refused(refused) => {
            let route = refused.route.as_ref().map(ToString::to_string);
            tracing::warn!(
                directive.route = route.as_deref().unwrap_or("the whole set"),
                directive.stamp = refused.stamp.map(tracing::field::display),
                "a directive was refused, what was held stays: {}",
                refused.reason
            );
        }
        Notice::ReportRefused(reason) => {
            tracing::warn!("the controller refused a report: {reason}");
        }
    }
}
