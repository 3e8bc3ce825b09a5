//! The mark of a hedge as gRPC metadata.

use tonic::Request;
use tonic::metadata::{MetadataMap, MetadataValue};

use crate::attempt::{HEDGE_HEADER, HEDGE_MARK};

/// Whether a request that came in is a hedge.
///
/// ```
/// use hedgerow_agent::integrations::tonic::is_hedge;
///
/// let mut request = tonic::Request::new(());
/// assert!(!is_hedge(request.metadata()));
/// request.metadata_mut().insert("hedgerow-attempt", "hedge".parse()?);
/// assert!(is_hedge(request.metadata()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn is_hedge(metadata: &MetadataMap) -> bool {
    metadata
        .get(HEDGE_HEADER)
        .is_some_and(|mark| mark == HEDGE_MARK)
}

/// Marks a request that is made for one that came in, where that one is a hedge: it is not hedged
/// again, and a chain of services does not multiply its hedges.
///
/// ```
/// use hedgerow_agent::integrations::tonic::{is_hedge, pass_on};
///
/// # fn handler(incoming: tonic::Request<()>) {
/// let mut outgoing = tonic::Request::new(());
/// pass_on(&incoming, &mut outgoing);
/// assert_eq!(is_hedge(incoming.metadata()), is_hedge(outgoing.metadata()));
/// # }
/// # handler(tonic::Request::new(()));
/// ```
pub fn pass_on<T, U>(incoming: &Request<T>, outgoing: &mut Request<U>) {
    if is_hedge(incoming.metadata()) {
        let mark = MetadataValue::from_static(HEDGE_MARK);
        outgoing.metadata_mut().insert(HEDGE_HEADER, mark);
    }
}
