//! Being generated.
