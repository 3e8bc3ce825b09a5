//! The scenarios that come with the crate.

/// A scenario compiled in.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// How it is asked for.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($name:literal) => {
        Shipped {
            name: $name,
            text: include_str!(concat!("../../scenarios/", $name, ".toml")),
        }
    };
}

const SHIPPED: &[Shipped] = &[
    shipped!("healthy"),
    shipped!("independent-stalls"),
    shipped!("one-slow"),
    shipped!("one-dead"),
    shipped!("one-failing-fast"),
    shipped!("shared-stall-1-percent"),
    shipped!("third-shared"),
    shipped!("expensive-queries"),
    shipped!("shared-pauses"),
    shipped!("three-pausing"),
    shipped!("all-slow"),
    shipped!("drift"),
    shipped!("tail-drift"),
    shipped!("lasting-slowdown"),
    shipped!("surge"),
    shipped!("surge-no-cancel"),
    shipped!("cold-start"),
    shipped!("agent-restart"),
    shipped!("controller-away"),
    shipped!("controller-restart"),
    shipped!("one-liar"),
    shipped!("ten-liars"),
    shipped!("fleet-100k"),
    shipped!("one-of-ten"),
];

/// All of them, in the order in which they are told of.
pub const fn shipped() -> &'static [Shipped] {
    SHIPPED
}
