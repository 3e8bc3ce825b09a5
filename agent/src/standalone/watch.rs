//! The file as it was read last, and the task that looks whether it changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_protocol::policy::PolicyScope;
use parking_lot::RwLock;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::file;
use super::policies::Policies;
use super::taken;
use crate::agent::Shared;
use crate::error::ConfigError;

/// How often the file is looked at.
const EVERY: Duration = Duration::from_secs(2);
/// How long a new content must have stayed as it is, so that a file being written is not taken for
/// the part of it that is there.
const SETTLED_AFTER: Duration = Duration::from_millis(500);

/// How long after a policy file was taken its dependencies must have a route: services build theirs
/// when they start.
const ROUTED_WITHIN: Duration = Duration::from_secs(10);

/// Most dependencies without a route that are named in one warning.
const NAMES_MAX: usize = 20;

/// A policy file, and what was last good in it.
#[derive(Debug)]
pub(crate) struct PolicyFile {
    path: PathBuf,
    policies: RwLock<Arc<Policies>>,
    refused: AtomicU64,
}

impl PolicyFile {
    /// What holds.
    pub(crate) fn policies(&self) -> Arc<Policies> {
        self.policies.read().clone()
    }

    /// Contents not taken, and times it could not be read.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes a content that has settled. True where the policies are others than before.
    fn take(&self, content: &Content) -> bool {
        let path = self.path.display();
        let policies = match content {
            Content::Bytes(bytes) => Policies::parse(bytes).map_err(|error| error.to_string()),
            Content::Unreadable(why) => Err(why.clone()),
        };
        match policies {
            Ok(policies) if policies == **self.policies.read() => false,
            Ok(policies) => {
                tracing::info!(file = %path, policies = policies.len(), "policy file taken");
                let now = Arc::new(policies);
                let before = std::mem::replace(&mut *self.policies.write(), now.clone());
                taken::tell(Some(&before), &now);
                true
            }
            Err(error) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(file = %path, %error, "policy file refused; the last good one holds");
                false
            }
        }
    }
}

/// What was found where the file should be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Bytes(Vec<u8>),
    /// And why.
    Unreadable(String),
}

/// Tells a content that has settled from one being written, and one that is new from one that was
/// dealt with, good or bad.
#[derive(Debug)]
struct Look {
    dealt_with: Content,
    new: Option<Content>,
}

impl Look {
    /// The content to deal with, where there is one; and when to look again.
    fn at(&mut self, content: Content) -> (Option<&Content>, Duration) {
        if content == self.dealt_with {
            self.new = None;
            return (None, EVERY);
        }
        if self.new.as_ref() == Some(&content) {
            self.new = None;
            self.dealt_with = content;
            return (Some(&self.dealt_with), EVERY);
        }
        self.new = Some(content);
        (None, SETTLED_AFTER)
    }
}

async fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let path = path.to_owned();
    let bytes = spawn_blocking(move || file::read(&path)).await;
    // Only a runtime that is going down lets it end without a result.
    bytes.unwrap_or_else(|stopped| Err(std::io::Error::other(stopped)))
}

/// A policy file that was read and is good, and its content.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: Arc<PolicyFile>,
    content: Vec<u8>,
}

/// Reads the file for the first time.
pub(crate) async fn open(path: PathBuf) -> Result<Opened, ConfigError> {
    let content = match read(&path).await {
        Ok(content) => content,
        Err(source) => {
            let field = "policy_file";
            return Err(ConfigError::File {
                field,
                path,
                source,
            });
        }
    };
    match Policies::parse(&content) {
        Ok(policies) => {
            tracing::info!(file = %path.display(), policies = policies.len(), "policy file taken");
            taken::tell(None, &policies);
            let file = Arc::new(PolicyFile {
                path,
                policies: RwLock::new(Arc::new(policies)),
                refused: AtomicU64::new(0),
            });
            Ok(Opened { file, content })
        }
        Err(error) => Err(ConfigError::PolicyFile { path, error }),
    }
}

/// Looks at the file until the agent stops.
pub(crate) async fn watch(shared: Arc<Shared>, opened: Opened) {
    let Opened { file, content } = opened;
    let mut look = Look {
        dealt_with: Content::Bytes(content),
        new: None,
    };
    let stopping = shared.tasks.stopping.clone();
    let mut wait = EVERY;
    let mut routed_by = Some(Instant::now() + ROUTED_WITHIN);
    loop {
        let content = tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            content = async { sleep(wait).await; read(&file.path).await } => content,
        };
        let content = match content {
            Ok(bytes) => Content::Bytes(bytes),
            Err(error) => Content::Unreadable(format!("cannot be read: {error}")),
        };
        let (settled, next) = look.at(content);
        wait = next;
        let now = Instant::now();
        if settled.is_some_and(|content| file.take(content)) {
            shared.policies_changed(now);
            routed_by = Some(now + ROUTED_WITHIN);
        }
        if routed_by.take_if(|by| now >= *by).is_some() {
            warn_of_unrouted(&shared, &file.policies());
        }
    }
}

/// A name that no route has does nothing, and is mostly a slip of the pen.
fn warn_of_unrouted(shared: &Shared, policies: &Policies) {
    let routes = shared.routes();
    let routed = |scope: &PolicyScope| routes.iter().any(|route| scope.covers(&route.key));
    let names = policies.iter().map(|(scope, _)| scope);
    let unrouted: Vec<_> = names.filter(|name| !routed(name)).collect();
    if unrouted.is_empty() {
        return;
    }
    // A file for many services names what each of them has not: as many as can be read.
    let some = unrouted.iter().take(NAMES_MAX).map(ToString::to_string);
    let routes: Vec<_> = routes.iter().map(|route| route.key.to_string()).collect();
    tracing::warn!(
        dependencies = some.collect::<Vec<_>>().join(", "),
        more = unrouted.len().saturating_sub(NAMES_MAX),
        routes = routes.join(", "),
        "the policy file names dependencies or operations that no route has: their policies have no effect here"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Content {
        Content::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn a_content_is_dealt_with_once_and_when_it_has_settled() {
        let mut look = Look {
            dealt_with: bytes("a"),
            new: None,
        };
        let gone = Content::Unreadable("gone".to_owned());
        for (content, expected, again) in [
            (bytes("a"), None, EVERY),
            // Being written: each look finds more of it.
            (bytes(""), None, SETTLED_AFTER),
            (bytes("b"), None, SETTLED_AFTER),
            (bytes("bc"), None, SETTLED_AFTER),
            (bytes("bc"), Some(bytes("bc")), EVERY),
            (bytes("bc"), None, EVERY),
            // Gone and back between two looks, as some editors do.
            (gone.clone(), None, SETTLED_AFTER),
            (bytes("bc"), None, EVERY),
            (gone.clone(), None, SETTLED_AFTER),
            (gone.clone(), Some(gone.clone()), EVERY),
            (gone, None, EVERY),
            (bytes("bc"), None, SETTLED_AFTER),
            (bytes("bc"), Some(bytes("bc")), EVERY),
        ] {
            let (found, wait) = look.at(content.clone());
            assert_eq!((found, wait), (expected.as_ref(), again), "{content:?}");
        }
    }
}
