//! Receiver-driven protocols: one folder for each, with both halves.

mod arrived;
mod reminder;
mod slots;

modules!(receiver_driven);

crate::choice! {
    /// Where the defaults of a protocol's constants come from.
    pub enum Profile {
        /// Of the path, so that one scenario fits every rate.
        Scaled = "scaled",
        /// What the evaluation of Polo (C. Ruan et al., ICPP 2020) has for all of them: 12 unscheduled packets.
        Paper = "paper",
    }
}
