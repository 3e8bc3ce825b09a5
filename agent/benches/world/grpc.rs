//! The same replicas behind real gRPC servers on loopback, one port each.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use futures::future::{BoxFuture, join_all};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::server::{NamedService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::Service;

use super::{Backend, Failure, REPLICAS, World};

#[derive(Clone, PartialEq, prost::Message)]
struct GetUser {
    #[prost(uint64, tag = "1")]
    call: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct User {
    #[prost(string, tag = "1")]
    name: String,
}

/// One replica's service.
#[derive(Clone)]
struct Users {
    replica: usize,
    world: World,
}

impl NamedService for Users {
    const NAME: &'static str = "bench.Users";
}

impl UnaryService<GetUser> for Users {
    type Response = User;
    type Future = BoxFuture<'static, Result<Response<User>, Status>>;

    fn call(&mut self, request: Request<GetUser>) -> Self::Future {
        let Self { replica, world } = self.clone();
        Box::pin(async move {
            let call = request.into_inner().call;
            let answer = world.receive(replica, call).await;
            answer.map_err(|failure| Status::unavailable(failure.to_string()))?;
            let name = format!("user of call {call}");
            Ok(Response::new(User { name }))
        })
    }
}

impl Service<http::Request<Body>> for Users {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let users = self.clone();
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<User, GetUser>::default());
            Ok(grpc.unary(users, request).await)
        })
    }
}

/// Servers on a thread of their own, until dropped.
pub(crate) struct Servers {
    addresses: Vec<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Servers {
    pub(crate) fn start(world: &World) -> io::Result<Self> {
        let mut addresses = Vec::new();
        let mut listeners = Vec::new();
        for _ in 0..REPLICAS {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            addresses.push(listener.local_addr()?);
            listeners.push(listener);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let world = world.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let serving = (0..).zip(listeners).map(|(replica, listener)| {
                    let world = world.clone();
                    serve(Users { replica, world }, listener)
                });
                tokio::select! {
                    _ = join_all(serving) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self {
            addresses,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// One connection to each, as a client keeps them.
    pub(crate) async fn connect(&self) -> Result<Channels, tonic::transport::Error> {
        let mut channels = Vec::new();
        for address in &self.addresses {
            let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
            channels.push(endpoint.connect().await?);
        }
        Ok(Channels {
            channels: channels.into(),
        })
    }
}

async fn serve(users: Users, listener: std::net::TcpListener) -> Result<(), tower::BoxError> {
    // Without it some answers wait 40 ms for an acknowledgement.
    let incoming = TcpIncoming::from(TcpListener::from_std(listener)?).with_nodelay(Some(true));
    Server::builder()
        .add_service(users)
        .serve_with_incoming(incoming)
        .await?;
    Ok(())
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The client's channels to the three replicas.
#[derive(Clone)]
pub(crate) struct Channels {
    channels: Arc<[Channel]>,
}

impl Backend for Channels {
    fn ask(&self, replica: usize, call: u64) -> BoxFuture<'static, Result<(), Failure>> {
        let channel = self.channels[replica].clone();
        Box::pin(async move {
            let mut grpc = tonic::client::Grpc::new(channel);
            grpc.ready().await.map_err(|_| Failure::Transport)?;
            let path = PathAndQuery::from_static("/bench.Users/GetUser");
            let codec = ProstCodec::<GetUser, User>::default();
            let answer = grpc
                .unary(Request::new(GetUser { call }), path, codec)
                .await;
            answer.map(drop).map_err(|_| Failure::Replica)
        })
    }
}
