//! A domain of a run, and what the engine knows of it.

use super::{
    domain::{Deferred, Domain, Names},
    queue::{EventQueue, TieBreak},
};
use incast_units::Time;
use std::{cell::UnsafeCell, ops::Range};

/// A domain and the engine's data about it, in the order of use.
#[repr(C)]
pub(super) struct Cell<D: Domain> {
    pub queue: EventQueue,
    /// When the domain must run again, as of its last window.
    pub next: Time,
    /// The window for which a wake-up is registered; earlier than the window being executed means none.
    pub wake: u64,
    /// Events handled, the measure by which work is balanced.
    pub cost: u64,
    pub domain: D,
    pub names: Names,
    pub deferred: Deferred<D::Message, D::Attachment>,
    /// Messages of the last window that arrive at the end of the run or later.
    pub leftover: Vec<(u32, D::Message)>,
}

impl<D: Domain> Cell<D> {
    pub fn new(domain: D, names: Names) -> Self {
        Self {
            domain,
            queue: EventQueue::default(),
            next: Time::MAX,
            deferred: Deferred::new(),
            names,
            wake: u64::MAX,
            cost: 0,
            leftover: Vec::new(),
        }
    }
}

/// All domains of a run.
pub(super) struct Cells<D: Domain>(Box<[UnsafeCell<Cell<D>>]>);

// SAFETY: R1: only the thread whose range holds a domain accesses its cell.
unsafe impl<D: Domain> Sync for Cells<D> {}

impl<D: Domain> Cells<D> {
    pub fn new(domains: impl IntoIterator<Item = (D, Names)>) -> Self {
        Self(domains.into_iter().map(|(domain, names)| UnsafeCell::new(Cell::new(domain, names))).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A cell, to be read or written by R1 or R2.
    #[inline]
    pub fn get(&self, index: usize) -> *mut Cell<D> {
        self.0[index].get()
    }

    pub fn get_mut(&mut self, index: usize) -> &mut Cell<D> {
        self.0[index].get_mut()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Cell<D>> {
        self.0.iter_mut().map(UnsafeCell::get_mut)
    }

    pub fn into_domains(self) -> Vec<D> {
        self.0.into_vec().into_iter().map(|cell| cell.into_inner().domain).collect()
    }
}

/// What was settled before the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub lookahead: Time,
    /// Domains below this are of one colour, the others of the other: no two of a colour send to each other.
    pub colours: Option<usize>,
    pub slots: usize,
    pub ties: TieBreak,
    pub attachments: bool,
    /// More events than these at one time are a livelock.
    pub most_at_one_time: u64,
}

impl Rules {
    pub fn phases(&self, inspected: bool) -> u64 {
        if self.colours.is_none() || inspected { 1 } else { 2 }
    }

    /// The domains of `all` that may run in a window, if there is more than one phase.
    pub fn colour(&self, number: u64, all: usize) -> Range<usize> {
        let first = self.colours.unwrap_or(0);
        if number.is_multiple_of(2) { 0..first } else { first..all }
    }
}
