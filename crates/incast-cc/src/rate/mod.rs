//! Laws that set a sending rate.

mod rate_based;

modules!(rate);
