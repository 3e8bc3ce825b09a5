//! Bytes to protobuf, within bounds.
//!
//! Why not protobuf's own codec: it bounds a message's bytes, not what they unfold to. An empty
//! `RouteReport` is two bytes on the wire and several hundred in memory, so that one message of the
//! size allowed would become hundreds of megabytes before anybody could refuse it. Here the
//! elements are counted first, without unfolding any.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::Buf;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

use super::{WireError, proto};
use crate::limits::MESSAGE_BYTES_MAX;

/// Most messages of one kind in a message. Twice what a full report holds (64 routes with 16
/// replicas each), so that one that is a little too large is still read, and refused by name.
const ELEMENTS_MAX: usize = 2048;
/// Most texts of one kind in a message: twice 64 routes with 256 replicas on probation each.
const TEXTS_MAX: usize = 32_768;

/// What a stream's buffers begin with. Most messages are smaller, and ten thousand streams have two
/// each; they grow where needed.
const BUFFER_BYTES: usize = 2048;
/// When a buffer is handed on although more could be put in.
const YIELD_BYTES: usize = 32 * 1024;

/// A message whose elements can be counted before it is decoded.
pub trait Bounded: Message + Default + 'static {
    /// Every repeated field: the field numbers that lead to it, and how many elements it may have
    /// in the whole message.
    const REPEATED: &'static [(&'static [u32], usize)];
}

impl Bounded for proto::AgentMessage {
    const REPEATED: &'static [(&'static [u32], usize)] = &[
        (&[1, 6], TEXTS_MAX),       // hello.capabilities
        (&[1, 7], ELEMENTS_MAX),    // hello.held
        (&[2, 6], ELEMENTS_MAX),    // report.routes
        (&[2, 6, 8], ELEMENTS_MAX), // report.routes.replicas
        (&[3, 2], ELEMENTS_MAX),    // applied.routes
    ];
}

impl Bounded for proto::ControllerMessage {
    const REPEATED: &'static [(&'static [u32], usize)] = &[
        (&[2, 2], ELEMENTS_MAX), // directives.directives
        (&[2, 2, 7], TEXTS_MAX), // directives.directives.probation
    ];
}

/// Decodes a message. Neither panics nor takes more than a few megabytes, whatever the bytes.
pub fn decode<M: Bounded>(mut bytes: impl Buf) -> Result<M, WireError> {
    if bytes.remaining() > MESSAGE_BYTES_MAX {
        let problem = format_args!(
            "{} bytes; at most {MESSAGE_BYTES_MAX} are allowed",
            bytes.remaining()
        );
        return Err(WireError::new("", problem));
    }
    let decoded = if bytes.chunk().len() == bytes.remaining() {
        check_counts::<M>(bytes.chunk())?;
        M::decode(bytes)
    } else {
        let whole = bytes.copy_to_bytes(bytes.remaining());
        check_counts::<M>(&whole)?;
        M::decode(whole)
    };
    decoded.map_err(|error| WireError::new("", error))
}

fn check_counts<M: Bounded>(bytes: &[u8]) -> Result<(), WireError> {
    for (path, max) in M::REPEATED {
        // What the scan cannot read the decoder will refuse, with a better message.
        if let Some(found) = count(bytes, path)
            && found > *max
        {
            let problem =
                format_args!("{found} elements in field {path:?}; at most {max} are read");
            return Err(WireError::new("", problem));
        }
    }
    Ok(())
}

/// How many elements lie at the end of `path`. None: this is not protobuf.
fn count(mut bytes: &[u8], path: &[u32]) -> Option<usize> {
    let (first, rest) = path.split_first()?;
    let mut found = 0_usize;
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        match tag & 7 {
            0 => {
                varint(&mut bytes)?;
            }
            1 => skip(&mut bytes, 8)?,
            2 => {
                let len = varint(&mut bytes)?;
                let (inner, after) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
                bytes = after;
                if tag >> 3 == u64::from(*first) {
                    found += if rest.is_empty() {
                        1
                    } else {
                        count(inner, rest)?
                    };
                }
            }
            5 => skip(&mut bytes, 4)?,
            // Groups: nothing of ours, and what is in one is counted as if it stood outside, so at
            // worst too many are found.
            3 | 4 => {}
            _ => return None,
        }
    }
    Some(found)
}

fn skip(bytes: &mut &[u8], len: usize) -> Option<()> {
    *bytes = bytes.get(len..)?;
    Some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The codec of the generated client and server.
#[derive(Debug)]
pub struct BoundedCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + 'static,
    U: Bounded,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(buffers())
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(PhantomData)
    }
}

/// Decodes by [`decode`].
#[derive(Debug)]
pub struct BoundedDecoder<U>(PhantomData<U>);

impl<U: Bounded> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        Ok(Some(decode(buf)?))
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffers()
    }
}

fn buffers() -> BufferSettings {
    BufferSettings::new(BUFFER_BYTES, YIELD_BYTES)
}
