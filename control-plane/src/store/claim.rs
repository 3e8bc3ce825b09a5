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
        let path = beside(store);
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

fn beside(store: &Path) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(".lock");
    name.into()
}
