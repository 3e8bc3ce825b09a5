//! An input: what a controller sends on its streams, and how long it is silent in between.

use prost::Message as _;

use super::dice::Dice;
use super::messages;

/// Frames of one input: enough for a stream that breaks and one that follows.
const FRAMES_MAX: usize = 24;
/// Longest message: one over the contract's limit is tried by a test of its own.
const BYTES_MAX: usize = 64 * 1024;

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// These bytes come as one message.
    Message(Vec<u8>),
    /// So many milliseconds go by.
    Wait(u32),
    /// The stream ends.
    Break,
}

/// A conversation as a controller would have it, with a mistake here and there.
pub(super) fn fresh(dice: &mut Dice) -> Vec<Frame> {
    let mut frames = vec![Frame::Message(messages::greeting(dice).encode_to_vec())];
    for _ in 0..=dice.below(8) {
        frames.push(frame(dice));
    }
    frames
}

fn frame(dice: &mut Dice) -> Frame {
    match dice.below(16) {
        0 => Frame::Break,
        1 => Frame::Wait(dice.pick(&[0, 10, 1000, 5001, 31_000, 70_000, 4_000_000])),
        2 => Frame::Message((0..dice.below(200)).map(|_| dice.draw() as u8).collect()),
        3 => Frame::Message(messages::greeting(dice).encode_to_vec()),
        _ => Frame::Message(messages::message(dice).encode_to_vec()),
    }
}

/// Changes an input a little, with parts of another.
pub(super) fn mutate(frames: &mut Vec<Frame>, other: &[Frame], dice: &mut Dice) {
    for _ in 0..=dice.below(4) {
        let at = dice.below(frames.len() as u64 + 1) as usize;
        match dice.below(8) {
            0 if frames.len() > 1 => {
                frames.remove(at % frames.len());
            }
            1 => frames.insert(at, frame(dice)),
            2 if !frames.is_empty() => {
                let again = dice.pick(frames);
                frames.insert(at, again);
            }
            3 => {
                let from = dice.below(other.len() as u64 + 1) as usize;
                frames.truncate(at);
                frames.extend_from_slice(&other[from..]);
            }
            4 if frames.len() > 1 => {
                let with = dice.below(frames.len() as u64) as usize;
                frames.swap(at % with.max(1), with);
            }
            _ => {
                let messages = frames.iter_mut().filter_map(|frame| match frame {
                    Frame::Message(bytes) => Some(bytes),
                    Frame::Wait(_) | Frame::Break => None,
                });
                let mut messages: Vec<_> = messages.collect();
                if !messages.is_empty() {
                    let which = dice.below(messages.len() as u64) as usize;
                    damage(messages[which], dice);
                }
            }
        }
    }
    frames.truncate(FRAMES_MAX);
}

fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.below(6) {
        if bytes.is_empty() {
            bytes.push(dice.draw() as u8);
        }
        let at = dice.below(bytes.len() as u64) as usize;
        match dice.below(7) {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes[at] = dice.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            2 => bytes.insert(at, dice.draw() as u8),
            3 => {
                bytes.remove(at);
            }
            4 => bytes.truncate(at),
            5 => {
                let end = bytes.len().min(at + 1 + dice.below(40) as usize);
                let part = bytes[at..end].to_vec();
                let to = dice.below(bytes.len() as u64 + 1) as usize;
                bytes.splice(to..to, part);
            }
            // A double's eight bytes.
            _ if bytes.len() >= 8 => {
                let at = at.min(bytes.len() - 8);
                let usual = dice.pick(&[f64::NAN, -1.0, 1e300]);
                let number = dice.number(usual);
                bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            _ => {}
        }
    }
    bytes.truncate(BYTES_MAX);
}

/// As it is kept in a file: a letter, a number (a length or milliseconds) and the bytes, each frame.
pub(super) fn write(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        let (letter, number, rest) = match frame {
            Frame::Message(message) => (b'm', message.len() as u32, message.as_slice()),
            Frame::Wait(ms) => (b'w', *ms, &[][..]),
            Frame::Break => (b'b', 0, &[][..]),
        };
        bytes.push(letter);
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(rest);
    }
    bytes
}

/// The frames of a file, up to where they can be read.
pub(super) fn read(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<5>() {
        let number = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        bytes = rest;
        frames.push(match head[0] {
            b'm' => {
                let Some((message, rest)) = bytes.split_at_checked(number as usize) else {
                    break;
                };
                bytes = rest;
                Frame::Message(message.to_vec())
            }
            b'w' => Frame::Wait(number),
            _ => Frame::Break,
        });
    }
    frames
}
