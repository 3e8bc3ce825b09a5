//! Reading the file. Blocks: for the blocking pool.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

use super::policies::BYTES_MAX;

/// The file's bytes; one more than it may have, where it has more.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    // Asked before it is opened: opening a pipe waits for its writer, perhaps for ever.
    if !std::fs::metadata(path)?.is_file() {
        let expected = "not a regular file; expected one";
        return Err(Error::new(ErrorKind::InvalidInput, expected));
    }
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
