//! Servers that break every protocol they speak, behind the HTTP and gRPC clients.

mod grpc;
mod http1;

use std::net::SocketAddr;
use std::time::Duration;

use hedgerow_agent::{Agent, Replicas, Route};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

const DEADLINE: Duration = Duration::from_secs(2);
const IN_TIME: Duration = Duration::from_secs(20);

async fn rig(addresses: &[SocketAddr]) -> (Route, Replicas) {
    let agent = Agent::builder().connect().await.unwrap();
    let names: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    let replicas = Replicas::new(names.iter().map(|name| (name.as_str(), None))).unwrap();
    let route = agent
        .route("catalog", "get")
        .replicas(replicas.clone())
        .deadline(DEADLINE)
        .build()
        .unwrap();
    (route, replicas)
}

/// Accepts connections for ever, each served by `serve`.
async fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Reads something, writes these bytes over and over, and closes or stays.
async fn raw(answer: Vec<u8>, times: usize, stays: bool) -> SocketAddr {
    listen(move |mut stream| {
        let answer = answer.clone();
        async move {
            let _ = stream.read(&mut [0; 4096]).await;
            for _ in 0..times {
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
            }
            if stays {
                sleep(Duration::from_mins(1)).await;
            }
        }
    })
    .await
}
