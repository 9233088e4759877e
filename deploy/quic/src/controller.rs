//! The controller: units, and what RFC 9002 asks of one around the law.
//!
//! ```text
//!   PacketInfo: totals ──┐
//!   CE count, then bytes ├─▶ ledger: packets, marked ─▶ marimo.h (C) ─▶ window in packets x full packet = bytes
//!   lost packet ─────────┘                            └ ECN failed: Reno
//! ```
//!
//! Positions are numbers of packets in flight, counted over all packet number spaces. s2n-quic reports an ACK frame in
//! the order round trip, losses, CE count, bytes; a loss is thus answered before the acknowledgement that showed it.

use crate::{
    ledger::{Ledger, PacketInfo},
    monitor::{EcnState, Epoch, Link, Monitored},
    pacer::Pacer,
    reno::{MIN_WINDOW, Reno},
    settings::Settings,
};
use incast_cc::window::marimo::core::{Ack, Connection, ONE};
use s2n_quic::provider::congestion_controller::{
    self, CongestionController, PathInfo, Publisher, RandomGenerator, RttEstimator, Timestamp,
};
use s2n_quic_core::{event::builder::SlowStartExitCause, packet::number::PacketNumberSpace};
use std::sync::Arc;

/// Makes a controller for each path.
#[derive(Clone, Debug)]
pub struct Endpoint {
    settings: Arc<Settings>,
}

impl Endpoint {
    /// With the same settings for all paths.
    pub fn new(settings: Settings) -> Self {
        Self { settings: settings.shared() }
    }
}

impl congestion_controller::Endpoint for Endpoint {
    type CongestionController = Monitored<Controller>;

    fn new_congestion_controller(&mut self, path_info: PathInfo<'_>) -> Self::CongestionController {
        let link = Arc::new(Link::default());
        let controller = Controller::new(Arc::clone(&self.settings), Arc::clone(&link), path_info.max_datagram_size);
        Monitored::new(controller, link)
    }
}

/// What moves the window.
#[derive(Clone, Copy, Debug)]
enum Law {
    Marimo(Connection),
    /// Without ECN.
    Reno(Reno),
}

impl Law {
    /// Q16 packets.
    fn window(&self) -> u32 {
        match self {
            Self::Marimo(core) => core.window(),
            Self::Reno(reno) => reno.window(),
        }
    }
    fn in_slow_start(&self) -> bool {
        match self {
            Self::Marimo(core) => core.in_slow_start(),
            Self::Reno(reno) => reno.in_slow_start(),
        }
    }
}

/// The controller of one path.
#[derive(Clone, Debug)]
pub struct Controller {
    law: Law,
    settings: Arc<Settings>,
    link: Arc<Link>,
    ledger: Ledger,
    pacer: Pacer,
    /// Bytes of a full packet.
    full: u16,
    in_flight: u32,
    /// Most bytes in flight in this round trip, and the position that ends it.
    peak: (u32, u64),
    /// Packets reported as marked whose acknowledgement has not been told yet.
    marked: u32,
    /// The application had no more to send.
    app_limited: bool,
    /// After a pause: packets that may be in flight, until that is as much as the window.
    restart: Option<u32>,
    /// A reduction allows one packet beyond the window: RFC 9002, section 7.3.2.
    fast_retransmission: bool,
    /// When the first packet was sent, and when anything was sent or acknowledged last.
    times: Option<(Timestamp, Timestamp)>,
    /// Position of the first packet sent without ECT while the test of ECN is undecided.
    undecided: Option<u64>,
}

impl Controller {
    /// For a path whose packets have up to `full` bytes.
    pub fn new(settings: Arc<Settings>, link: Arc<Link>, full: u16) -> Self {
        link.set_full_packet(full.into());
        Self {
            law: Law::Marimo(Connection::new(&settings.shared)),
            settings,
            link,
            ledger: Ledger::default(),
            pacer: Pacer::default(),
            full: full.max(1),
            in_flight: 0,
            peak: (0, 0),
            marked: 0,
            app_limited: false,
            restart: None,
            fast_retransmission: false,
            times: None,
            undecided: None,
        }
    }

    /// The law's window in Q16 packets, and not below what QUIC allows: a timeout leaves one packet in the core.
    pub fn window(&self) -> u32 {
        self.law.window().max(MIN_WINDOW * ONE)
    }

    /// It goes on without ECN.
    pub fn is_fallback(&self) -> bool {
        matches!(self.law, Law::Reno(_))
    }

    /// Position of the next packet, modulo 2^32.
    fn next(&self) -> u32 {
        self.ledger.next() as u32
    }

    fn bytes(&self, packets: u32) -> u32 {
        u32::try_from((u64::from(packets) * u64::from(self.full)) >> 16).unwrap_or(u32::MAX)
    }

    /// Follows the state of ECN: without it the marks that a decrease is computed from do not exist.
    fn follow_ecn(&mut self) {
        let state = self.link.ecn();
        if state == EcnState::Unknown {
            self.undecided.get_or_insert(self.ledger.next());
        } else {
            self.undecided = None;
        }
        match (state, self.law) {
            (EcnState::Failed, Law::Marimo(_)) => self.fall_back(),
            // ECN is tested again after 60 s; until that has succeeded nothing is known of marks.
            (EcnState::Capable, Law::Reno(reno)) => {
                let resumed = self.settings.resumed(reno.window(), reno.in_slow_start());
                self.law = Law::Marimo(Connection::new(&resumed));
                self.link.returned();
            }
            _ => {}
        }
    }

    /// Goes on without marks, from the window that it has.
    fn fall_back(&mut self) {
        if let Law::Marimo(core) = self.law {
            self.law = Law::Reno(Reno::new(self.window(), core.in_slow_start()));
            self.marked = 0;
            self.link.fell_back();
        }
    }

    /// The connection sends again after nothing was under way for a probe timeout.
    fn on_idle(&mut self) {
        if let Law::Marimo(core) = &mut self.law {
            core.on_idle(self.ledger.next() as u32);
        }
        // Without acknowledgements to clock them, packets of a whole window would leave at once: RFC 9002, section 7.7.
        if self.window() / ONE > self.settings.burst {
            self.restart = Some(self.settings.burst);
        }
    }

    fn record(&self, core: &Connection, now: Timestamp) {
        let since = self.times.map_or_else(Default::default, |(first, _)| now.saturating_duration_since(first));
        self.link.push(Epoch {
            epoch: core.epochs(),
            time_us: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
            share: core.share(),
            rho: core.rho(),
            window: core.window(),
        });
    }

    /// Says that slow start is over, if it was the last event that ended it.
    fn leave_slow_start<Pub: Publisher>(&self, before: bool, cause: SlowStartExitCause, publisher: &mut Pub) {
        if before && !self.law.in_slow_start() {
            publisher.on_slow_start_exited(cause, self.congestion_window());
        }
    }
}

impl CongestionController for Controller {
    type PacketInfo = PacketInfo;

    #[inline]
    fn congestion_window(&self) -> u32 {
        let window = self.window();
        match self.restart {
            Some(packets) => self.bytes(window.min(packets.saturating_mul(ONE))),
            None => self.bytes(window),
        }
    }

    #[inline]
    fn bytes_in_flight(&self) -> u32 {
        self.in_flight
    }

    #[inline]
    fn is_congestion_limited(&self) -> bool {
        self.congestion_window().saturating_sub(self.in_flight) < u32::from(self.full)
    }

    #[inline]
    fn requires_fast_retransmission(&self) -> bool {
        self.fast_retransmission
    }

    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) -> PacketInfo {
        let bytes = u32::try_from(sent_bytes).unwrap_or(u32::MAX);
        if bytes == 0 {
            return self.ledger.on_sent(0, self.full.into());
        }
        self.follow_ecn();
        let (first, last) = self.times.unwrap_or((time_sent, time_sent));
        self.times = Some((first, time_sent));
        if self.in_flight == 0
            && time_sent.saturating_duration_since(last)
                > rtt_estimator.pto_period(1, PacketNumberSpace::ApplicationData)
        {
            self.on_idle();
        }
        self.in_flight = self.in_flight.saturating_add(bytes);
        self.peak.0 = self.peak.0.max(self.in_flight);
        // Not known during the handshake, where the bytes in flight say enough.
        self.app_limited = app_limited.unwrap_or(false);
        self.fast_retransmission = false;
        if rtt_estimator.smoothed_rtt() >= self.settings.pace_from {
            let burst = u64::from(self.settings.burst) * u64::from(self.full);
            self.pacer.on_sent(
                time_sent,
                bytes.into(),
                burst,
                self.congestion_window().into(),
                rtt_estimator.smoothed_rtt(),
                self.law.in_slow_start(),
            );
        } else {
            self.pacer.stop();
        }
        self.ledger.on_sent(bytes.into(), self.full.into())
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        _time_sent: Timestamp,
        _now: Timestamp,
        rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) {
        // A departure that an assumed round trip has set would hold a window back for longer than the real one.
        if rtt_estimator.smoothed_rtt() < self.settings.pace_from {
            self.pacer.stop();
        }
    }

    fn on_ack<Pub: Publisher>(
        &mut self,
        _newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: PacketInfo,
        _rtt_estimator: &RttEstimator,
        _random_generator: &mut dyn RandomGenerator,
        ack_receive_time: Timestamp,
        publisher: &mut Pub,
    ) {
        self.follow_ecn();
        if let Some((_, last)) = &mut self.times {
            *last = ack_receive_time;
        }
        let acked = self.ledger.on_acked(bytes_acknowledged as u64, newest_acked_packet_info, self.full.into());
        // s2n-quic stays undecided for good if all ten packets of its test are lost, and sends without ECT meanwhile.
        if self.undecided.is_some_and(|from| acked.position > from) {
            self.fall_back();
        }
        // As in the simulator (docs/hosts.md, "Who may send"), but of the whole round trip: s2n-quic reads many
        // acknowledgements before it sends again, so that what is in flight at the last of them says little.
        let limited = !self.app_limited && 2 * u64::from(self.peak.0) >= u64::from(self.congestion_window());
        if acked.position > self.peak.1 {
            self.peak = (self.in_flight, self.ledger.next());
        }
        self.in_flight = self.in_flight.saturating_sub(u32::try_from(bytes_acknowledged).unwrap_or(u32::MAX));
        // Counts of a frame that was overtaken come with the next one: what is too much for this one waits.
        let marked = self.marked.min(acked.packets);
        self.marked -= marked;

        let before = self.law.in_slow_start();
        let next = self.next();
        match &mut self.law {
            Law::Marimo(core) => {
                let epochs = core.epochs();
                let ack = Ack {
                    packets: acked.packets,
                    marked,
                    acked: acked.data,
                    position: acked.position as u32,
                    next,
                    limited: limited.into(),
                };
                core.on_ack(&self.settings.shared, &ack);
                if core.epochs() != epochs {
                    let core = *core;
                    self.record(&core, ack_receive_time);
                }
            }
            Law::Reno(reno) => reno.on_ack(acked.data, acked.position as u32, limited),
        }
        let cause = if marked > 0 { SlowStartExitCause::Ecn } else { SlowStartExitCause::Other };
        self.leave_slow_start(before, cause, publisher);
        if let Some(packets) = self.restart {
            let packets = packets.saturating_add(acked.data);
            self.restart = (packets < self.window() / ONE).then_some(packets);
        }
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: PacketInfo,
        persistent_congestion: bool,
        _new_loss_burst: bool,
        _random_generator: &mut dyn RandomGenerator,
        _timestamp: Timestamp,
        publisher: &mut Pub,
    ) {
        self.follow_ecn();
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        let position = self.ledger.on_lost(packet_info, lost_bytes.into()) as u32;
        let (before, window, next) = (self.law.in_slow_start(), self.law.window(), self.next());
        match (&mut self.law, persistent_congestion) {
            (Law::Marimo(core), false) => core.on_loss(&self.settings.shared, position, next),
            (Law::Marimo(core), true) => core.on_timeout(&self.settings.shared, next),
            (Law::Reno(reno), false) => {
                reno.on_loss(position, next);
            }
            (Law::Reno(reno), true) => reno.on_timeout(next),
        }
        self.fast_retransmission |= self.law.window() < window;
        self.leave_slow_start(before, SlowStartExitCause::PacketLoss, publisher);
    }

    fn on_explicit_congestion<Pub: Publisher>(&mut self, ce_count: u64, _event_time: Timestamp, _publisher: &mut Pub) {
        // The bytes of the same frame come next; only with them is it known what the marks are a share of.
        self.marked = self.marked.saturating_add(u32::try_from(ce_count).unwrap_or(u32::MAX));
    }

    /// A larger MTU leaves the bytes of the window (RFC 8899, unlike s2n-quic's own controllers), but for the least of two
    /// packets; a smaller one leaves the packets.
    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, _publisher: &mut Pub) {
        let before = std::mem::replace(&mut self.full, max_data_size.max(1));
        match &mut self.law {
            Law::Marimo(core) => core.on_mtu(before, self.full),
            Law::Reno(reno) => reno.on_mtu(before, self.full),
        }
        if let Some(packets) = self.restart.as_mut().filter(|_| self.full > before) {
            let bytes = u64::from(*packets) * u64::from(before);
            *packets = u32::try_from(bytes / u64::from(self.full)).unwrap_or(u32::MAX).max(MIN_WINDOW);
        }
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, _publisher: &mut Pub) {
        self.in_flight = self.in_flight.saturating_sub(u32::try_from(bytes_sent).unwrap_or(u32::MAX));
        // What would have been sent again may have been discarded.
        self.fast_retransmission = false;
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.pacer.departure()
    }

    fn send_quantum(&self) -> Option<usize> {
        (!self.settings.bundles).then_some(self.full.into())
    }
}

#[cfg(test)]
mod tests;
