//! Laws that set a congestion window: at most so many bytes of the flow are in flight.

mod delivery_rate;
pub mod prr;
mod slow_start;
mod windowed;

modules!(window);
