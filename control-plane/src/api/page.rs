//! Lists, a page at a time: `?limit=&after=`, answered as `{"items": [...], "next": cursor or null}`.
//!
//! A cursor is the last item's own key, so that a page begins where the last one ended also where
//! items came and went meanwhile: none is shown twice, none that stayed is left out.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::problem::{FieldProblem, Problem};

/// Items in an answer where nothing is said, and at most.
pub(super) const LIMIT_DEFAULT: usize = 100;
pub(super) const LIMIT_MAX: usize = 1000;

/// A part of a list.
#[derive(Debug, Serialize)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    /// What to give as `after` for the rest; null: there is none.
    pub(super) next: Option<String>,
}

/// Which part.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PageQuery {
    pub(super) limit: Option<usize>,
    pub(super) after: Option<String>,
}

/// The part of the address behind the question mark, checked: an unknown name in it is an error.
#[derive(Debug)]
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned + Default + Serialize, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        read.map(|Query(asked)| Self(asked)).map_err(|error| {
            let names = match serde_json::to_value(T::default()) {
                Ok(serde_json::Value::Object(names)) => names.keys().cloned().collect(),
                _ => Vec::new(),
            };
            Problem::malformed(format!(
                "{}; expected {} or none of them",
                error.body_text(),
                names.join(", ")
            ))
        })
    }
}

/// The number of items wanted.
pub(super) fn limit(wanted: Option<usize>) -> Result<usize, Problem> {
    let limit = wanted.unwrap_or(LIMIT_DEFAULT);
    if (1..=LIMIT_MAX).contains(&limit) {
        return Ok(limit);
    }
    let message = format!("{limit} is out of range: expected 1 to {LIMIT_MAX}");
    Err(Problem::invalid(vec![FieldProblem::new("limit", message)]))
}

/// A cursor of another answer, or a filter, read back.
pub(super) fn read<T: FromStr<Err: Display>>(
    field: &'static str,
    text: Option<&str>,
) -> Result<Option<T>, Problem> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    text.map(str::parse)
        .transpose()
        .map_err(|e: T::Err| Problem::invalid(vec![FieldProblem::new(field, e.to_string())]))
}

/// The part of a list, in ascending order of its keys, that comes after `after`.
pub(super) fn cut<I, K, T>(
    all: I,
    key: impl Fn(&I::Item) -> K,
    after: Option<&K>,
    limit: usize,
    shown: impl Fn(I::Item) -> T,
) -> Page<T>
where
    I: IntoIterator,
    K: Ord + Display,
{
    let rest = all.into_iter();
    let mut rest = rest.filter(|item| after.is_none_or(|after| key(item) > *after));
    let mut items = Vec::new();
    let mut last = None;
    for item in rest.by_ref().take(limit) {
        last = Some(key(&item));
        items.push(shown(item));
    }
    let more = rest.next().is_some();
    Page {
        items,
        next: last.filter(|_| more).map(|key| key.to_string()),
    }
}

/// A part that was read as such, `limit` items of it at most: where it is full, there may be more.
pub(super) fn full<T, K: Display>(items: Vec<T>, limit: usize, key: impl Fn(&T) -> K) -> Page<T> {
    let last = items.last().filter(|_| items.len() == limit);
    let next = last.map(|item| key(item).to_string());
    Page { items, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another_also_where_items_come_and_go() {
        let page = |all: &[u32], after| cut(all.to_vec(), |it| *it, after, 2, |it| it);
        let first = page(&[1, 3, 5, 7], None);
        assert_eq!((first.items, first.next), (vec![1, 3], Some("3".into())));
        let next = page(&[1, 4, 5, 7], Some(&3));
        assert_eq!((next.items, next.next), (vec![4, 5], Some("5".into())));
        let last = page(&[1, 4, 5, 7], Some(&5));
        assert_eq!((last.items, last.next), (vec![7], None));
        let none = page(&[], None);
        assert_eq!((none.items, none.next), (Vec::new(), None));
    }
}
