//! Priority flow control (IEEE 802.1Qbb) of a node: how much of each neighbour's packets it holds, and which pause
//! state it has requested, advertised and received.
//!
//! Bytes are counted by the port and priority of arrival, as long as they wait in the switch. An ingress above its
//! threshold is paused; what is still in flight then goes to its headroom. [`limits`](super::limits) has the formulas.

pub use super::limits::{Bounds, Limits, Rules};
use super::{
    frame::{Due, Effect, Frame},
    limits::ALPHA_BITS,
    pause::{PauseFrame, ReceivedPauses},
};
use crate::{
    fabric::{
        buffer::{Charge, Level},
        config::Buffer,
        node::pause,
        queue::Ingress,
    },
    flow_control::config::Expiry,
    packet::Packet,
};
use incast_units::{Rate, Time};

/// Priorities of a port.
const PRIORITIES: usize = 8;

/// Priority flow control of one node.
#[derive(Clone, Debug)]
pub struct PauseControl {
    /// Lossless priorities, one bit each: only their packets are counted.
    lossless: u8,
    /// By port.
    limits: Vec<Limits>,
    /// By port, then priority.
    counts: Vec<Count>,
    /// Bytes of the switch's buffer.
    total: u64,
    /// By port.
    ports: Vec<Port>,
    /// Ports whose neighbour is paused, or has not been sent the resume yet.
    pausing: usize,
    response_delay: Time,
    expiry: Option<Expiry>,
    frame: u16,
}

/// The pause state of a port.
#[derive(Clone, Debug, Default)]
struct Port {
    /// Priorities that the neighbour ought to pause, one bit each.
    requested: u8,
    /// How often each priority has come to be in `requested`.
    requests: [u16; PRIORITIES],
    /// Those that the last pause frame named.
    advertised: u8,
    /// When the next refresh is due, where pauses expire.
    refresh: Time,
    /// Pauses received from the neighbour.
    received: ReceivedPauses,
}

/// Bytes of one priority of one ingress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    /// In its reserve and in the shared buffer.
    held: u64,
    /// In its headroom.
    headroom: u64,
}

impl PauseControl {
    /// PFC of a switch with links of these rates and delays, and this buffer.
    pub fn new(rules: &Rules, links: &[(Rate, Time)], buffer: Buffer) -> Self {
        Self {
            lossless: rules.lossless,
            limits: links.iter().map(|(rate, delay)| rules.limits(*rate, *delay)).collect(),
            counts: vec![Count::default(); links.len() * PRIORITIES],
            total: match buffer {
                Buffer::Shared { total, .. } => total,
                Buffer::PerPort { .. } | Buffer::PerPortPackets { .. } | Buffer::Unlimited => u64::MAX,
            },
            ports: vec![Port::default(); links.len()],
            pausing: 0,
            response_delay: rules.pfc.response_delay,
            expiry: rules.pfc.expiry,
            frame: rules.pfc.frame,
        }
    }

    /// PFC of a NIC: it heeds pauses, and sends none.
    pub fn of_nic(rules: &Rules) -> Self {
        let nobody = Rules { lossless: 0, ..rules.clone() };
        Self { ports: vec![Port::default()], ..Self::new(&nobody, &[], Buffer::Unlimited) }
    }

    // ---- Counts by ingress ------------------------------------------------------------------------------------

    /// Buffer that belongs to single ingresses.
    pub fn own(&self) -> u64 {
        let own = self.limits.iter().fold(0u64, |sum, limits| sum.saturating_add(limits.own()));
        own.saturating_mul(u64::from(self.lossless.count_ones()))
    }

    /// Packets of this priority are counted here.
    #[inline]
    pub fn is_lossless(&self, priority: u8) -> bool {
        self.lossless & 1 << priority != 0
    }

    #[inline]
    fn index(ingress: Ingress) -> usize {
        usize::from(ingress.port) * PRIORITIES + usize::from(ingress.priority)
    }

    #[inline]
    fn count(&self, ingress: Ingress) -> (Count, Bounds) {
        (self.counts[Self::index(ingress)], self.limits[usize::from(ingress.port)].threshold)
    }

    /// A packet enters the buffer. Returns its charge, or `None` if its ingress has no headroom left.
    #[inline]
    pub fn enter(&mut self, ingress: Ingress, bytes: u64, level: Level) -> Option<Charge> {
        let limits = self.limits[usize::from(ingress.port)];
        let count = &mut self.counts[Self::index(ingress)];
        if level.used.saturating_add(bytes) > self.total {
            return None;
        }
        let mut from_pool = 0;
        match limits.threshold {
            Bounds::Static { xoff, .. } => {
                if count.held + bytes > xoff.saturating_add(limits.headroom) {
                    return None;
                }
                count.held += bytes;
            }
            Bounds::Dynamic { alpha, reserve, .. } => {
                let share = (count.held + bytes).saturating_sub(reserve);
                let wanted = share.min(bytes);
                if share > 0 && (share > part(level.free, alpha) || wanted > level.free) {
                    if count.headroom + bytes > limits.headroom {
                        return None;
                    }
                    count.headroom += bytes;
                } else {
                    count.held += bytes;
                    from_pool = wanted;
                }
            }
        }
        Some(Charge { bytes, from_pool })
    }

    /// A packet leaves the buffer. Bytes above the threshold leave first.
    #[inline]
    pub fn leave(&mut self, ingress: Ingress, bytes: u64) -> Charge {
        let limits = self.limits[usize::from(ingress.port)];
        let count = &mut self.counts[Self::index(ingress)];
        let mut from_pool = 0;
        match limits.threshold {
            Bounds::Static { .. } => count.held -= bytes,
            Bounds::Dynamic { reserve, .. } => {
                let from_headroom = count.headroom.min(bytes);
                let rest = bytes - from_headroom;
                from_pool = rest.min(count.held.saturating_sub(reserve));
                count.headroom -= from_headroom;
                count.held -= rest;
            }
        }
        Charge { bytes, from_pool }
    }

    /// The ingress must be paused.
    #[inline]
    fn is_high(&self, ingress: Ingress, level: Level) -> bool {
        match self.count(ingress) {
            (count, Bounds::Static { xoff, .. }) => count.held >= xoff,
            (count, Bounds::Dynamic { alpha, reserve, .. }) => {
                count.headroom > 0 || count.held.saturating_sub(reserve) >= part(level.free, alpha)
            }
        }
    }

    /// The ingress may resume.
    #[inline]
    fn is_low(&self, ingress: Ingress, level: Level) -> bool {
        match self.count(ingress) {
            (count, Bounds::Static { xon, .. }) => count.held <= xon,
            (count, Bounds::Dynamic { alpha, reserve, resume_offset }) => {
                let share = count.held.saturating_sub(reserve);
                count.headroom == 0 && (share == 0 || share.saturating_add(resume_offset) <= part(level.free, alpha))
            }
        }
    }

    /// Whether the ingress would have to be paused with this packet, or the whole buffer has no room for it. Departures
    /// that are due but have not been applied can make this true too early, never too late.
    #[inline]
    pub fn reaches(&self, ingress: Ingress, bytes: u64, level: Level) -> bool {
        if level.used.saturating_add(bytes) > self.total {
            return true;
        }
        match self.count(ingress) {
            (count, Bounds::Static { xoff, .. }) => count.held + bytes >= xoff,
            (count, Bounds::Dynamic { alpha, reserve, .. }) => {
                let share = (count.held + bytes).saturating_sub(reserve);
                let after = level.free.saturating_sub(share.min(bytes));
                count.headroom > 0 || share >= part(after, alpha)
            }
        }
    }

    /// Bytes of an ingress in the switch.
    fn bytes(&self, ingress: Ingress) -> u64 {
        let count = self.counts[Self::index(ingress)];
        count.held + count.headroom
    }

    // ---- Pause state ------------------------------------------------------------------------------------------

    /// Changes the state of a port, and keeps count of the ports that pause their neighbour.
    fn change(&mut self, port: usize, change: impl FnOnce(&mut Port)) {
        let port = &mut self.ports[port];
        let before = port.requested | port.advertised != 0;
        change(port);
        let after = port.requested | port.advertised != 0;
        self.pausing = self.pausing + usize::from(after) - usize::from(before);
    }

    /// A packet came in: requests a pause if its ingress is above its threshold. Returns whether that is new. An
    /// ingress that holds nothing is never paused: no departure could resume it.
    pub fn request_pause(&mut self, ingress: Ingress, level: Level) -> bool {
        let (port, bit) = (usize::from(ingress.port), 1 << ingress.priority);
        let is_new = self.bytes(ingress) > 0 && self.ports[port].requested & bit == 0 && self.is_high(ingress, level);
        if is_new {
            self.change(port, |port| {
                port.requested |= bit;
                let requests = &mut port.requests[usize::from(ingress.priority)];
                *requests = requests.wrapping_add(1);
            });
        }
        is_new
    }

    /// A packet left: requests that its neighbour resumes if the ingress is below its threshold. Returns whether that
    /// is new.
    pub fn request_resume(&mut self, ingress: Ingress, level: Level) -> bool {
        let (port, bit) = (usize::from(ingress.port), 1 << ingress.priority);
        let is_new = self.ports[port].requested & bit != 0 && self.is_low(ingress, level);
        if is_new {
            self.change(port, |port| port.requested &= !bit);
        }
        is_new
    }

    /// Whether a port has a pause frame to send.
    pub fn due(&self, port: usize, now: Time) -> Due {
        let Port { requested, advertised, refresh, .. } = self.ports[port];
        if requested != advertised {
            Due::Now
        } else if self.expiry.is_some() && advertised != 0 && refresh <= now {
            Due::IfWaiting
        } else {
            Due::No
        }
    }

    /// The pause frame that a port sends at `now`, if there is something to advertise: what has changed, and where
    /// pauses expire all pauses anew.
    pub fn take_frame(&mut self, port: usize, node: u32, now: Time) -> Option<Frame> {
        let Port { requested, advertised, .. } = self.ports[port];
        let class_enable = if self.expiry.is_some() { requested | advertised } else { requested ^ advertised };
        if class_enable == 0 {
            return None;
        }
        let time = self.expiry.map(|expiry| expiry.after);
        let packet = PauseFrame { class_enable, paused: requested & class_enable, time }.packet(node, self.frame);
        self.change(port, |port| port.advertised = requested);
        let refresh = self.expiry.filter(|_| requested != 0).map(|expiry| now + expiry.refresh);
        if let Some(refresh) = refresh {
            self.ports[port].refresh = refresh;
        }
        Some(Frame { packet, refresh, more: false })
    }

    /// A pause frame arrived at a port. It takes effect after the time of response.
    pub(super) fn receive(&mut self, port: usize, packet: &Packet, now: Time) -> Effect {
        let frame = PauseFrame::read(packet);
        if self.response_delay > Time::ZERO {
            let at = now + self.response_delay;
            self.ports[port].received.defer(at, frame);
            return Effect { event: Some((at, pause::EFFECT)), ..Effect::default() };
        }
        self.apply(port, frame, now)
    }

    /// A frame takes effect, pauses expire, or those of the neighbour are to be refreshed.
    pub(super) fn on_event(&mut self, port: usize, payload: u32, now: Time) -> Effect {
        let received = &mut self.ports[port].received;
        match payload {
            // Each frame has its event, and no two take effect at one instant: a link carries one packet at a time.
            pause::EFFECT => received.due(now).map_or_else(Effect::default, |frame| self.apply(port, frame, now)),
            pause::EXPIRY => Effect { resume: received.expire(now), ..Effect::default() },
            _ => Effect { has_frame: self.must_refresh(port, now), ..Effect::default() },
        }
    }

    /// Whether the refresh that was scheduled for `now` is still due.
    fn must_refresh(&self, port: usize, now: Time) -> bool {
        self.ports[port].refresh == now && self.ports[port].advertised != 0
    }

    fn apply(&mut self, port: usize, frame: PauseFrame, now: Time) -> Effect {
        let expiry = self.ports[port].received.apply(now, frame);
        let event = expiry.map(|at| (at, pause::EXPIRY));
        Effect { event, pause: frame.paused, resume: frame.resumed(), has_frame: false }
    }

    /// The link of a port went down or came up: both ends clear the pause state.
    pub(super) fn reset(&mut self, port: usize, up: bool, now: Time) -> Effect {
        self.ports[port].received.clear();
        self.change(port, |port| (port.advertised, port.refresh) = (0, Time::ZERO));
        let has_frame = up && self.due(port, now) == Due::Now;
        Effect { resume: u8::MAX, has_frame, ..Effect::default() }
    }

    /// No neighbour is paused.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.pausing == 0
    }

    /// Priorities of ports that received pauses hold: port, priority, and since when.
    pub fn paused(&self) -> impl Iterator<Item = (u16, u8, Time)> {
        self.ports.iter().enumerate().flat_map(|(index, port)| {
            (0..8u8).filter_map(move |priority| Some((index as u16, priority, port.received.since(priority)?)))
        })
    }

    /// `None` if a pause of the neighbour of an ingress is requested and packets of it are queued here. Else how many
    /// were requested so far.
    pub(super) fn without_reason(&self, ingress: Ingress) -> Option<u32> {
        let port = &self.ports[usize::from(ingress.port)];
        let has_reason = port.requested & 1 << ingress.priority != 0 && self.bytes(ingress) > 0;
        (!has_reason).then(|| port.requests[usize::from(ingress.priority)].into())
    }
}

/// `bytes` times alpha, which is given in units of 2^-20.
#[inline]
fn part(bytes: u64, alpha: u64) -> u64 {
    u64::try_from((u128::from(bytes) * u128::from(alpha)) >> ALPHA_BITS).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fabric::buffer::SharedBuffer,
        flow_control::config::{Alpha, Headroom, Pfc, Threshold},
    };
    use proptest::prelude::*;

    fn rules(threshold: Threshold, headroom: Headroom) -> Rules {
        Rules {
            pfc: Pfc { headroom, ..Pfc::new(threshold) },
            lossless: 0b11,
            frame: 1000,
            gap: 20,
            host_rate: Rate::from_gbps(100),
            base_rtt: Time::from_us(8),
        }
    }

    fn dynamic(alpha: Alpha) -> Threshold {
        Threshold::Dynamic { alpha, reserve: 4096, resume_offset: 3072 }
    }

    fn at(port: u16, priority: u8) -> Ingress {
        Ingress { port, priority }
    }

    fn control(rules: &Rules, ports: &[(Rate, Time)], policy: Buffer, buffer: &mut SharedBuffer) -> PauseControl {
        let pfc = PauseControl::new(rules, ports, policy);
        buffer.set_aside(pfc.own());
        pfc
    }

    fn enter(pfc: &mut PauseControl, buffer: &mut SharedBuffer, port: u16, priority: u8, bytes: u64) -> bool {
        let charge = pfc.enter(at(port, priority), bytes, buffer.level());
        charge.inspect(|charge| buffer.take(*charge)).is_some()
    }

    fn leave(pfc: &mut PauseControl, buffer: &mut SharedBuffer, port: u16, priority: u8, bytes: u64) {
        buffer.give_back(pfc.leave(at(port, priority), bytes));
    }

    fn held(pfc: &PauseControl) -> u64 {
        pfc.counts.iter().map(|count| count.held + count.headroom).sum()
    }

    #[test]
    fn a_static_threshold_pauses_at_xoff_and_resumes_at_xon() {
        let size = crate::fabric::config::Size::Bytes;
        let rules = rules(Threshold::Static { xoff: size(3000), xon: Some(size(1000)) }, Headroom::Bytes(2000));
        let policy = Buffer::Shared { total: 100_000, alpha: (1, 1), reserve: 0 };
        let mut buffer = SharedBuffer::new(policy, 0);
        let mut pfc = control(&rules, &[(Rate::from_gbps(100), Time::ZERO); 2], policy, &mut buffer);
        assert_eq!(buffer.level().free, 100_000 - 2 * 2 * 5000);
        let mut seen = Vec::new();
        for _ in 0..6 {
            let before = pfc.reaches(at(1, 0), 1000, buffer.level());
            let entered = enter(&mut pfc, &mut buffer, 1, 0, 1000);
            seen.push((before, entered, pfc.is_high(at(1, 0), buffer.level()), pfc.is_high(at(1, 1), buffer.level())));
        }
        let (low, high, full) = ((false, true, false, false), (true, true, true, false), (true, false, true, false));
        assert_eq!(seen, [low, low, high, high, high, full]);
        for left in [4000, 3000, 2000, 1000] {
            assert!(!pfc.is_low(at(1, 0), buffer.level()));
            leave(&mut pfc, &mut buffer, 1, 0, 1000);
            assert_eq!(pfc.bytes(at(1, 0)), left);
        }
        assert!(pfc.is_low(at(1, 0), buffer.level()));
    }

    /// One ingress alone may take alpha / (1 + alpha) of the pool and its reserve; then the headroom, of which what
    /// leaves leaves first; and it goes on when it is far enough below the threshold again.
    #[test]
    fn a_dynamic_threshold_follows_the_free_buffer() {
        let rules = rules(dynamic(Alpha::Fixed(0.125)), Headroom::Bytes(1_000));
        // Two priorities of two ports have 4,096 and 1,000 each; 90,000 are shared.
        let policy = Buffer::Shared { total: 90_000 + 4 * 5_096, alpha: (1, 1), reserve: 0 };
        let mut buffer = SharedBuffer::new(policy, 0);
        let mut pfc = control(&rules, &[(Rate::from_gbps(100), Time::ZERO); 2], policy, &mut buffer);
        let mut entered = 0;
        while !pfc.is_high(at(0, 1), buffer.level()) {
            assert!(enter(&mut pfc, &mut buffer, 0, 1, 1));
            entered += 1;
        }
        // At 10,000 shared bytes an eighth of the other 80,000 is reached.
        assert_eq!((entered, buffer.level().free), (4_096 + 10_000, 80_000));
        assert_eq!((0..2_000).filter(|_| enter(&mut pfc, &mut buffer, 0, 1, 1)).count(), 1_000);
        assert_eq!(buffer.level().free, 80_000);
        // Another ingress lowers the threshold for all.
        assert!(!pfc.is_high(at(1, 1), buffer.level()) && enter(&mut pfc, &mut buffer, 1, 1, 12_000));
        assert_eq!(buffer.level().free, 80_000 - (12_000 - 4_096));
        leave(&mut pfc, &mut buffer, 1, 1, 12_000);
        let mut left = 0;
        while !pfc.is_low(at(0, 1), buffer.level()) {
            leave(&mut pfc, &mut buffer, 0, 1, 1);
            left += 1;
        }
        // The headroom, then until s + 3,072 <= (90,000 - s) / 8: s = 7,269.
        assert_eq!(left, 1_000 + (10_000 - 7_269));
    }

    proptest! {
        /// No ingress takes more than its own and the shared buffer, refused packets take nothing, all buffer is
        /// returned, and departures not yet applied can only make thresholds appear nearer.
        #[test]
        fn buffer_is_shared_out_and_comes_back(
            steps in proptest::collection::vec((0u16..3, 0u8..2, 64u64..1500, any::<bool>()), 1..300),
            alpha in (1u32..64, 1u32..16),
            headroom in 0u64..5000,
            fixed in proptest::option::of(1500u64..6000),
        ) {
            let threshold = match fixed {
                Some(xoff) => Threshold::Static { xoff: crate::fabric::config::Size::Bytes(xoff), xon: None },
                None => Threshold::Dynamic { alpha: Alpha::Fixed(f64::from(alpha.0) / f64::from(alpha.1)), reserve: 1000, resume_offset: 500 },
            };
            let rules = rules(threshold, Headroom::Bytes(headroom));
            let policy = Buffer::Shared { total: 70_000, alpha: (1, 1), reserve: 0 };
            let mut buffer = SharedBuffer::new(policy, 0);
            let mut pfc = control(&rules, &[(Rate::from_gbps(100), Time::ZERO); 3], policy, &mut buffer);
            let free = buffer.level().free;
            let mut inside: Vec<(u16, u8, u64)> = Vec::new();
            for (port, priority, bytes, enters) in steps {
                if enters {
                    let (before, reaches) = (pfc.clone(), pfc.reaches(at(port, priority), bytes, buffer.level()));
                    let mut early = buffer;
                    if enter(&mut pfc, &mut buffer, port, priority, bytes) {
                        inside.push((port, priority, bytes));
                        prop_assert_eq!(reaches, pfc.is_high(at(port, priority), buffer.level()));
                        // Had something left before, no new threshold would have been reached.
                        if let Some((other, its, size)) = inside.first().copied().filter(|_| inside.len() > 1 && !reaches) {
                            let mut caught_up = before;
                            leave(&mut caught_up, &mut early, other, its, size);
                            prop_assert!(!caught_up.reaches(at(port, priority), bytes, early.level()));
                        }
                    } else {
                        prop_assert!(reaches, "only an ingress above its threshold is refused");
                    }
                } else if let Some((port, priority, bytes)) = inside.pop() {
                    leave(&mut pfc, &mut buffer, port, priority, bytes);
                }
                let sum: u64 = inside.iter().map(|packet| packet.2).sum();
                prop_assert!(sum <= 70_000 && buffer.level().used == sum && held(&pfc) == sum);
            }
            for (port, priority, bytes) in inside {
                leave(&mut pfc, &mut buffer, port, priority, bytes);
            }
            prop_assert_eq!((buffer.level().used, buffer.level().free, held(&pfc)), (0, free, 0));
        }
    }
}
