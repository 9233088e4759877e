//! Scheduling of the queues of a port, as configured.

/// Which queue of a port sends next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// The highest priority. Where a weight of headers is set, headers and data alternate, and virtual channels of one priority
    /// do.
    #[default]
    Strict,
    /// Deficit weighted round robin, of all queues or of those below some strict ones.
    Dwrr(Dwrr),
}

impl Scheduling {
    /// It is strict priority.
    pub fn is_strict(&self) -> bool {
        *self == Self::Strict
    }
}

/// Deficit weighted round robin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dwrr {
    /// So many of the highest priorities are strict, before all others.
    pub strict: u8,
    /// Weights of the other priorities, in their order. None is zero.
    pub weights: Vec<u16>,
    /// Bytes that a visit adds for each unit of weight; `None` for one full frame.
    pub quantum: Option<u64>,
}
