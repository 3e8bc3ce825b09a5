//! Reading answers leniently: what is not there, or is of another kind, is none.

use hedgerow_protocol::policy::PolicyScope;
use serde_json::Value;

/// Looking into an answer by JSON pointer: `/figures/p99_ms`.
pub(in crate::cli) trait Look {
    /// A text.
    fn text(&self, pointer: &str) -> Option<&str>;
    /// A number.
    fn number(&self, pointer: &str) -> Option<f64>;
    /// A whole number of 0 or more: a count, or a moment.
    fn whole(&self, pointer: &str) -> Option<u64>;
    /// Whether it is true.
    fn is(&self, pointer: &str) -> bool;
    /// A list, empty where there is none.
    fn list(&self, pointer: &str) -> &[Value];
    /// A text, a dash where there is none.
    fn text_or_dash(&self, pointer: &str) -> String;
}

impl Look for Value {
    fn text(&self, pointer: &str) -> Option<&str> {
        self.pointer(pointer)?.as_str()
    }

    fn number(&self, pointer: &str) -> Option<f64> {
        self.pointer(pointer)?.as_f64()
    }

    fn whole(&self, pointer: &str) -> Option<u64> {
        self.pointer(pointer)?.as_u64()
    }

    fn is(&self, pointer: &str) -> bool {
        self.pointer(pointer).and_then(Value::as_bool) == Some(true)
    }

    fn list(&self, pointer: &str) -> &[Value] {
        self.pointer(pointer)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    fn text_or_dash(&self, pointer: &str) -> String {
        self.text(pointer)
            .map_or_else(|| super::figures::NONE.into(), super::figures::clean)
    }
}

/// A route's name: `catalog get`.
pub(in crate::cli) fn route_name(route: &Value) -> String {
    let part = |pointer| super::figures::clean(route.text(pointer).unwrap_or("?"));
    format!("{} {}", part("/dependency"), part("/operation"))
}

/// `on`, `observing`, `probing` or `off`.
pub(in crate::cli) fn mode(view: &Value) -> &str {
    view.text("/mode/mode").unwrap_or("unknown")
}

/// What a kill switch is for.
pub(in crate::cli) fn kill_scope(kill: &Value) -> String {
    match kill.text("/state/scope/dependency") {
        Some(name) => super::figures::clean(name),
        None => "everything".into(),
    }
}

/// What a policy in an answer is for.
pub(in crate::cli) fn policy_scope(view: &Value) -> String {
    let own = view
        .text("/policy/dependency")
        .and_then(|name| PolicyScope::new(name, view.text("/policy/operation")).ok());
    match (view.text("/scope"), own) {
        (Some(scope), _) => super::figures::clean(scope),
        (None, Some(scope)) => scope.to_string(),
        (None, None) => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn u03_what_is_not_there_is_none_and_never_0() {
        let view = json!({"figures": null, "n": -1, "s": "x", "list": [1]});
        assert_eq!(view.number("/figures/p99_ms"), None);
        assert_eq!(view.whole("/n"), None);
        assert_eq!(view.whole("/s"), None);
        assert_eq!(view.list("/figures").len(), 0);
        assert_eq!(view.list("/list").len(), 1);
        assert_eq!(view.text_or_dash("/n"), "–");
        assert!(!view.is("/s"));
    }

    #[test]
    fn scopes_are_read_from_either_field() {
        for (view, scope) in [
            (json!({"policy": {"dependency": "catalog"}}), "catalog"),
            (
                json!({"policy": {"dependency": "catalog", "operation": "get"}}),
                "catalog get",
            ),
            (json!({"scope": "cat*", "policy": {}}), "cat*"),
        ] {
            assert_eq!(policy_scope(&view), scope);
        }
        assert_eq!(
            kill_scope(&json!({"state": {"scope": {"scope": "everything"}}})),
            "everything"
        );
    }
}
