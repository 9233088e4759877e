//! Sends flows at their times.

use crate::{
    Failure, arguments,
    results::{self, Sent, Status},
    server,
    traffic::{Flow, Traffic},
    transfer::{self, Checksum, Header, RECEIPT, Receipt},
    transport::{Checked, Identity, NAME},
};
use incast_quic::{Statistics, Watch};
use incast_units::Time;
use s2n_quic::{Client, Connection, client::Connect};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Bytes that are made at once.
const CHUNK: u64 = 64 << 10;
/// For endpoints to come up before the first connection.
const GRACE: Duration = Duration::from_millis(50);

/// When time 0 of the scenario is, on both clocks.
#[derive(Clone, Copy, Debug)]
struct Origin {
    instant: Instant,
    /// Nanoseconds of the Unix era.
    unix: u64,
}

impl Origin {
    fn new(start_at: Option<f64>, lead: Duration) -> Result<Self, Failure> {
        let (now, unix) = (Instant::now(), transfer::now());
        let least = lead + GRACE;
        let wait = match start_at {
            None => least,
            Some(second) => {
                let wait = Duration::try_from_secs_f64(second - unix as f64 / 1e9).unwrap_or(Duration::ZERO);
                if wait < least {
                    return Err(Failure::Input(format!(
                        "--start-at {second}: allowed is at least {least:?} from now, for connections to be made"
                    )));
                }
                wait
            }
        };
        Ok(Self { instant: now + wait, unix: unix.saturating_add(nanos(wait)) })
    }
    fn at(self, time: Time) -> Instant {
        self.instant + Duration::from_nanos(time.ps() / 1_000)
    }
    fn since(self, instant: Instant) -> Time {
        Time::from_ns(nanos(instant.saturating_duration_since(self.instant)))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// `marimo-perf client`. Whether no flow failed.
pub fn run(arguments: &arguments::Client) -> Result<bool, Failure> {
    if arguments.stretch == 0 {
        return Err(Failure::Input("--stretch 0: allowed is at least 1".into()));
    }
    let checked = Checked::new(&arguments.transport)?;
    let traffic = Traffic::new(arguments)?;
    let mut certificates = Vec::new();
    for path in &arguments.certificates {
        let read = fs::read_to_string(path);
        certificates.push(read.map_err(|error| Failure::Input(format!("--certificate {}: {error}", path.display())))?);
    }
    if certificates.is_empty() && !arguments.all {
        return Err(Failure::Input("--certificate: give the files that the servers wrote".into()));
    }
    let folder = results::Folder::new(&arguments.out, arguments.force)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::other("runtime")(&error))?;
    let sent = runtime.block_on(async {
        let servers: Vec<SocketAddr> = if arguments.all {
            let mut hosts: Vec<u32> = traffic.flows.iter().map(|flow| flow.spec.destination).collect();
            hosts.sort_unstable();
            hosts.dedup();
            hosts.iter().map(|host| SocketAddr::new(traffic.address(*host), arguments.port)).collect()
        } else {
            Vec::new()
        };
        if !servers.is_empty() {
            let identity = Identity::new()?;
            certificates.push(identity.certificate.clone());
            for address in servers {
                tokio::spawn(server::serve(checked.server(address, &identity)?, Arc::default()));
            }
        }
        play(arguments, &checked, &traffic, &certificates).await
    })?;
    // Endpoints would drain for a while; nothing is under way that anybody waits for.
    runtime.shutdown_background();
    let summary = folder.write(&traffic, &checked.record, &sent)?;
    println!("{summary}");
    Ok(!sent.iter().any(|sent| matches!(sent.status, Status::Failed(_))))
}

async fn play(
    arguments: &arguments::Client,
    checked: &Checked,
    traffic: &Traffic,
    certificates: &[String],
) -> Result<Vec<Sent>, Failure> {
    let mut clients: BTreeMap<u32, Client> = BTreeMap::new();
    for flow in &traffic.flows {
        if let Entry::Vacant(place) = clients.entry(flow.spec.source) {
            let address = SocketAddr::new(traffic.address(flow.spec.source), 0);
            place.insert(checked.client(address, certificates)?);
        }
    }
    let origin = Origin::new(arguments.start_at, arguments.lead)?;
    let end = origin.at(traffic.end);
    let mut tasks = Vec::new();
    for flow in &traffic.flows {
        let server = SocketAddr::new(traffic.address(flow.spec.destination), arguments.port);
        let task = one(clients[&flow.spec.source].clone(), server, *flow, origin, arguments.lead, end);
        tasks.push((*flow, tokio::spawn(task)));
    }
    let mut sent = Vec::new();
    for (flow, task) in tasks {
        let ended = task.await;
        sent.push(ended.unwrap_or_else(|error| Sent::failed(flow, format!("panicked: {error}"))));
    }
    Ok(sent)
}

/// What a flow has come to so far.
#[derive(Debug, Default)]
struct Progress {
    connection: Option<Connection>,
    handshake: Option<Duration>,
    acked: Option<Time>,
}

async fn one(client: Client, server: SocketAddr, flow: Flow, origin: Origin, lead: Duration, end: Instant) -> Sent {
    let start = origin.at(flow.spec.start);
    let mut progress = Progress::default();
    // Connections are made in time, however early the first flows start.
    sleep_until(start.checked_sub(lead).unwrap_or(start)).await;
    let ended = timeout_at(end, transfer(&client, server, flow, start, origin, &mut progress)).await;
    let mut sent = Sent { handshake: progress.handshake, acked: progress.acked, ..Sent::new(flow) };
    if let Some(connection) = &progress.connection {
        let watched = connection.query_event_context(|watch: &Watch| watch.statistics());
        sent.statistics = watched.unwrap_or_default();
        connection.close(0u32.into());
    }
    match ended {
        Err(_) => sent.status = Status::Unfinished,
        Ok(Err(message)) => sent.status = Status::Failed(message),
        Ok(Ok((receipt, receipt_at))) => {
            sent.status = Status::Done;
            let (delivered, same_clock) = delivered(&receipt, receipt_at, origin, &sent.statistics, flow.spec.start);
            sent.delivered = Some(delivered);
            sent.same_clock = same_clock;
        }
    }
    sent
}

/// When the last byte had arrived: as the server says, where both read one clock; otherwise half a round trip before
/// its receipt came.
fn delivered(
    receipt: &Receipt,
    receipt_at: Instant,
    origin: Origin,
    statistics: &Statistics,
    start: Time,
) -> (Time, bool) {
    let same_clock = transfer::same_clock(receipt.clock, transfer::clock());
    let time = if same_clock {
        Time::from_ns(receipt.arrived.saturating_sub(origin.unix))
    } else {
        origin.since(receipt_at).saturating_sub(Time::from_us(statistics.least_rtt_us / 2))
    };
    (time.max(start), same_clock)
}

/// Connects, waits for the start, sends, and checks the receipt.
async fn transfer(
    client: &Client,
    server: SocketAddr,
    flow: Flow,
    start: Instant,
    origin: Origin,
    progress: &mut Progress,
) -> Result<(Receipt, Instant), String> {
    let asked = Instant::now();
    let connection = client
        .connect(Connect::new(server).with_server_name(NAME))
        .await
        .map_err(|error| format!("handshake with {server}: {error}"))?;
    progress.handshake = Some(asked.elapsed());
    let connection = progress.connection.insert(connection);
    sleep_until(start).await;
    let stream = connection.open_bidirectional_stream().await.map_err(|error| error.to_string())?;
    let (mut receiver, mut sender) = stream.split();
    let header = Header { flow: flow.id(), bytes: flow.spec.bytes };
    let mut checksum = Checksum::default();
    sender.send(header.encode().to_vec().into()).await.map_err(|error| error.to_string())?;
    let mut offset = 0;
    while offset < flow.spec.bytes {
        let count = CHUNK.min(flow.spec.bytes - offset);
        let chunk = transfer::content(flow.id(), offset, count as usize);
        checksum.update(&chunk);
        sender.send(chunk.into()).await.map_err(|error| error.to_string())?;
        offset += count;
    }
    let acknowledged = async {
        let closed = sender.close().await.map_err(|error| error.to_string());
        closed.map(|()| Instant::now())
    };
    let answered = async {
        let mut receipt = Vec::with_capacity(RECEIPT);
        while receipt.len() < RECEIPT {
            let chunk = receiver.receive().await.map_err(|error| error.to_string())?;
            receipt.extend_from_slice(&chunk.ok_or("the server ended without a receipt")?);
        }
        let receipt: [u8; RECEIPT] = receipt.try_into().map_err(|_| "the receipt is too long")?;
        Ok::<_, String>((Receipt::decode(&receipt), Instant::now()))
    };
    let (acked, (receipt, receipt_at)) = tokio::try_join!(acknowledged, answered)?;
    progress.acked = Some(origin.since(acked));
    if receipt.bytes != flow.spec.bytes || receipt.checksum != checksum.value() {
        return Err(format!(
            "{} bytes with checksum {:016x} were sent, {} with {:016x} arrived",
            flow.spec.bytes,
            checksum.value(),
            receipt.bytes,
            receipt.checksum
        ));
    }
    Ok((receipt, receipt_at))
}
