//! Messages between domains, and their attachments.

use incast_units::Time;
use std::mem::MaybeUninit;

/// What travels between domains. It may name one attachment, which travels with it. [`Parcel`] is one for any content.
///
/// # Safety
/// R16: [`Self::attachment`] returns the index that [`Self::set_attachment`] was last given, on the same value or on the
/// one that it is a copy of: the engine reads the attachment that a message names.
pub unsafe trait Message: Copy + Send {
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
///
/// # Safety
/// R16: after [`Self::copy_to`] the place is a valid value of the type, whatever it was before: the engine reads it as
/// one. Parts that need no value (`MaybeUninit`) may be left out.
pub unsafe trait Attachment: Copy + Send {
    /// Writes a copy of this to `place`.
    fn copy_to(&self, place: &mut MaybeUninit<Self>);
}

// SAFETY: R16: the whole array is written.
unsafe impl<T: Copy + Send, const N: usize> Attachment for [T; N] {
    fn copy_to(&self, place: &mut MaybeUninit<Self>) {
        place.write(*self);
    }
}

/// A message of any content, for domains that need no room for the index of an attachment in a message of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel<T> {
    /// What is in it.
    pub content: T,
    attachment: u32,
}

impl<T: Copy + Send> Parcel<T> {
    /// With this content.
    pub fn new(content: T) -> Self {
        Self { content, attachment: Self::NO_ATTACHMENT }
    }
}

// SAFETY: R16: the index is a private field, which nothing else writes but a copy of the whole value.
unsafe impl<T: Copy + Send> Message for Parcel<T> {
    fn attachment(&self) -> u32 {
        self.attachment
    }
    fn set_attachment(&mut self, index: u32) {
        self.attachment = index;
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
