//! A client of the REST API, for the command line. It reads leniently: a field that it does not know
//! does no harm, and a list is taken bare as well as under `items`.

mod address;
mod connection;
mod error;

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use reqwest::{Method, RequestBuilder, Response, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

pub use address::Path;
pub(crate) use connection::is_loopback;
pub use connection::{CONNECTION_DEFAULT, Connection};
pub use error::{ClientError, Problem};

/// How long an answer may take: a replay of a day is computed meanwhile.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Pages of one list that are followed at most: a cursor that leads in circles ends there.
const PAGES_MAX: usize = 1_000;
/// Items asked for with each page of a list.
const PAGE_ITEMS: u32 = 500;

/// A controller, as a program sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<SecretString>,
}

/// What a controller answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The body.
    pub body: Value,
    /// The revision its `ETag` names.
    pub revision: Option<u64>,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    /// What is in it.
    pub items: Vec<Value>,
    /// What to ask for the next: a parameter's name and its value; None: this is the last.
    pub next: Option<(&'static str, String)>,
}

impl Client {
    /// The controller's address, ending in a slash.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Reads.
    pub async fn get(&self, path: &Path) -> Result<Answer, ClientError> {
        self.answer(self.request(Method::GET, path)?).await
    }

    /// Changes something, or asks with a body. `revision`: only over this one.
    pub async fn send(
        &self,
        method: Method,
        path: &Path,
        body: &Value,
        revision: Option<u64>,
    ) -> Result<Answer, ClientError> {
        let mut request = self.request(method, path)?.json(body);
        if let Some(revision) = revision {
            request = request.header(header::IF_MATCH, format!("\"{revision}\""));
        }
        self.answer(request).await
    }

    /// One page of a list.
    pub async fn page(&self, path: &Path) -> Result<Listed, ClientError> {
        let answer = self.get(path).await?;
        Listed::read(answer.body).ok_or_else(|| self.odd(path, "expected a list"))
    }

    /// A whole list, page by page.
    pub async fn list(&self, path: &Path) -> Result<Vec<Value>, ClientError> {
        let mut all = Vec::new();
        let mut next: Option<(&str, String)> = None;
        for _ in 0..PAGES_MAX {
            let asked = match &next {
                None => path.clone(),
                Some((name, cursor)) => path
                    .clone()
                    .with(name, cursor)
                    .with("limit", &PAGE_ITEMS.to_string()),
            };
            let page = self.page(&asked).await?;
            all.extend(page.items);
            next = page.next;
            if next.is_none() {
                return Ok(all);
            }
        }
        Err(self.odd(path, "the list does not end"))
    }

    /// A path outside the API that needs no token, such as `readyz`: its status and its text.
    pub async fn plain(&self, path: &str) -> Result<(StatusCode, String), ClientError> {
        let url = self.base.join(path).map_err(|e| self.odd_at(path, &e))?;
        let response = self.http.get(url).send().await;
        let response = response.map_err(|e| self.unreachable(&e))?;
        let status = response.status();
        let text = response.text().await.map_err(|e| self.unreachable(&e))?;
        Ok((status, text))
    }

    fn request(&self, method: Method, path: &Path) -> Result<RequestBuilder, ClientError> {
        let address = path.to_string();
        let url = self.base.join(&address);
        let url = url.map_err(|e| self.odd_at(&address, &e))?;
        let mut request = self.http.request(method, url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        Ok(request)
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Answer, ClientError> {
        let response = request.send().await.map_err(|e| self.unreachable(&e))?;
        let (status, path) = (response.status(), response.url().path().to_owned());
        let revision = revision(response.headers());
        let body = self.body(response).await?;
        if status.is_success() {
            let body = match body {
                Body::Json(value) => value,
                Body::Nothing => Value::Null,
                Body::Text => return Err(self.odd_at(&path, "the answer is no JSON")),
            };
            return Ok(Answer { body, revision });
        }
        match body {
            Body::Json(value) => Err(ClientError::Refused(Box::new(Problem::read(
                status.as_u16(),
                &value,
            )))),
            // A proxy in between, or another server altogether, answers in its own words.
            Body::Nothing | Body::Text if away(status) => Err(ClientError::Unreachable {
                url: self.base.to_string(),
                problem: format!("something in between answered {status}"),
            }),
            Body::Nothing | Body::Text => Err(self.odd_at(&path, &format!("it answered {status}"))),
        }
    }

    async fn body(&self, response: Response) -> Result<Body, ClientError> {
        let bytes = response.bytes().await.map_err(|e| self.unreachable(&e))?;
        if bytes.is_empty() {
            return Ok(Body::Nothing);
        }
        Ok(serde_json::from_slice(&bytes).map_or(Body::Text, Body::Json))
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        ClientError::unreachable(&self.base, error)
    }

    fn odd(&self, path: &Path, problem: &str) -> ClientError {
        self.odd_at(&path.to_string(), problem)
    }

    fn odd_at(&self, path: &str, problem: &(impl ToString + ?Sized)) -> ClientError {
        ClientError::Odd {
            url: self.base.to_string(),
            path: path.to_owned(),
            problem: problem.to_string(),
        }
    }
}

enum Body {
    Nothing,
    Json(Value),
    Text,
}

/// Said by what stands before a controller that does not answer.
fn away(status: StatusCode) -> bool {
    matches!(status.as_u16(), 502..=504)
}

fn revision(headers: &HeaderMap) -> Option<u64> {
    let tag = headers.get(header::ETAG)?.to_str().ok()?;
    tag.trim_start_matches("W/").trim_matches('"').parse().ok()
}

impl Listed {
    /// From a list, or an object with one under `items` (or `lines`).
    pub fn read(body: Value) -> Option<Self> {
        let mut object = match body {
            Value::Array(items) => return Some(Self { items, next: None }),
            Value::Object(object) => object,
            _ => return None,
        };
        let (name, list) = match (object.remove("items"), object.remove("lines")) {
            (Some(list), _) => ("after", list),
            (None, Some(list)) => ("before", list),
            (None, None) => return None,
        };
        let Value::Array(items) = list else {
            return None;
        };
        let next = match object.remove("next") {
            Some(Value::String(cursor)) => Some((name, cursor)),
            Some(Value::Number(cursor)) => Some((name, cursor.to_string())),
            _ => None,
        };
        Some(Self { items, next })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_taken_bare_and_under_items() {
        let read = |body| Listed::read(body).unwrap();
        assert_eq!(read(json!([1, 2])).items, [json!(1), json!(2)]);
        let page = read(json!({"items": [1], "next": "c7", "more": true}));
        assert_eq!(page.next, Some(("after", "c7".into())));
        let page = read(json!({"lines": [1], "next": 7}));
        assert_eq!(page.next, Some(("before", "7".into())));
        assert_eq!(read(json!({"items": [], "next": null})).next, None);
        assert_eq!(Listed::read(json!({"fleet": []})), None);
        assert_eq!(Listed::read(json!("x")), None);
    }
}
