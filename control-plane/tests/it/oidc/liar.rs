//! A provider that says what a test wants, with keys of its own.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use parking_lot::Mutex;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

use super::browser::field;

pub(super) struct Key {
    pub(super) private: EncodingKey,
    pub(super) algorithm: Algorithm,
    pub(super) public: Value,
}

impl Key {
    pub(super) fn p256(id: &str) -> Self {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        // Uncompressed: a four, then both coordinates.
        let (x, y) = pair.public_key_raw()[1..].split_at(32);
        let [x, y] = [x, y].map(|it| URL_SAFE_NO_PAD.encode(it));
        Self {
            private: EncodingKey::from_ec_der(&pair.serialize_der()),
            algorithm: Algorithm::ES256,
            public: json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": id}),
        }
    }

    pub(super) fn ed25519(id: &str) -> Self {
        let pair = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key_raw());
        Self {
            private: EncodingKey::from_ed_der(&pair.serialize_der()),
            algorithm: Algorithm::EdDSA,
            public: json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": id, "use": "sig"}),
        }
    }

    pub(super) fn sign(&self, id: &str, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(id.into());
        encode(&header, claims, &self.private).unwrap()
    }
}

/// What it answers.
#[derive(Default)]
pub(super) struct Says {
    pub(super) document: Value,
    pub(super) keys: Vec<Value>,
    /// The token endpoint's answer: status, headers' location, body.
    pub(super) token: (u16, String, Vec<u8>),
    /// Whether a code may be handed in: what has to come with it.
    challenge: String,
    pub(super) keys_asked: usize,
    pub(super) documents_asked: usize,
}

#[derive(Clone)]
pub(super) struct Liar {
    pub(super) issuer: String,
    pub(super) says: Arc<Mutex<Says>>,
}

impl Liar {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let says = Says {
            document: json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "jwks_uri": format!("{issuer}/keys"),
            }),
            ..Says::default()
        };
        let liar = Self {
            issuer,
            says: Arc::new(Mutex::new(says)),
        };
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(document))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .with_state(liar.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        liar
    }

    /// Claims that hold for a sign-in that was begun with this address.
    pub(super) fn claims(&self, address: &Url) -> Value {
        let now = jiff::Timestamp::now().as_second();
        json!({
            "iss": self.issuer, "sub": "u-1", "aud": "hedgerow", "iat": now, "exp": now + 300,
            "nonce": field(address, "nonce"), "preferred_username": "ada", "roles": "sre",
        })
    }

    /// From now on gives this ID token to whoever shows that they began the sign-in.
    pub(super) fn gives(&self, address: &Url, token: &str) {
        let body = json!({"id_token": token, "access_token": "x", "token_type": "Bearer"});
        let mut says = self.says.lock();
        says.challenge = field(address, "code_challenge");
        says.token = (200, String::new(), body.to_string().into_bytes());
    }
}

async fn document(State(liar): State<Liar>) -> axum::Json<Value> {
    let mut says = liar.says.lock();
    says.documents_asked += 1;
    axum::Json(says.document.clone())
}

async fn keys(State(liar): State<Liar>) -> axum::Json<Value> {
    let mut says = liar.says.lock();
    says.keys_asked += 1;
    axum::Json(json!({"keys": says.keys}))
}

async fn token(State(liar): State<Liar>, headers: HeaderMap, body: Bytes) -> Response {
    let form: Url = format!("http://form/?{}", std::str::from_utf8(&body).unwrap())
        .parse()
        .unwrap();
    let says = liar.says.lock();
    let verifier = Sha256::digest(field(&form, "code_verifier").as_bytes());
    // `hedgerow` and the secret, in base64.
    let client = "Basic aGVkZ2Vyb3c6Y2FuYXJ5LWNsaWVudC1zZWNyZXQ=";
    let good = headers["authorization"] == client
        && field(&form, "grant_type") == "authorization_code"
        && field(&form, "code") == "canary-code"
        && field(&form, "redirect_uri").ends_with("/login/sso/back")
        && URL_SAFE_NO_PAD.encode(verifier) == says.challenge;
    if !good {
        let body = r#"{"error":"invalid_grant","error_description":"canary-description"}"#;
        return (StatusCode::BAD_REQUEST, body).into_response();
    }
    let (status, location, body) = says.token.clone();
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("location", location)], body).into_response()
}
