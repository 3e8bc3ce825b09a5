//! One controller a store.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// The right to be the store's controller, until dropped.
///
/// Two controllers on one file would each push its own epoch to the same agents. The lock is the
/// operating system's, on a file beside the store: it goes with its process, however that ends.
/// Commands that add a row beside a running controller (`login-link`, `agent-token`) do not take it.
#[derive(Debug)]
pub struct Claim {
    lock: File,
}

impl Claim {
    /// Takes it, or says who has it.
    pub fn take(store: &Path) -> Result<Self, StoreError> {
        // However the file is named: two names of one store are one lock.
        let path = beside(&resolved(store));
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|source| StoreError::Lock {
                path: path.clone(),
                source,
            })?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse {
                path: store.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(StoreError::Lock { path, source }),
        }
    }

    /// Writes down where this controller's dashboard is, for commands beside it.
    pub fn tell(&self, dashboard: &str) -> std::io::Result<()> {
        self.lock.set_len(0)?;
        self.lock.write_all_at(dashboard.as_bytes(), 0)
    }

    /// Where the dashboard of the store's controller is, or was when it last ran.
    pub fn told(store: &Path) -> Option<String> {
        let file = File::open(beside(&resolved(store))).ok()?;
        let mut text = String::new();
        file.take(TOLD_LEN_MAX).read_to_string(&mut text).ok()?;
        (!text.is_empty()).then_some(text)
    }
}

/// Longest address that is read.
const TOLD_LEN_MAX: u64 = 2048;

/// Longest chain of links that is followed to a file that is not there yet, as in Linux.
const LINKS_MAX: usize = 40;

/// Where the store is, or will be made, without links on the way. Where that cannot be told, as
/// given: opening says what is wrong.
fn resolved(store: &Path) -> PathBuf {
    let mut path = store.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(there) = path.canonicalize() {
            return there;
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        // Not there yet, or a link to what is not there yet.
        let Ok(target) = path.read_link() else {
            let (Ok(folder), Some(name)) = (folder.canonicalize(), path.file_name()) else {
                break;
            };
            return folder.join(name);
        };
        path = folder.join(target);
    }
    store.to_owned()
}

fn beside(store: &Path) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(".lock");
    name.into()
}
