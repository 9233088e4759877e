//! Messages between domains, and their attachments.

use incast_units::Time;
use std::mem::MaybeUninit;

/// What travels between domains. It may name one attachment, which travels with it.
pub trait Message: Copy + Send {
    /// Names no attachment.
    const NO_ATTACHMENT: u32 = u32::MAX;
    /// Index of the attachment where the message is stored, or [`Self::NO_ATTACHMENT`].
    fn attachment(&self) -> u32;
    /// Sets that index.
    fn set_attachment(&mut self, index: u32);
    /// Called on the copy that is sent, after the change of [`super::Context::send_changed`]: a hook to update fields
    /// at each send. The change must not touch the fields that this sets.
    fn sent(&mut self, _original: &Self) {}
}

/// What travels beside a message.
pub trait Attachment: Copy + Send {
    /// Writes a copy of this to `place`.
    fn copy_to(&self, place: &mut MaybeUninit<Self>);
}

impl<T: Copy + Send, const N: usize> Attachment for [T; N] {
    fn copy_to(&self, place: &mut MaybeUninit<Self>) {
        place.write(*self);
    }
}

/// A message with its time and place of arrival: one cache line, if the message has 52 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Envelope<M> {
    pub time: Time,
    pub entity: u32,
    pub message: M,
}
