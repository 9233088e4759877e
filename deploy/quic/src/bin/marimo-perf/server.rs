//! Receives flows, checks them, and says when they had arrived.

use crate::{
    Failure, arguments,
    transfer::{self, Checksum, HEADER, Header, Receipt},
    transport::{Checked, Identity},
};
use incast_lab::atomic;
use s2n_quic::{Server, stream::BidirectionalStream};
use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// What was received.
#[derive(Debug, Default)]
pub struct Received {
    flows: AtomicU64,
    bytes: AtomicU64,
    /// Streams that ended early or were none of ours.
    broken: AtomicU64,
}

/// `marimo-perf server`.
pub fn run(arguments: &arguments::Server) -> Result<bool, Failure> {
    let checked = Checked::new(&arguments.transport)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::other("runtime")(&error))?;
    runtime.block_on(async {
        let identity = Identity::new()?;
        let received = Arc::new(Received::default());
        let mut servers = Vec::new();
        for address in &arguments.listen {
            servers.push(checked.server(*address, &identity)?);
        }
        // Only now: whoever waits for the file finds servers that listen.
        atomic::write(&arguments.certificate_out, |file| file.write_all(identity.certificate.as_bytes())).map_err(
            |error| Failure::Input(format!("--certificate-out {}: {error}", arguments.certificate_out.display())),
        )?;
        for server in servers {
            tokio::spawn(serve(server, Arc::clone(&received)));
        }
        let ended = async {
            match arguments.duration {
                Some(duration) => tokio::time::sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
            .map_err(|error| Failure::other("signals")(&error))?;
        tokio::select! {
            () = ended => {}
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        let broken = received.broken.load(Relaxed);
        println!(
            "received {} flows with {} bytes; {broken} ended early",
            received.flows.load(Relaxed),
            received.bytes.load(Relaxed)
        );
        Ok(true)
    })
}

/// Accepts until the endpoint ends.
pub async fn serve(mut server: Server, received: Arc<Received>) {
    while let Some(mut connection) = server.accept().await {
        let received = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
                let received = Arc::clone(&received);
                tokio::spawn(async move {
                    match receive(stream).await {
                        Some(bytes) => {
                            received.flows.fetch_add(1, Relaxed);
                            received.bytes.fetch_add(bytes, Relaxed);
                        }
                        None => {
                            received.broken.fetch_add(1, Relaxed);
                        }
                    }
                });
            }
        });
    }
}

/// One flow; its size, or `None` if it was none or did not arrive.
async fn receive(mut stream: BidirectionalStream) -> Option<u64> {
    let mut start = Vec::with_capacity(HEADER);
    let mut header: Option<Header> = None;
    let (mut bytes, mut checksum) = (0, Checksum::default());
    loop {
        let Ok(chunk) = stream.receive().await else { return None };
        let Some(chunk) = chunk else { break };
        let mut rest = &chunk[..];
        if header.is_none() {
            let (head, after) = rest.split_at(rest.len().min(HEADER - start.len()));
            start.extend_from_slice(head);
            rest = after;
            if let Ok(whole) = <&[u8; HEADER]>::try_from(start.as_slice()) {
                header = Some(Header::decode(whole)?);
            }
        }
        checksum.update(rest);
        bytes += rest.len() as u64;
        if header.is_some_and(|header| bytes >= header.bytes) {
            break;
        }
    }
    let arrived = transfer::now();
    let whole = header.is_some_and(|header| header.bytes == bytes);
    let receipt = Receipt { bytes, checksum: checksum.value(), arrived, clock: transfer::clock() };
    stream.send(receipt.encode().to_vec().into()).await.ok()?;
    stream.close().await.ok()?;
    whole.then_some(bytes)
}
