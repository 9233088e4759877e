//! What a controller is not told, and what an application wants to know.
//!
//! s2n-quic tells the state of ECN to event subscribers only, and subscribers know connections, not controllers. The
//! one way from a controller to its connection is the publisher that it is called with: it reports a pacing rate
//! before its first packet, which reaches [`Monitor`] on the same thread, before that call returns. What the controller
//! offers meanwhile in a variable of the thread is taken there, so that both hold the same [`Link`].
//!
//! Applications read [`Watch`] with `connection.query_event_context`.

use num_rational::Ratio;
use s2n_quic::provider::{
    congestion_controller::{
        CongestionController, Endpoint, PathInfo, Publisher, RandomGenerator, RttEstimator, Timestamp,
    },
    event::{ConnectionInfo, ConnectionMeta, Subscriber, events},
};
use s2n_quic_core::recovery::bandwidth::Bandwidth;
use serde::Serialize;
use std::{
    cell::RefCell,
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// Epochs that are kept for each path.
const EPOCHS: usize = 1_024;

/// What s2n-quic makes of ECN on a path: RFC 9000, appendix A.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EcnState {
    /// The first ten packets are sent with ECT(0).
    #[default]
    Testing,
    /// They are under way or lost, which is for good if all of them are; further ones go without.
    Unknown,
    /// Off for 60 s: marks were not reported, or more than ten packets with ECT were lost in a row.
    Failed,
    /// Marks are reported.
    Capable,
}

impl EcnState {
    fn from_event(state: &events::EcnState) -> Self {
        match state {
            events::EcnState::Failed { .. } => Self::Failed,
            events::EcnState::Capable { .. } => Self::Capable,
            events::EcnState::Unknown { .. } => Self::Unknown,
            _ => Self::Testing,
        }
    }
    fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Unknown,
            2 => Self::Failed,
            3 => Self::Capable,
            _ => Self::Testing,
        }
    }
    fn code(self) -> u8 {
        match self {
            Self::Testing => 0,
            Self::Unknown => 1,
            Self::Failed => 2,
            Self::Capable => 3,
        }
    }
}

/// One epoch of Marimo on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Epoch {
    /// Its number.
    pub epoch: u32,
    /// Microseconds since the first packet.
    pub time_us: u64,
    /// Marked share, Q16.
    pub share: u32,
    /// Estimated load after it, Q16.
    pub rho: u32,
    /// Window after it, Q16 packets.
    pub window: u32,
}

/// Counters of a path since its first packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// The state of ECN.
    pub ecn: EcnState,
    /// How often ECN was switched off.
    pub ecn_failures: u32,
    /// How often the controller went on without ECN, and with ECN again.
    pub fallbacks: u32,
    /// See [`Statistics::fallbacks`].
    pub returns: u32,
    /// Packets in flight ever sent, and their bytes.
    pub sent_packets: u64,
    /// See [`Statistics::sent_packets`].
    pub sent_bytes: u64,
    /// Bytes acknowledged.
    pub acked_bytes: u64,
    /// Packets reported as marked with CE.
    pub ce_packets: u64,
    /// Packets found lost, and their bytes.
    pub lost_packets: u64,
    /// See [`Statistics::lost_packets`].
    pub lost_bytes: u64,
    /// Probe timeouts.
    pub probe_timeouts: u32,
    /// Episodes of persistent congestion.
    pub persistent_congestion: u32,
    /// Window now, and the extremes of what it was, in bytes.
    pub window: u32,
    /// See [`Statistics::window`].
    pub least_window: u32,
    /// See [`Statistics::window`].
    pub largest_window: u32,
    /// Payload of a full packet.
    pub full_packet: u32,
    /// Smoothed and least round trip, in microseconds.
    pub smoothed_rtt_us: u64,
    /// See [`Statistics::smoothed_rtt_us`].
    pub least_rtt_us: u64,
    /// The newest epochs of Marimo.
    pub epochs: Vec<Epoch>,
}

/// What a controller and the monitor of its connection share.
#[derive(Debug, Default)]
pub struct Link {
    ecn: AtomicU8,
    ecn_failures: AtomicU32,
    fallbacks: AtomicU32,
    returns: AtomicU32,
    sent_packets: AtomicU64,
    sent_bytes: AtomicU64,
    acked_bytes: AtomicU64,
    ce_packets: AtomicU64,
    lost_packets: AtomicU64,
    lost_bytes: AtomicU64,
    probe_timeouts: AtomicU32,
    persistent_congestion: AtomicU32,
    window: AtomicU32,
    /// Less one, so that 0 is "none yet".
    least_window: AtomicU32,
    largest_window: AtomicU32,
    full_packet: AtomicU32,
    smoothed_rtt_us: AtomicU64,
    least_rtt_us: AtomicU64,
    epochs: Mutex<VecDeque<Epoch>>,
}

impl Link {
    /// The state of ECN, as last reported.
    pub fn ecn(&self) -> EcnState {
        EcnState::from_code(self.ecn.load(Relaxed))
    }
    pub(crate) fn set_ecn(&self, state: EcnState) {
        let before = EcnState::from_code(self.ecn.swap(state.code(), Relaxed));
        if state == EcnState::Failed && before != EcnState::Failed {
            self.ecn_failures.fetch_add(1, Relaxed);
        }
    }
    pub(crate) fn fell_back(&self) {
        self.fallbacks.fetch_add(1, Relaxed);
    }
    pub(crate) fn returned(&self) {
        self.returns.fetch_add(1, Relaxed);
    }
    pub(crate) fn set_full_packet(&self, bytes: u32) {
        self.full_packet.store(bytes, Relaxed);
    }
    pub(crate) fn push(&self, epoch: Epoch) {
        let mut epochs = self.epochs.lock().unwrap_or_else(PoisonError::into_inner);
        if epochs.len() == EPOCHS {
            epochs.pop_front();
        }
        epochs.push_back(epoch);
    }
    fn set_window(&self, bytes: u32) {
        self.window.store(bytes, Relaxed);
        self.largest_window.fetch_max(bytes, Relaxed);
        if self.least_window.load(Relaxed).wrapping_sub(1) > bytes.wrapping_sub(1) {
            self.least_window.store(bytes, Relaxed);
        }
    }
    fn set_rtt(&self, rtt: &RttEstimator) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.smoothed_rtt_us.store(micros(rtt.smoothed_rtt()), Relaxed);
        self.least_rtt_us.store(micros(rtt.min_rtt()), Relaxed);
    }

    /// All of it.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            ecn: self.ecn(),
            ecn_failures: self.ecn_failures.load(Relaxed),
            fallbacks: self.fallbacks.load(Relaxed),
            returns: self.returns.load(Relaxed),
            sent_packets: self.sent_packets.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            acked_bytes: self.acked_bytes.load(Relaxed),
            ce_packets: self.ce_packets.load(Relaxed),
            lost_packets: self.lost_packets.load(Relaxed),
            lost_bytes: self.lost_bytes.load(Relaxed),
            probe_timeouts: self.probe_timeouts.load(Relaxed),
            persistent_congestion: self.persistent_congestion.load(Relaxed),
            window: self.window.load(Relaxed),
            least_window: self.least_window.load(Relaxed),
            largest_window: self.largest_window.load(Relaxed),
            full_packet: self.full_packet.load(Relaxed),
            smoothed_rtt_us: self.smoothed_rtt_us.load(Relaxed),
            least_rtt_us: self.least_rtt_us.load(Relaxed),
            epochs: self.epochs.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect(),
        }
    }
}

thread_local! {
    /// What the controller that is reporting right now offers to the monitor of its connection.
    static OFFERED: RefCell<Option<Arc<Link>>> = const { RefCell::new(None) };
}

/// A controller that counts and introduces itself to the monitor of its connection.
#[derive(Clone, Debug)]
pub struct Monitored<C> {
    inner: C,
    link: Arc<Link>,
    introduced: bool,
}

impl<C: CongestionController> Monitored<C> {
    pub(crate) fn new(inner: C, link: Arc<Link>) -> Self {
        link.set_window(inner.congestion_window());
        Self { inner, link, introduced: false }
    }
    fn introduce<Pub: Publisher>(&mut self, rtt: Duration, publisher: &mut Pub) {
        self.introduced = true;
        let window = self.inner.congestion_window();
        OFFERED.set(Some(Arc::clone(&self.link)));
        publisher.on_pacing_rate_updated(Bandwidth::new(window.into(), rtt), window, Ratio::new_raw(1, 1));
        OFFERED.set(None);
    }
}

impl<C: CongestionController> CongestionController for Monitored<C> {
    type PacketInfo = C::PacketInfo;

    #[inline]
    fn congestion_window(&self) -> u32 {
        self.inner.congestion_window()
    }
    #[inline]
    fn bytes_in_flight(&self) -> u32 {
        self.inner.bytes_in_flight()
    }
    #[inline]
    fn is_congestion_limited(&self) -> bool {
        self.inner.is_congestion_limited()
    }
    #[inline]
    fn requires_fast_retransmission(&self) -> bool {
        self.inner.requires_fast_retransmission()
    }
    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        rtt_estimator: &RttEstimator,
        publisher: &mut Pub,
    ) -> Self::PacketInfo {
        if !self.introduced {
            self.introduce(rtt_estimator.smoothed_rtt(), publisher);
        }
        if sent_bytes > 0 {
            self.link.sent_packets.fetch_add(1, Relaxed);
            self.link.sent_bytes.fetch_add(sent_bytes as u64, Relaxed);
        }
        self.inner.on_packet_sent(time_sent, sent_bytes, app_limited, rtt_estimator, publisher)
    }
    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        now: Timestamp,
        rtt_estimator: &RttEstimator,
        publisher: &mut Pub,
    ) {
        self.link.set_rtt(rtt_estimator);
        self.inner.on_rtt_update(time_sent, now, rtt_estimator, publisher);
        self.link.set_window(self.inner.congestion_window());
    }
    fn on_ack<Pub: Publisher>(
        &mut self,
        newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: Self::PacketInfo,
        rtt_estimator: &RttEstimator,
        random_generator: &mut dyn RandomGenerator,
        ack_receive_time: Timestamp,
        publisher: &mut Pub,
    ) {
        self.link.acked_bytes.fetch_add(bytes_acknowledged as u64, Relaxed);
        self.inner.on_ack(
            newest_acked_time_sent,
            bytes_acknowledged,
            newest_acked_packet_info,
            rtt_estimator,
            random_generator,
            ack_receive_time,
            publisher,
        );
        self.link.set_window(self.inner.congestion_window());
    }
    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: Self::PacketInfo,
        persistent_congestion: bool,
        new_loss_burst: bool,
        random_generator: &mut dyn RandomGenerator,
        timestamp: Timestamp,
        publisher: &mut Pub,
    ) {
        self.link.lost_packets.fetch_add(1, Relaxed);
        self.link.lost_bytes.fetch_add(lost_bytes.into(), Relaxed);
        if persistent_congestion && new_loss_burst {
            self.link.persistent_congestion.fetch_add(1, Relaxed);
        }
        self.inner.on_packet_lost(
            lost_bytes,
            packet_info,
            persistent_congestion,
            new_loss_burst,
            random_generator,
            timestamp,
            publisher,
        );
        self.link.set_window(self.inner.congestion_window());
    }
    fn on_explicit_congestion<Pub: Publisher>(&mut self, ce_count: u64, event_time: Timestamp, publisher: &mut Pub) {
        self.link.ce_packets.fetch_add(ce_count, Relaxed);
        self.inner.on_explicit_congestion(ce_count, event_time, publisher);
        self.link.set_window(self.inner.congestion_window());
    }
    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, publisher: &mut Pub) {
        self.link.set_full_packet(max_data_size.into());
        self.inner.on_mtu_update(max_data_size, publisher);
        self.link.set_window(self.inner.congestion_window());
    }
    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, publisher: &mut Pub) {
        self.inner.on_packet_discarded(bytes_sent, publisher);
    }
    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.inner.earliest_departure_time()
    }
    fn send_quantum(&self) -> Option<usize> {
        self.inner.send_quantum()
    }
}

/// Another endpoint's controllers, counted the same way: CUBIC or BBR beside Marimo.
#[derive(Debug)]
pub struct Watched<E>(pub E);

impl<E: Endpoint> Endpoint for Watched<E> {
    type CongestionController = Monitored<E::CongestionController>;

    fn new_congestion_controller(&mut self, path_info: PathInfo<'_>) -> Self::CongestionController {
        let link = Arc::new(Link::default());
        link.set_full_packet(path_info.max_datagram_size.into());
        Monitored::new(self.0.new_congestion_controller(path_info), link)
    }
}

/// Takes the state of ECN to controllers. Compose it with other subscribers as a pair.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monitor;

/// The paths of a connection.
#[derive(Debug, Default)]
pub struct Watch {
    paths: Vec<(u64, Arc<Link>)>,
    active: u64,
    /// Exponent of the timeout, as last reported.
    backoff: std::cell::Cell<u32>,
}

impl Watch {
    /// Of the path that was last active.
    pub fn statistics(&self) -> Statistics {
        self.path(self.active)
            .or(self.paths.last().map(|(_, link)| link))
            .map_or_else(Statistics::default, |link| link.statistics())
    }

    fn path(&self, id: u64) -> Option<&Arc<Link>> {
        self.paths.iter().find(|(known, _)| *known == id).map(|(_, link)| link)
    }
}

impl Subscriber for Monitor {
    type ConnectionContext = Watch;

    fn create_connection_context(&mut self, _meta: &ConnectionMeta, _info: &ConnectionInfo<'_>) -> Watch {
        Watch::default()
    }

    fn on_pacing_rate_updated(&mut self, watch: &mut Watch, _meta: &ConnectionMeta, event: &events::PacingRateUpdated) {
        if let Some(link) = OFFERED.take() {
            watch.paths.retain(|(known, _)| *known != event.path_id);
            watch.paths.push((event.path_id, link));
        }
    }

    fn on_ecn_state_changed(&mut self, watch: &mut Watch, _meta: &ConnectionMeta, event: &events::EcnStateChanged<'_>) {
        if let Some(link) = watch.path(event.path.id) {
            link.set_ecn(EcnState::from_event(&event.state));
        }
    }

    fn on_recovery_metrics(&mut self, watch: &mut Watch, _meta: &ConnectionMeta, event: &events::RecoveryMetrics<'_>) {
        if event.path.is_active {
            watch.active = event.path.id;
        }
        let Some(link) = watch.path(event.path.id) else { return };
        // The exponent of the backoff goes back to 0 when something is acknowledged.
        let before = watch.backoff.replace(event.pto_count);
        if event.pto_count > before {
            link.probe_timeouts.fetch_add(event.pto_count - before, Relaxed);
        }
    }
}
