//! A gRPC catalog that does what a test wants: one replica of it.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_agent::Replicas;
use hedgerow_agent::integrations::tonic::is_hedge;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status, Streaming};

pub(crate) use super::tonic_client::shop::catalog_client::CatalogClient;
use super::tonic_client::shop::catalog_server::{Catalog, CatalogServer};
pub(crate) use super::tonic_client::shop::{GetRequest, Item, ListRequest};

/// Bytes of a picture.
pub(crate) const PICTURE: usize = 8 * 1024;
/// Longer than any test.
pub(crate) const FOR_EVER: Duration = Duration::from_hours(1);

/// What a replica does with a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// Before its first message, or its status. (A stream's headers are sent at once.)
    pub(crate) takes: Duration,
    /// The status it ends with, instead of an answer.
    pub(crate) fails: Option<Failing>,
    /// A stream goes on for so many messages, and then stalls.
    pub(crate) stalls_after: Option<u32>,
}

#[derive(Debug, Clone)]
pub(crate) struct Failing {
    pub(crate) code: Code,
    pub(crate) message: &'static str,
    pub(crate) push_back: bool,
}

impl Failing {
    fn status(&self) -> Status {
        let mut metadata = MetadataMap::new();
        let from = MetadataValue::from_static("the-shop");
        metadata.insert("x-from", from);
        if self.push_back {
            metadata.insert("grpc-retry-pushback-ms", MetadataValue::from_static("-1"));
        }
        let details = format!("details of {}", self.message).into();
        Status::with_details_and_metadata(self.code, self.message, details, metadata)
    }
}

/// What a request came with.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) hedge: bool,
    pub(crate) timeout: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    plans: Mutex<[Plan; 2]>,
    seen: Mutex<Vec<Seen>>,
    resets: AtomicU64,
}

/// One replica.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

impl Replica {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let replica = Self { address, state };
        let service = CatalogServer::new(replica.clone());
        let incoming = TcpListenerStream::new(listener);
        tokio::spawn(
            Server::builder()
                .add_service(service)
                .serve_with_incoming(incoming),
        );
        replica
    }

    /// What it does with every request from now on.
    pub(crate) fn does(&self, plan: Plan) {
        self.does_each(plan.clone(), plan);
    }

    /// The same, told apart.
    pub(crate) fn does_each(&self, primaries: Plan, hedges: Plan) {
        *self.state.plans.lock() = [primaries, hedges];
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().clone()
    }

    /// Requests that ended before their answer did.
    pub(crate) fn resets(&self) -> u64 {
        self.state.resets.load(Ordering::SeqCst)
    }

    fn begins<T>(&self, request: &Request<T>) -> (Plan, Open) {
        let hedge = is_hedge(request.metadata());
        let timeout = request.metadata().get("grpc-timeout");
        self.state.seen.lock().push(Seen {
            hedge,
            timeout: timeout.map(|it| it.to_str().unwrap().to_owned()),
        });
        let plan = self.state.plans.lock()[usize::from(hedge)].clone();
        (plan, Open(self.state.clone(), true))
    }

    fn item(&self, id: u32) -> Item {
        Item {
            id,
            replica: self.address.to_string(),
            picture: vec![letter(&self.address.to_string()); PICTURE],
        }
    }

    async fn one<T>(&self, request: Request<T>, id: u32) -> Result<Response<Item>, Status> {
        let (plan, mut open) = self.begins(&request);
        sleep(plan.takes).await;
        open.ends();
        match plan.fails {
            Some(failing) => Err(failing.status()),
            None => Ok(Response::new(self.item(id))),
        }
    }
}

/// A byte that tells a replica's pictures from another's.
pub(crate) fn letter(replica: &str) -> u8 {
    replica
        .bytes()
        .fold(7, |sum: u8, byte| sum.wrapping_mul(31) ^ byte)
}

/// Counts a request that is dropped before its answer's end.
struct Open(Arc<State>, bool);

impl Open {
    /// It is answered, whatever becomes of it now.
    fn ends(&mut self) {
        self.1 = false;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.1 {
            self.0.resets.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tonic::async_trait]
impl Catalog for Replica {
    type ListStream = Pin<Box<dyn Stream<Item = Result<Item, Status>> + Send>>;

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<Item>, Status> {
        let id = request.get_ref().id;
        self.one(request, id).await
    }

    async fn list(
        &self,
        request: Request<ListRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        let (plan, open) = self.begins(&request);
        let (replica, count) = (self.clone(), request.get_ref().count);
        let messages = futures::stream::unfold((0, open), move |(nth, mut open)| {
            let (plan, replica) = (plan.clone(), replica.clone());
            async move {
                if nth == 0 {
                    sleep(plan.takes).await;
                }
                if plan.stalls_after == Some(nth) {
                    sleep(FOR_EVER).await;
                }
                if nth == count {
                    open.ends();
                    return None;
                }
                let message = match &plan.fails {
                    Some(failing) => {
                        open.ends();
                        Err(failing.status())
                    }
                    None => Ok(replica.item(nth)),
                };
                Some((message, (nth + 1, open)))
            }
        });
        Ok(Response::new(Box::pin(messages)))
    }

    async fn put(&self, request: Request<Item>) -> Result<Response<Item>, Status> {
        let id = request.get_ref().id;
        self.one(request, id).await
    }

    async fn import(&self, request: Request<Streaming<Item>>) -> Result<Response<Item>, Status> {
        let (plan, mut open) = self.begins(&request);
        let mut items = request.into_inner();
        let mut last = 0;
        while let Some(item) = items.next().await {
            last = item?.id;
        }
        sleep(plan.takes).await;
        open.ends();
        Ok(Response::new(self.item(last)))
    }
}

pub(crate) fn list(replicas: &[Replica]) -> Replicas {
    let names: Vec<_> = replicas.iter().map(|it| it.address.to_string()).collect();
    Replicas::new(names.iter().map(|name| (name.as_str(), None))).unwrap()
}
