//! One controller a store.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// The right to be the store's controller, until dropped.
///
/// Two controllers on one file would each push its own epoch to the same agents. The lock is the
/// operating system's, on a file beside the store: it goes with its process, however that ends.
/// Commands that add a row beside a running controller (`login-link`, `agent-token`) do not take it.
#[derive(Debug)]
pub struct Claim {
    _lock: File,
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
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse {
                path: store.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(StoreError::Lock { path, source }),
        }
    }
}

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
