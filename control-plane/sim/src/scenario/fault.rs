//! What goes wrong, and when.

use serde::{Deserialize, Serialize};

/// Something that happens for some time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// When it begins, seconds.
    pub from_s: f64,
    /// When it is over; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_s: Option<f64>,
    /// What.
    #[serde(flatten)]
    pub kind: FaultKind,
}

impl Fault {
    /// Whether it is on at `t` seconds.
    pub fn is_on(&self, t: f64) -> bool {
        t >= self.from_s && self.to_s.is_none_or(|to| t < to)
    }
}

/// What happens. Shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultKind {
    /// Attempts on these replicas take so many times as long.
    Slow {
        /// Times.
        factor: f64,
        /// Which.
        #[serde(default)]
        replicas: Which,
    },
    /// These replicas answer nothing.
    Dead {
        /// Which.
        replicas: Which,
    },
    /// A share of attempts on these replicas fails.
    Failing {
        /// Of attempts.
        share: f64,
        /// Which.
        #[serde(default)]
        replicas: Which,
        /// After so many milliseconds.
        ms: f64,
    },
    /// A share of *calls* stalls, whoever answers: both copies.
    SharedStall {
        /// Of calls.
        share: f64,
        /// What a stall adds, milliseconds.
        ms: f64,
    },
    /// The service's own stalls become rarer or commoner, each attempt by itself.
    Stalls {
        /// Of attempts.
        share: f64,
        /// What a stall adds, milliseconds.
        ms: f64,
    },
    /// A share of *calls* is dear, whoever answers: both copies.
    Expensive {
        /// Of calls.
        share: f64,
        /// Times as long.
        factor: f64,
    },
    /// All replicas stand still together, again and again, at random.
    SharedPauses {
        /// For so many milliseconds.
        ms: f64,
        /// Of the time.
        share_of_time: f64,
    },
    /// Each of these replicas stands still again and again, by itself.
    ReplicaPauses {
        /// For so many milliseconds.
        ms: f64,
        /// Of the time.
        share_of_time: f64,
        /// Which.
        #[serde(default)]
        replicas: Which,
    },
    /// Everything becomes slower little by little.
    Drift {
        /// Times as long in the end.
        factor: f64,
        /// When that is reached, seconds after the beginning.
        over_s: f64,
    },
    /// The tail alone becomes heavier little by little.
    TailDrift {
        /// The lognormal's sigma in the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sigma: Option<f64>,
        /// What a stall adds in the end, milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stall_ms: Option<f64>,
        /// When that is reached, seconds after the beginning.
        over_s: f64,
    },
    /// More calls.
    Surge {
        /// Times as many.
        factor: f64,
    },
    /// Agents cannot reach the controller, which lives on.
    ControllerAway {},
    /// The controller is gone, and comes back with what its store holds.
    ControllerRestart {},
    /// A share of the agents starts anew when this begins.
    AgentsRestart {
        /// Of agents.
        share: f64,
    },
    /// So many agents say what is not so.
    Liars {
        /// How many, the first ones.
        count: usize,
        /// What they say.
        says: Lie,
    },
}

/// Which replicas.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Which {
    /// `"all"`.
    #[default]
    #[serde(with = "all")]
    All,
    /// By number, from 0.
    These(Vec<usize>),
}

impl Which {
    /// Whether `replica` is one of them.
    pub fn has(&self, replica: usize) -> bool {
        match self {
            Self::All => true,
            Self::These(replicas) => replicas.contains(&replica),
        }
    }
}

/// The word for all of them.
mod all {
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("all")
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
        let word = String::deserialize(from)?;
        if word == "all" {
            return Ok(());
        }
        Err(D::Error::custom("expected \"all\" or a list of numbers"))
    }
}

/// What a liar says of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lie {
    /// Each took ten times as long, and so nearly all crossed.
    TenTimesSlower,
    /// None crossed; latencies end at the threshold.
    NothingCrosses,
    /// Each took no time.
    Zero,
    /// What it said before it began to lie, again and again.
    Replay,
}
