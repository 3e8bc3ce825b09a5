//! Three replicas behind tower's balancer, as one service that can be cloned.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::ServiceList;
use tower::load::{CompleteOnResponse, PendingRequests};
use tower::{BoxError, Service, ServiceExt};

use crate::world::chance::Chance;
use crate::world::{Backend, Failure, REPLICAS};

/// See the [module](self).
pub(crate) type Buffered = Buffer<u64, BoxFuture<'static, Result<(), BoxError>>>;

/// More than there are ever at once: it never pushes back.
const BOUND: usize = 65_536;

pub(crate) fn balanced<B: Backend>(backend: &B) -> Buffered {
    let replicas = (0..REPLICAS).map(|replica| {
        let backend = backend.clone();
        PendingRequests::new(Replica { backend, replica }, CompleteOnResponse::default())
    });
    let replicas = ServiceList::new::<u64>(replicas.collect::<Vec<_>>());
    let balance = Balance::from_rng(replicas, Chance::new(0, 0));
    buffered(balance)
}

/// A service that can be cloned, of one that cannot.
pub(crate) fn buffered<S>(service: S) -> Buffered
where
    S: Service<u64, Response = (), Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
{
    let boxed = service.map_future(|asked| Box::pin(asked) as BoxFuture<'static, _>);
    Buffer::new(boxed, BOUND)
}

struct Replica<B> {
    backend: B,
    replica: usize,
}

impl<B: Backend> Service<u64> for Replica<B> {
    type Response = ();
    type Error = Failure;
    type Future = BoxFuture<'static, Result<(), Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: u64) -> Self::Future {
        self.backend.ask(self.replica, call)
    }
}
