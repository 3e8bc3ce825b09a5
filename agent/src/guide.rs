//! Two guides: what may be hedged, and how to see what hedging does.

pub mod safe_to_hedge {
    #![doc = "[what-to-look-at]: crate::guide::what_to_look_at"]
    #![doc = ""]
    #![doc = include_str!("../guides/safe-to-hedge.md")]

    #[cfg(doc)]
    use crate::{Attempt, Call, Hold, Route, Verdict};
}

pub mod what_to_look_at {
    #![doc = include_str!("../guides/what-to-look-at.md")]
}
