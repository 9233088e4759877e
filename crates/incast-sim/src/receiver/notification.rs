//! The notification point: when a receiver reports the marks of a flow's packets, and which.
//!
//! Sources: Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015 (DCQCN); the simulator of
//! Y. Zhang et al., "Congestion Detection in Lossless Networks", SIGCOMM 2021 (TCD), for marks of two kinds.

use incast_cc::{Cnp, agent::Codepoint};
use incast_units::Time;

/// The marks of a flow that no notification has reported.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotificationPoint {
    /// Before this none may be sent.
    next: Time,
    /// When the last packet with CE arrived.
    congested: Option<Time>,
    /// When the last packet with UE arrived.
    undetermined: Option<Time>,
}

impl NotificationPoint {
    /// A packet with CE or UE arrived: the notification to be sent, unless one was sent less than `interval` ago. It
    /// reports the marks of the last `interval`. An older mark is forgotten: TCD's authors take the marks of each
    /// interval at its end (`CheckandSendQCN`) and clear them.
    pub fn on_mark(&mut self, now: Time, codepoint: Codepoint, interval: Time) -> Option<Cnp> {
        match codepoint {
            Codepoint::CongestionExperienced => self.congested = Some(now),
            _ => self.undetermined = Some(now),
        }
        if now < self.next {
            return None;
        }
        self.next = now.saturating_add(interval);
        let is_recent = |mark: Option<Time>| mark.is_some_and(|at| now.saturating_sub(at) <= interval);
        Some(Cnp {
            congested: is_recent(self.congested.take()),
            undetermined: is_recent(self.undetermined.take()),
            window: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Codepoint::{CongestionExperienced as CE, UndeterminedExperienced as UE};

    /// What marks at these microseconds cause, with an interval of 50 us: CE and UE of each notification.
    fn notified(marks: &[(u64, Codepoint)]) -> Vec<(u64, bool, bool)> {
        let mut point = NotificationPoint::default();
        let mut sent = Vec::new();
        for (at, codepoint) in marks {
            if let Some(cnp) = point.on_mark(Time::from_us(*at), *codepoint, Time::from_us(50)) {
                sent.push((*at, cnp.congested, cnp.undetermined));
            }
        }
        sent
    }

    #[test]
    fn one_notification_in_an_interval_has_the_marks_of_it() {
        assert_eq!(notified(&[(10, CE), (30, CE), (59, CE), (60, CE)]), [(10, true, false), (60, true, false)]);
        let merged = [(10, UE), (30, CE), (40, UE), (60, UE), (110, UE)];
        assert_eq!(notified(&merged), [(10, false, true), (60, true, true), (110, false, true)]);
    }

    #[test]
    fn a_mark_older_than_an_interval_is_forgotten() {
        // The CE of 30 us is reported up to 80 us.
        assert_eq!(notified(&[(10, CE), (30, CE), (80, UE)])[1..], [(80, true, true)]);
        assert_eq!(notified(&[(10, CE), (30, CE), (81, UE)])[1..], [(81, false, true)]);
        assert_eq!(
            notified(&[(10, CE), (30, CE), (361, UE), (411, UE)])[1..],
            [(361, false, true), (411, false, true)]
        );
        assert_eq!(notified(&[(10, UE), (30, UE), (361, CE)])[1..], [(361, true, false)]);
    }

    #[test]
    fn without_an_interval_each_mark_is_reported() {
        let mut point = NotificationPoint::default();
        for codepoint in [CE, UE, CE] {
            let cnp = point.on_mark(Time::from_us(1), codepoint, Time::ZERO).expect("at once");
            assert_eq!((cnp.congested, cnp.undetermined), (codepoint == CE, codepoint == UE));
        }
    }
}
