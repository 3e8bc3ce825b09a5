//! What a request says of itself: that it is a hedge, that it may run twice.

#[cfg(any(feature = "hyper-client", feature = "reqwest"))]
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::attempt::{Attempt, HEDGE_HEADER, HEDGE_MARK};
#[cfg(any(feature = "hyper-client", feature = "reqwest"))]
use crate::eligibility::Call;

/// Whether a request that came in is a hedge. To be passed on to the calls made for it, by
/// [`Call::already_hedge`](crate::Call::already_hedge) or by copying the header.
///
/// ```
/// use hedgerow_agent::integrations::mark::is_hedge;
///
/// let request = http::Request::get("/item/7").header("hedgerow-attempt", "hedge").body(())?;
/// assert!(is_hedge(request.headers()));
/// # Ok::<(), http::Error>(())
/// ```
pub fn is_hedge(headers: &HeaderMap) -> bool {
    headers
        .get(HEDGE_HEADER)
        .is_some_and(|mark| mark == HEDGE_MARK)
}

/// Marks an attempt's request as what it is.
pub(crate) fn mark(headers: &mut HeaderMap, attempt: &Attempt) {
    headers.remove(HEDGE_HEADER);
    for (name, value) in attempt.headers() {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
}

/// What a request's caller says of it, or else what its method means; and that it is a hedge, where
/// its headers say so.
#[cfg(any(feature = "hyper-client", feature = "reqwest"))]
pub(crate) fn call_of(own: Option<Call>, method: &Method, headers: &HeaderMap) -> Call {
    let call = own.unwrap_or_else(|| by_method(method));
    let already_hedge = call.already_hedge || is_hedge(headers);
    call.already_hedge(already_hedge)
}

/// GET, HEAD and OPTIONS change nothing; of the others nobody knows.
#[cfg(any(feature = "hyper-client", feature = "reqwest"))]
fn by_method(method: &Method) -> Call {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        Call::idempotent()
    } else {
        Call::not_idempotent()
    }
}
