//! Laws that set a sending rate.

#[macro_use]
mod rate_based;

modules!(rate);
