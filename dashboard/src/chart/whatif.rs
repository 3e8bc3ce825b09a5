//! What a policy would do, drawn: the curve of delays, and the hours it is replayed over.

mod curve;
mod panels;
mod replayed;

pub(crate) use curve::{Curve, CurvePoint};
pub(crate) use panels::Panels;
pub(crate) use replayed::replay_chart;
