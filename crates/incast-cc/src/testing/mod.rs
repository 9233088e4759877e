//! Test doubles: an agent, an underlay and a receiver that no scenario can name. Only with the feature `testing`.

pub mod constant_hold;
pub mod exerciser;
pub mod paced_tokens;
