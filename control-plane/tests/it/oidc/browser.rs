//! A browser as far as signing in needs one, and a controller with `[oidc]`.

use reqwest::{Response, StatusCode, Url};

use crate::running::Running;

/// Where the dashboard of a controller is, and what the browser keeps.
pub(super) struct Browser {
    pub(super) base: String,
    client: reqwest::Client,
    /// The cookie of a sign-in under way.
    pub(super) kept: String,
}

/// A controller that lets people of `issuer` in.
pub(super) async fn controller(issuer: &str, more: &str) -> Running {
    let oidc = format!(
        "[oidc]\nissuer = {issuer:?}\nclient_id = \"hedgerow\"\nclient_secret = \"canary-client-secret\"\n\
         name = \"Example\"\nallow_private = true\n{more}\n\
         [oidc.roles]\nsre = \"operator\"\nlead = \"administrator\"\n"
    );
    Running::start_with(&oidc, |_| {}).await
}

impl Browser {
    pub(super) fn at(running: &Running) -> Self {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            base: format!("http://{}", running.app.http_address()),
            client,
            kept: String::new(),
        }
    }

    pub(super) async fn get(&self, path: &str) -> Response {
        let request = self.client.get(format!("{}{path}", self.base));
        let request = request.header("cookie", format!("hedgerow_sso={}", self.kept));
        request.send().await.unwrap()
    }

    /// A page, signed in.
    pub(super) async fn page(&self, path: &str, session: &str) -> Response {
        let request = self.client.get(format!("{}{path}", self.base));
        let request = request.header("cookie", format!("hedgerow_session={session}"));
        request.send().await.unwrap()
    }

    /// Presses the button; gives the provider's address.
    pub(super) async fn begin(&mut self, next: &str) -> Url {
        let answer = self.get(&format!("/login/sso?next={next}")).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        for part in ["HttpOnly", "SameSite=Lax", "Path=/login/sso", "Max-Age=600"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        let value = cookie.split(';').next().unwrap();
        let kept = value.strip_prefix("hedgerow_sso=").unwrap();
        kept.clone_into(&mut self.kept);
        answer.headers()["location"]
            .to_str()
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Comes back from the provider.
    pub(super) async fn back(&self, code: &str, state: &str) -> Response {
        let path = format!("/login/sso/back?code={code}&state={state}");
        self.get(&path).await
    }
}

/// A field of an address's query.
pub(super) fn field(url: &Url, name: &str) -> String {
    let found = url.query_pairs().find(|(key, _)| key == name);
    found.map_or_else(String::new, |(_, value)| value.into_owned())
}

/// The session of an answer that signs in, and where it leads.
pub(super) fn signed_in(answer: &Response) -> (String, String) {
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let cookies: Vec<_> = answer
        .headers()
        .get_all("set-cookie")
        .iter()
        .map(|value| value.to_str().unwrap())
        .collect();
    let session = cookies
        .iter()
        .find_map(|it| it.strip_prefix("hedgerow_session="))
        .and_then(|it| it.split(';').next())
        .unwrap();
    let gone = "hedgerow_sso=; ";
    assert!(cookies.iter().any(|it| it.starts_with(gone)), "{cookies:?}");
    let location = answer.headers()["location"].to_str().unwrap();
    (session.to_owned(), location.to_owned())
}

/// An answer that lets nobody in: its page's words.
pub(super) async fn refused(answer: Response, status: u16) -> String {
    let got = answer.status().as_u16();
    let cookies = answer.headers().get_all("set-cookie").iter();
    let let_in = cookies
        .filter_map(|value| value.to_str().ok())
        .any(|it| it.starts_with("hedgerow_session="));
    assert!(!let_in);
    let page = answer.text().await.unwrap();
    assert_eq!(got, status, "{page}");
    assert!(
        page.contains("action=\"/login\"") && page.contains("Sign in with Example"),
        "the way in is still there: {page}"
    );
    page
}
