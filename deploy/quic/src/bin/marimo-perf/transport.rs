//! Endpoints of s2n-quic, with the settings that matter in a datacenter.

use crate::{
    Failure,
    arguments::{Congestion, Transport},
};
use incast_cc::parameters::Raw;
use incast_quic::{Endpoint, Monitor, Settings, Watched};
use s2n_quic::{
    Client, Server,
    provider::{congestion_controller, io, limits::Limits, tls},
};
use serde_json::{Value, json};
use std::{fs, net::SocketAddr, time::Duration};

/// Name in certificates: addresses do not matter, as each certificate is pinned.
pub const NAME: &str = "incast";
/// Application protocol of TLS.
const PROTOCOL: &str = "incast/1";
/// Bytes that may be under way in a stream or connection: never what limits.
const WINDOW: u64 = 256 << 20;
/// Bytes that a stream takes from the application ahead of the network.
const SEND_BUFFER: u32 = 4 << 20;
/// Connections of which nothing arrives end.
const IDLE: Duration = Duration::from_secs(30);
/// IPv4 and UDP headers.
const LEAST_MTU: u16 = 1_228;

/// A certificate and its key, made at the start of a server.
#[derive(Debug)]
pub struct Identity {
    /// What clients pin.
    pub certificate: String,
    key: String,
}

impl Identity {
    /// A fresh one.
    pub fn new() -> Result<Self, Failure> {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()])
            .map_err(|error| Failure::other("certificate")(&error))?;
        Ok(Self { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
    }
}

/// What was asked for, checked.
#[derive(Clone, Debug)]
pub struct Checked {
    congestion: Congestion,
    settings: Settings,
    limits: Limits,
    mtu: u16,
    gso: bool,
    /// For the record.
    pub record: Value,
}

impl Checked {
    /// Everything that can be wrong is found here.
    pub fn new(asked: &Transport) -> Result<Self, Failure> {
        let input = |argument: &'static str| {
            move |error: &dyn std::fmt::Display| Failure::Input(format!("{argument}: {error}"))
        };
        if asked.mtu < LEAST_MTU {
            let mtu = asked.mtu;
            return Err(Failure::Input(format!("--mtu {mtu}: allowed is at least {LEAST_MTU}: 1200 bytes of QUIC")));
        }
        if asked.congestion != Congestion::Marimo && !asked.parameters.is_empty() {
            return Err(Failure::Input("--parameter: only Marimo has parameters".into()));
        }
        let given: Vec<(String, Raw)> = asked
            .parameters
            .iter()
            .map(|(key, text)| Ok((key.clone(), raw(key, text)?)))
            .collect::<Result<_, Failure>>()?;
        let mut settings = Settings::new(&given).map_err(|error| input("--parameter")(&error))?;
        settings.bundles = asked.gso;
        settings.pace_from = asked.pace_from;
        let limits = (|| {
            Limits::new()
                .with_max_ack_delay(asked.ack_delay)?
                .with_initial_round_trip_time(asked.initial_rtt)?
                .with_max_idle_timeout(IDLE)?
                .with_data_window(WINDOW)?
                .with_bidirectional_local_data_window(WINDOW)?
                .with_bidirectional_remote_data_window(WINDOW)?
                .with_max_send_buffer_size(SEND_BUFFER)
        })()
        .map_err(|error| input("--ack-delay, --initial-rtt")(&error))?;
        let record = json!({
            "congestion": format!("{:?}", asked.congestion).to_lowercase(),
            "parameters": asked.parameters.iter().map(|(key, text)| format!("{key}={text}")).collect::<Vec<_>>(),
            "initial_window_packets": settings.config().initial_window >> 16,
            "ack_delay_us": asked.ack_delay.as_micros() as u64,
            "initial_rtt_us": asked.initial_rtt.as_micros() as u64,
            "mtu": asked.mtu,
            "gso": asked.gso,
            "pace_from_us": asked.pace_from.as_micros() as u64,
        });
        Ok(Self { congestion: asked.congestion, settings, limits, mtu: asked.mtu, gso: asked.gso, record })
    }

    fn io(&self, address: SocketAddr) -> Result<io::tokio::Provider, Failure> {
        io::tokio::Provider::builder()
            .with_receive_address(address)
            .and_then(|io| io.with_gso(self.gso))
            .and_then(|io| io.with_max_mtu(self.mtu))
            // Packets are full from the first on: probes of the path would be counted among them.
            .and_then(|io| io.with_initial_mtu(self.mtu))
            .and_then(io::tokio::Builder::build)
            .map_err(|error| Failure::Input(format!("{address}: {error}")))
    }

    /// An endpoint that listens.
    pub fn server(&self, address: SocketAddr, identity: &Identity) -> Result<Server, Failure> {
        match self.congestion {
            Congestion::Marimo => self.server_with(address, identity, Endpoint::new(self.settings.clone())),
            Congestion::Cubic => self.server_with(address, identity, Watched(congestion_controller::Cubic::default())),
            Congestion::Bbr => self.server_with(address, identity, Watched(congestion_controller::Bbr::default())),
        }
    }

    fn server_with<E: congestion_controller::Endpoint>(
        &self,
        address: SocketAddr,
        identity: &Identity,
        congestion: E,
    ) -> Result<Server, Failure> {
        let tls = tls::default::Server::builder()
            .with_certificate(identity.certificate.as_str(), identity.key.as_str())
            .and_then(|tls| tls.with_application_protocols([PROTOCOL].iter()))
            .map_err(|error| Failure::other("TLS")(&error))?
            .build()
            .map_err(|error| Failure::other("TLS")(&error))?;
        let failed = |error: &dyn std::fmt::Display| Failure::Other(format!("{address}: {error}"));
        let Ok(builder) = Server::builder().with_tls(tls);
        let Ok(builder) = builder.with_congestion_controller(congestion);
        let Ok(builder) = builder.with_event(Monitor);
        let Ok(builder) = builder.with_limits(self.limits);
        let Ok(builder) = builder.with_io(self.io(address)?);
        builder.start().map_err(|error| failed(&error))
    }

    /// An endpoint that connects to servers with these certificates.
    pub fn client(&self, address: SocketAddr, certificates: &[String]) -> Result<Client, Failure> {
        match self.congestion {
            Congestion::Marimo => self.client_with(address, certificates, Endpoint::new(self.settings.clone())),
            Congestion::Cubic => {
                self.client_with(address, certificates, Watched(congestion_controller::Cubic::default()))
            }
            Congestion::Bbr => self.client_with(address, certificates, Watched(congestion_controller::Bbr::default())),
        }
    }

    fn client_with<E: congestion_controller::Endpoint>(
        &self,
        address: SocketAddr,
        certificates: &[String],
        congestion: E,
    ) -> Result<Client, Failure> {
        let mut tls = tls::default::Client::builder();
        for certificate in certificates {
            tls = tls
                .with_certificate(certificate.as_str())
                .map_err(|error| Failure::Input(format!("--certificate: {error}")))?;
        }
        let tls = tls
            .with_application_protocols([PROTOCOL].iter())
            .map_err(|error| Failure::Input(format!("--certificate: {error}")))?
            .build()
            .map_err(|error| Failure::Input(format!("--certificate: {error}")))?;
        let failed = |error: &dyn std::fmt::Display| Failure::Other(format!("{address}: {error}"));
        let Ok(builder) = Client::builder().with_tls(tls);
        let Ok(builder) = builder.with_congestion_controller(congestion);
        let Ok(builder) = builder.with_event(Monitor);
        let Ok(builder) = builder.with_limits(self.limits);
        let Ok(builder) = builder.with_io(self.io(address)?);
        builder.start().map_err(|error| failed(&error))
    }
}

/// A value as a scenario would have it.
fn raw(key: &str, text: &str) -> Result<Raw, Failure> {
    let input = |message: String| Failure::Input(format!("--parameter {key}={text}: {message}"));
    // What is not TOML is a text without its quotes.
    let value = format!("value = {text}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(text.to_owned()));
    Ok(match value {
        toml::Value::Integer(number) => Raw::Integer(number),
        toml::Value::Float(number) => Raw::Float(number),
        toml::Value::Boolean(flag) => Raw::Flag(flag),
        toml::Value::String(name) if key == "table" && !["calibrated", "linear"].contains(&name.as_str()) => {
            let text = fs::read_to_string(&name).map_err(|error| input(format!("{name}: {error}")))?;
            Raw::File { path: name, text: text.into() }
        }
        toml::Value::String(text) => Raw::Text(text),
        _ => return Err(input("expected a number, a text, or true or false".into())),
    })
}
