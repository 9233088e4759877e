//! What a receiver's scheduler orders, as a packet carries it.
//!
//! The codes of the packet are the order and the priority that comes with it. Positions are in packets.

use crate::fabric::packet::{Kind, Packet};
use incast_cc::{scheduler::Control, share::Share};
use incast_units::Time;

/// An order to the sender of a flow; see [`Control`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Data below this byte may be sent.
    Credit(u64),
    /// One packet may be sent, perhaps a certain one, within a time.
    Token(Option<u32>, Time),
    /// So many packets from this one on are lost, if they are in flight.
    Resend(u32, u32),
    /// So many packets may have been sent on tokens.
    Pull(u64),
    /// A signal is answered.
    Answer,
    /// The flow's share of the receiver.
    Share(Share),
}

/// No packet is named.
const NONE: u32 = u32::MAX;

impl Order {
    /// What a scheduler wants, in packets of `mtu` bytes, and the priority that comes with it.
    pub fn of(control: &Control, mtu: u32) -> (Self, Option<u8>) {
        let packet = |position: u64| (position / u64::from(mtu)).min(u64::from(NONE - 1)) as u32;
        match *control {
            Control::Credit { position, priority, .. } => (Self::Credit(position), priority),
            Control::Token { wanted, lifetime, priority, .. } => {
                (Self::Token(wanted.map(packet), lifetime), priority)
            }
            Control::Resend { position, bytes, priority, .. } => {
                let end = position.saturating_add(bytes).div_ceil(u64::from(mtu)).min(u64::from(NONE)) as u32;
                (Self::Resend(packet(position), end.saturating_sub(packet(position))), priority)
            }
            Control::Pull { number, .. } => (Self::Pull(number), None),
            Control::Answer { .. } => (Self::Answer, None),
            Control::Share { share, .. } => (Self::Share(share), None),
        }
    }

    /// Makes a packet carry it.
    pub fn write(self, priority: Option<u8>, packet: &mut Packet) {
        packet.kind = Kind::Credit;
        let mut control = packet.control_mut();
        let code = match self {
            Self::Credit(position) => {
                control.set_value(position);
                0
            }
            Self::Token(wanted, lifetime) => {
                control.set_pair(wanted.unwrap_or(NONE), 0);
                control.set_value(lifetime.ps());
                1
            }
            Self::Resend(first, count) => {
                control.set_pair(first, count);
                2
            }
            Self::Pull(number) => {
                control.set_value(number);
                3
            }
            Self::Answer => 4,
            Self::Share(share) => {
                control.set_pair(u32::from(Share::bits(Some(share))), 0);
                5
            }
        };
        control.set_codes(code, priority.map_or(0, |priority| priority + 1));
    }

    /// What a packet carries, and the priority that comes with it. Of a share that says nothing there is no order.
    pub fn read(packet: &Packet) -> Option<(Self, Option<u8>)> {
        let control = packet.control();
        let ((code, priority), (first, second)) = (control.codes(), control.pair());
        let order = match code {
            0 => Self::Credit(control.value()),
            1 => Self::Token((first != NONE).then_some(first), Time::from_ps(control.value())),
            2 => Self::Resend(first, second),
            3 => Self::Pull(control.value()),
            4 => Self::Answer,
            _ => Self::Share(Share::from_bits(first as u16)?),
        };
        Some((order, priority.checked_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_carried_whole() {
        let share = Share::of_senders(77);
        let orders = [
            Order::Credit(0),
            Order::Credit(u64::MAX),
            Order::Token(None, Time::MAX),
            Order::Token(Some(9), Time::from_us(3)),
            Order::Resend(5, 1_000_000),
            Order::Pull(1 << 40),
            Order::Answer,
            Order::Share(share),
        ];
        for order in orders {
            for priority in [None, Some(0), Some(7)] {
                let mut packet = Packet::new(Kind::Credit, 0, 1, 2, 3);
                order.write(priority, &mut packet);
                assert_eq!(Order::read(&packet), Some((order, priority)));
            }
        }
    }

    #[test]
    fn bytes_become_the_packets_that_hold_them() {
        let resend = |position, bytes| {
            Order::of(&Control::Resend { flow: 0, position, bytes, priority: None }, 1000).0
        };
        assert_eq!(resend(0, 1000), Order::Resend(0, 1));
        assert_eq!(resend(2_500, 1), Order::Resend(2, 1));
        assert_eq!(resend(2_500, 600), Order::Resend(2, 2));
        assert_eq!(resend(2_000, 0), Order::Resend(2, 0));
        assert_eq!(resend(0, u64::MAX), Order::Resend(0, u32::MAX));
    }
}
