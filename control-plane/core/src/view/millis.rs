//! Lengths of time as JSON has them: milliseconds, a number with digits after the point.

use std::time::Duration;

use hedgerow_protocol::units::as_millis;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(as_millis(*value))
}

#[expect(clippy::ref_option, reason = "serde's signature")]
pub(crate) fn option<S: Serializer>(
    value: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serialize(value, serializer),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let millis = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(millis / 1e3).map_err(|_| {
        D::Error::custom(format_args!(
            "{millis} is no length of time: expected milliseconds, 0 or more"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{ControllerView, Evidence};

    #[test]
    fn lengths_of_time_are_milliseconds_and_their_fields_say_so() {
        let view = ControllerView {
            tick_took: Duration::from_micros(1_500),
            ..ControllerView::default()
        };
        let json = serde_json::to_value(view).unwrap();
        assert_eq!(json["tick_took_ms"], 1.5);
        assert_eq!(json.get("tick_took"), None);
    }

    #[test]
    fn evidence_is_read_as_it_was_written_and_nonsense_is_refused() {
        let evidence = Evidence {
            what: "error rate".into(),
            value: 6.1,
            limit: 5.0,
            unit: "%".into(),
            window: Duration::from_millis(2_500),
        };
        let text = serde_json::to_string(&evidence).unwrap();
        assert!(text.ends_with(r#""window_ms":2500.0}"#), "{text}");
        assert_eq!(serde_json::from_str::<Evidence>(&text).unwrap(), evidence);
        for wrong in ["-1.0", "1e300"] {
            let text = text.replace("2500.0", wrong);
            let error = serde_json::from_str::<Evidence>(&text).unwrap_err();
            assert!(
                error.to_string().contains("expected milliseconds"),
                "{error}"
            );
        }
    }
}
