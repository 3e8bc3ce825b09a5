//! Addresses under the API: each part of a path by itself, so that no name can become two.

use std::fmt::{self, Write as _};

/// A path under `/api/v1`, perhaps with a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    parts: Vec<String>,
    query: Vec<(String, String)>,
}

impl Path {
    /// Of these parts, each as it is: a slash in a name does not end it.
    pub fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            parts: parts.into_iter().map(str::to_owned).collect(),
            query: Vec::new(),
        }
    }

    /// With a parameter; in the place of an earlier one of that name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.query.retain(|(known, _)| known != name);
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a parameter where there is a value for it.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.with(name, value.as_ref()),
            None => self,
        }
    }
}

/// As it stands behind the controller's address: without a slash at its beginning.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("api/v1")?;
        for part in &self.parts {
            write!(f, "/{}", encoded(part))?;
        }
        for (i, (name, value)) in self.query.iter().enumerate() {
            let mark = if i == 0 { '?' } else { '&' };
            write!(f, "{mark}{}={}", encoded(name), encoded(value))?;
        }
        Ok(())
    }
}

/// Everything but unreserved characters as `%XX`.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_one_part_of_the_path() {
        let path = Path::new(["policies", "hedgerow.v1.Fleet/Attach get item"]);
        assert_eq!(
            path.to_string(),
            "api/v1/policies/hedgerow.v1.Fleet%2FAttach%20get%20item"
        );
        let path = Path::new(["audit"])
            .with("limit", "1")
            .with_some("actor", Some("a&b=c"))
            .with_some("action", None::<&str>)
            .with("limit", "5");
        assert_eq!(path.to_string(), "api/v1/audit?actor=a%26b%3Dc&limit=5");
        assert_eq!(
            Path::new(["policies", "cat*"]).to_string(),
            "api/v1/policies/cat%2A"
        );
    }
}
