//! Handing messages from window to window, without locks.
//!
//! Messages lie in lines of an arena, eight lines to a chunk. For each (window slot, sending thread, receiving
//! domain) there is a list of chunks, of which only the two ends are kept: eight bytes. A chunk is given back as soon
//! as its domain has run, and taken again by the next sender, while it is still in the cache.
//!
//! The rules that make unsynchronised access sound, all kept by [`super::executor`]:
//! 1. Thread t alone pushes to lists and activity sets of sending thread t, and only for windows after the one
//!    being executed.
//! 2. A domain's lists of the window being executed are read and emptied by the one thread that runs the domain.
//! 3. A barrier separates windows. A slot is reused only by a later window. A thread forgets what it posted for a
//!    window that is over only when no other thread can be reading that slot: see [`PostOffice::forget`].
//! 4. A chunk belongs to one list, to one thread's free chunks, or to the common ones under their lock. It changes
//!    hands by rules 1 to 3 and by that lock.

use super::{
    arrivals::LANES,
    domain::{Attachment, Message},
    lines::{Lines, SEGMENT},
    prefetch::{prefetch, prefetch_for_writing},
    schedule::ActiveSet,
    sync::Apart,
};
use incast_units::Time;
use std::{
    cell::UnsafeCell,
    marker::PhantomData,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A message with its time and place of arrival: one cache line, if the message has 52 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Envelope<M> {
    pub time: Time,
    pub entity: u32,
    pub message: M,
}

/// Lines of a chunk.
const CHUNK: u32 = LANES as u32;
/// Segments of an arena at the most, 8 GiB of one-line envelopes: lines are numbered by u32.
const SEGMENTS: usize = 1 << 12;
const NONE: u32 = u32::MAX;
/// More than this would push out what is needed now.
const PREFETCHED_CHUNKS: u32 = 32;

/// The two ends of a list of chunks: first and last line in use.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

/// The times of the lines of a chunk that its reader is being shown: only [`PostOffice::visit_chunks`] makes it.
#[derive(Clone, Copy)]
pub(super) struct Times<'c, M> {
    first: *const Envelope<M>,
    chunk: PhantomData<&'c ()>,
}

impl<M> Times<'_, M> {
    /// That of a line of the chunk.
    #[inline(always)]
    pub fn of(&self, line: usize) -> Time {
        // SAFETY: the chunk lies in one segment, in which lines that nobody has written are zero; any number is a time.
        unsafe { (&raw const (*self.first.add(line % CHUNK as usize)).time).read() }
    }
}

const EMPTY: List = List { first: NONE, last: NONE };

/// Where the lists of one sending thread for one window lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shelf {
    row: usize,
    /// The list of domain 0.
    first_list: usize,
}

/// All messages on their way.
pub(super) struct PostOffice<M, A> {
    lists: Box<[UnsafeCell<List>]>,
    active: Box<[Apart<ActiveSet>]>,
    lines: Lines<Envelope<M>>,
    /// By line, where a message has one.
    attachments: Lines<A>,
    /// By chunk: the next one of its list.
    next: Lines<u32>,
    /// Free chunks of each thread, the last given back first.
    free: Box<[Apart<Vec<u32>>]>,
    common: Mutex<Common>,
    has_attachments: bool,
    domains: usize,
    threads: usize,
    slots: u64,
}

/// What threads share under a lock. A thread that receives more than it sends collects chunks that others lack.
struct Common {
    /// Number of segments.
    segments: usize,
    /// Free chunks of nobody.
    free: Vec<u32>,
}

/// More free chunks than this are given to all.
const HOARD: usize = 2 * (SEGMENT / CHUNK) as usize;

// SAFETY: access to lists, sets, free chunks and the lines of the three mappings follows the rules in the module's
// documentation; messages and attachments are Send. A mapping stays where it is until the office is dropped, and only
// `grow` changes what may be done with a part of it, under the lock and before anybody knows its lines.
unsafe impl<M: Send, A: Send> Sync for PostOffice<M, A> {}

impl<M: Message, A: Attachment> PostOffice<M, A> {
    /// `slots` must be a power of two.
    pub fn new(domains: usize, threads: usize, slots: usize, has_attachments: bool) -> Self {
        assert!(slots.is_power_of_two(), "slots are masked");
        Self {
            lists: (0..domains * threads * slots).map(|_| UnsafeCell::new(EMPTY)).collect(),
            active: (0..threads * slots).map(|_| Apart::new(ActiveSet::new(domains))).collect(),
            lines: Lines::new(SEGMENTS),
            attachments: Lines::new(if has_attachments { SEGMENTS } else { 0 }),
            next: Lines::new(SEGMENTS / CHUNK as usize),
            free: (0..threads).map(|_| Apart::new(Vec::new())).collect(),
            common: Mutex::new(Common { segments: 0, free: Vec::new() }),
            has_attachments,
            domains,
            threads,
            slots: slots as u64,
        }
    }

    /// Messages may be posted to windows less than this far ahead.
    #[inline]
    pub fn horizon(&self) -> u64 {
        self.slots
    }

    #[inline]
    fn row(&self, thread: usize, window: u64) -> usize {
        (window & (self.slots - 1)) as usize * self.threads + thread
    }

    /// Two windows share a slot.
    #[inline]
    pub fn same_slot(&self, one: u64, other: u64) -> bool {
        (one ^ other) & (self.slots - 1) == 0
    }

    /// The lists of what `thread` posts for a window.
    pub fn shelf(&self, thread: usize, window: u64) -> Shelf {
        let row = self.row(thread, window);
        Shelf { row, first_list: row * self.domains }
    }

    #[inline]
    fn list(&self, thread: usize, window: u64, domain: u32) -> *mut List {
        self.list_on(self.shelf(thread, window), domain)
    }

    #[inline]
    fn list_on(&self, shelf: Shelf, domain: u32) -> *mut List {
        self.lists[shelf.first_list + domain as usize].get()
    }

    /// Posts a message from `thread` to `domain` for the window whose shelf `shelf` is, a later one than the one being
    /// executed, changed as `change` says; see [`super::Context::send_changed`].
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub fn push(
        &self,
        thread: usize,
        shelf: Shelf,
        domain: u32,
        time: Time,
        entity: u32,
        message: &M,
        attachment: Option<&A>,
        change: impl FnOnce(&mut M),
    ) {
        // SAFETY: rule 1: nobody else touches a list of this sending thread for a later window.
        let list = unsafe { &mut *self.list_on(shelf, domain) };
        // The line after the last one, unless that ends a chunk; NONE ends one too.
        let line = if list.last % CHUNK == CHUNK - 1 {
            self.extend(thread, shelf, domain, list)
        } else {
            list.last + 1
        };
        list.last = line;
        // SAFETY: rule 4: the line belongs to this list.
        unsafe { self.write(line, time, entity, message, attachment, change) };
    }

    /// Writes a line in place: a copy less for every message.
    ///
    /// # Safety
    /// The line is this thread's to write.
    #[inline(always)]
    unsafe fn write(
        &self,
        line: u32,
        time: Time,
        entity: u32,
        message: &M,
        attachment: Option<&A>,
        change: impl FnOnce(&mut M),
    ) {
        // SAFETY: promised by the caller.
        unsafe {
            let place = self.lines.at(line);
            (&raw mut (*place).time).write(time);
            (&raw mut (*place).entity).write(entity);
            (&raw mut (*place).message).write(*message);
            // The same order as in `Context::hold`; what the engine sets comes last.
            change(&mut (*place).message);
            (*place).message.sent(message);
            (*place).message.set_attachment(if attachment.is_some() { line } else { M::NO_ATTACHMENT });
            if let Some(attachment) = attachment {
                attachment.copy_to(&mut *self.attachments.at(line).cast());
            }
        }
    }

    /// Starts a list, or adds a chunk to it. Returns the first line of the chunk.
    #[inline(never)]
    fn extend(&self, thread: usize, shelf: Shelf, domain: u32, list: &mut List) -> u32 {
        let chunk = self.take(thread);
        if list.last == NONE {
            // SAFETY: rule 1: nobody else touches the set of this sending thread for a later window.
            unsafe { (*self.active[shelf.row].get()).insert(domain) };
            list.first = chunk * CHUNK;
        } else {
            // SAFETY: rule 4: the list's chunks are this thread's to write.
            unsafe { *self.next.at(list.last / CHUNK) = chunk };
        }
        chunk * CHUNK
    }

    /// A free chunk.
    #[inline]
    fn take(&self, thread: usize) -> u32 {
        // SAFETY: a thread's free chunks are its own.
        let free = unsafe { &mut *self.free[thread].get() };
        match free.pop() {
            Some(chunk) => chunk,
            None => self.grow(free),
        }
    }

    #[cold]
    fn grow(&self, free: &mut Vec<u32>) -> u32 {
        let mut common = self.lock();
        if let Some(chunk) = common.free.pop() {
            let keep = common.free.len().saturating_sub((SEGMENT / CHUNK) as usize);
            free.extend(common.free.drain(keep..));
            return chunk;
        }
        let segment = common.segments;
        let what = "messages on their way";
        self.lines.grow(segment, what);
        if self.has_attachments {
            self.attachments.grow(segment, what);
        }
        // One table of links serves CHUNK segments.
        if segment.is_multiple_of(CHUNK as usize) {
            self.next.grow(segment / CHUNK as usize, what);
        }
        common.segments += 1;
        let first = segment as u32 * (SEGMENT / CHUNK);
        free.extend((first + 1..first + SEGMENT / CHUNK).rev());
        first
    }

    fn lock(&self) -> MutexGuard<'_, Common> {
        self.common.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Segments in use so far.
    pub fn segments(&self) -> usize {
        self.lock().segments
    }

    /// Calls `each` with the line and envelope of every message from `thread` to `domain` for `window`.
    ///
    /// # Safety
    /// The caller runs `domain` in `window`.
    #[inline]
    pub unsafe fn visit(
        &self,
        thread: usize,
        window: u64,
        domain: u32,
        mut each: impl FnMut(u32, &Envelope<M>),
    ) {
        // SAFETY: promised by the caller; the first lines of a chunk of the list are written.
        unsafe {
            self.visit_chunks(thread, window, domain, |first, count, _| {
                (first..first + count).for_each(|line| each(line, &*self.lines.at(line)));
            });
        }
    }

    /// Calls `each` for every chunk of messages from `thread` to `domain` for `window` with its first line, how many
    /// lines are in use, and what tells the times of all, of which those of other lines mean nothing.
    ///
    /// # Safety
    /// The caller runs `domain` in `window`.
    #[inline]
    pub unsafe fn visit_chunks(
        &self,
        thread: usize,
        window: u64,
        domain: u32,
        mut each: impl FnMut(u32, u32, Times<'_, M>),
    ) {
        // SAFETY: rule 2, promised by the caller.
        let List { first, last } = unsafe { *self.list(thread, window, domain) };
        if last == NONE {
            return;
        }
        let mut chunk = first / CHUNK;
        loop {
            let first = self.lines.at(chunk * CHUNK).cast_const();
            let is_last = chunk == last / CHUNK;
            let lines = if is_last { last % CHUNK + 1 } else { CHUNK };
            // Rule 4: the whole chunk is of this list.
            each(chunk * CHUNK, lines, Times { first, chunk: PhantomData });
            if is_last {
                return;
            }
            // SAFETY: rule 2: a chunk that is not the last has a next one.
            chunk = unsafe { *self.next.at(chunk) };
        }
    }

    /// The attachment of a line will be read soon, if it has one: asks for its beginning.
    #[inline]
    pub fn prefetch_attachment(&self, line: u32) {
        prefetch(self.attachments.at(line).cast_const(), size_of::<A>().div_ceil(64).min(2));
    }

    /// Messages may have attachments.
    #[inline]
    pub fn has_attachments(&self) -> bool {
        self.has_attachments
    }

    /// A message and its attachment.
    ///
    /// # Safety
    /// [`Self::visit_chunks`] gave `line` in this window as one in use, to the same caller.
    #[inline]
    pub unsafe fn read(&self, line: u32) -> (&Envelope<M>, Option<&A>) {
        // SAFETY: promised by the caller; the chunk is given back only when the domain has run.
        let envelope = unsafe { &*self.lines.at(line) };
        let has_attachment = envelope.message.attachment() != M::NO_ATTACHMENT;
        // SAFETY: as above; the attachment was written with the message.
        (envelope, has_attachment.then(|| unsafe { &*self.attachments.at(line) }))
    }

    /// Empties the list of `from` to `domain` for `window`, giving its chunks to `thread`.
    ///
    /// # Safety
    /// The caller is `thread`, has run `domain` in `window`, and holds no reference to its messages.
    #[inline]
    pub unsafe fn clear(&self, thread: usize, from: usize, window: u64, domain: u32) {
        // SAFETY: rule 2, promised by the caller.
        let list = unsafe { &mut *self.list(from, window, domain) };
        if list.last == NONE {
            return;
        }
        // SAFETY: a thread's free chunks are its own.
        let free = unsafe { &mut *self.free[thread].get() };
        let mut chunk = list.first / CHUNK;
        while chunk != list.last / CHUNK {
            free.push(chunk);
            // SAFETY: a chunk that is not the last has a next one.
            chunk = unsafe { *self.next.at(chunk) };
        }
        free.push(chunk);
        *list = EMPTY;
        if free.len() > HOARD {
            self.lock().free.extend(free.drain(HOARD / 2..));
        }
    }

    /// Asks for what says where a domain's messages from `thread` are.
    #[inline]
    pub fn prefetch_list(&self, thread: usize, window: u64, domain: u32) {
        prefetch(self.list(thread, window, domain).cast_const(), 1);
    }

    /// Asks for the line to which the next message from `thread` to `domain` for `window` will be written.
    ///
    /// # Safety
    /// The caller is `thread`.
    #[inline]
    pub unsafe fn prefetch_next_line(&self, thread: usize, window: u64, domain: u32) {
        // SAFETY: rule 1: only this thread writes this list.
        let last = unsafe { *self.list(thread, window, domain) }.last;
        if last % CHUNK != CHUNK - 1 {
            prefetch_for_writing(self.lines.at(last + 1).cast_const());
        }
    }

    /// Asks for the messages of a list.
    ///
    /// # Safety
    /// `window` is being executed, and the calling thread runs `domain`.
    #[inline]
    pub unsafe fn prefetch_messages(&self, thread: usize, window: u64, domain: u32) {
        // SAFETY: rule 2, promised by the caller.
        let List { first, last } = unsafe { *self.list(thread, window, domain) };
        if last == NONE {
            return;
        }
        let mut chunk = first / CHUNK;
        for _ in 0..PREFETCHED_CHUNKS {
            let is_last = chunk == last / CHUNK;
            let lines = if is_last { last % CHUNK + 1 } else { CHUNK };
            prefetch(self.lines.at(chunk * CHUNK).cast_const(), lines as usize);
            if is_last {
                return;
            }
            // SAFETY: rule 2: a chunk that is not the last has a next one.
            chunk = unsafe { *self.next.at(chunk) };
        }
    }

    /// The domains to which `thread` has posted messages for `window`.
    ///
    /// # Safety
    /// `window` is the one being executed, so that nobody writes the set.
    #[inline]
    pub unsafe fn active(&self, thread: usize, window: u64) -> &ActiveSet {
        // SAFETY: promised by the caller.
        unsafe { &*self.active[self.row(thread, window)].get() }
    }

    /// Forgets what `thread` posted for `window`, which is over.
    ///
    /// # Safety
    /// The caller is `thread`, every thread has left `window`, and the window that is being executed by now has
    /// another slot: others read its sets.
    pub unsafe fn forget(&self, thread: usize, window: u64) {
        // SAFETY: promised by the caller.
        unsafe { (*self.active[self.row(thread, window)].get()).clear() }
    }

    /// The first of the windows after `window` for which `thread` has posted something.
    ///
    /// # Safety
    /// The caller is `thread`.
    pub unsafe fn next_posted(&self, thread: usize, window: u64) -> Option<u64> {
        (window + 1..window + self.slots).find(|later| {
            // SAFETY: rule 1: only this thread writes these sets.
            !unsafe { &*self.active[self.row(thread, *later)].get() }.is_empty()
        })
    }

    /// Calls `each` with the domain and envelope of every message that was not taken.
    pub fn leftover(self, mut each: impl FnMut(u32, &Envelope<M>)) {
        for window in 0..self.slots {
            for thread in 0..self.threads {
                for domain in 0..self.domains as u32 {
                    // SAFETY: the office is owned: nobody else has access.
                    unsafe { self.visit(thread, window, domain, |_, envelope| each(domain, envelope)) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Number(u64, u32);

    impl Message for Number {
        fn attachment(&self) -> u32 {
            self.1
        }
        fn set_attachment(&mut self, index: u32) {
            self.1 = index;
        }
    }

    /// One thread sends and another receives, as in a fabric whose traffic has one direction: the chunks that the
    /// receiver collects must come back.
    #[test]
    fn one_way_traffic_does_not_use_up_memory() {
        let post: PostOffice<Number, [u8; 1]> = PostOffice::new(2, 2, 4, false);
        let per_window = 20_000;
        let mut segments = 0;
        for window in 0..400 {
            for number in 0..per_window {
                let shelf = post.shelf(0, window + 1);
                post.push(0, shelf, 1, Time::from_ps(number), 0, &Number(number, 0), None, |_| {});
            }
            let mut expected = 0;
            // SAFETY: this one thread plays both, one after the other.
            unsafe {
                post.visit(0, window + 1, 1, |_, envelope| {
                    assert_eq!(envelope.message, Number(expected, Number::NO_ATTACHMENT));
                    expected += 1;
                });
                post.clear(1, 0, window + 1, 1);
                post.forget(0, window + 1);
            }
            assert_eq!(expected, per_window);
            if window == 40 {
                segments = post.segments();
            }
        }
        assert_eq!(post.segments(), segments);
    }

    #[test]
    fn attachments_stay_with_their_messages() {
        let post: PostOffice<Number, [u32; 3]> = PostOffice::new(1, 1, 4, true);
        for number in 0..100u32 {
            let attachment = [number; 3];
            let with = number % 3 == 0;
            post.push(
                0,
                post.shelf(0, 1),
                0,
                Time::ZERO,
                0,
                &Number(u64::from(number), 7),
                with.then_some(&attachment),
                |_| {},
            );
        }
        let mut lines = Vec::new();
        // SAFETY: there is one thread.
        unsafe { post.visit(0, 1, 0, |line, _| lines.push(line)) };
        for (number, line) in (0u32..).zip(lines) {
            // SAFETY: as above; the line was visited.
            let (envelope, attachment) = unsafe { post.read(line) };
            assert_eq!(envelope.message.0, u64::from(number));
            assert_eq!(attachment.copied(), (number % 3 == 0).then_some([number; 3]));
        }
    }
}
