//! Mailboxes: messages from one window to a later one, without locks.
//!
//! Messages are stored in lines of an arena, eight lines to a chunk. For each (window slot, sending thread, receiving
//! domain) there is a list of chunks, of which the mailbox stores the first and the last line: eight bytes. A chunk is
//! free again as soon as its domain has run, and the next sender takes it while it is still in the cache.
//!
//! Threads access the mailboxes without synchronisation other than the barrier between windows. Rules R3 to R9 of
//! docs/unsafe.md make this sound; [`super::executor`] follows them.

use super::{
    active_set::ActiveSet,
    arena::{Arena, Lines, SEGMENT},
    arrivals::LANES,
    message::{Attachment, Envelope, Message},
    prefetch::{prefetch, prefetch_for_writing},
    primitives::{Mutex, MutexGuard, UnsafeCell},
    sync::CachePadded,
};
use incast_units::Time;
use std::{mem, sync::PoisonError};

/// Lines of a chunk.
const CHUNK: u32 = LANES as u32;
/// Chunks of a segment.
const CHUNKS: u32 = SEGMENT / CHUNK;
/// Segments of an arena at most, 8 GiB of 64-byte envelopes: lines are numbered by u32.
const SEGMENTS: usize = 1 << 12;
const NONE: u32 = u32::MAX;
/// A prefetch of more than this would evict what is needed now.
const PREFETCHED_CHUNKS: u32 = 32;
/// A thread with more free chunks than this gives half of them to the common list.
const MOST_FREE: usize = 2 * CHUNKS as usize;

/// The two ends of a list of chunks: first and last line in use.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List { first: NONE, last: NONE };

/// The arrival times of the lines of one chunk; made by [`Mailboxes::visit_chunks`] alone.
#[derive(Clone, Copy)]
pub(super) struct Times<'c, M>(Lines<'c, Envelope<M>>);

impl<M: Copy> Times<'_, M> {
    /// Arrival time of a line of the chunk; some number for a line that is not in use.
    #[inline(always)] // Eight calls become one vector of times.
    pub fn of(&self, line: usize) -> Time {
        // SAFETY: R7: the chunk belongs to the list that the caller visits. R8: it is in one segment. R9: every bit
        // pattern is a time.
        self.0.with(line % CHUNK as usize, |line| unsafe { (&raw const (*line).time).read() })
    }
}

/// A mailbox row: the lists of one sending thread for one window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    index: usize,
    /// The list of domain 0.
    first_list: usize,
}

/// All messages that are in flight between domains.
pub(super) struct Mailboxes<M, A> {
    lists: Box<[UnsafeCell<List>]>,
    /// By row, the domains with messages.
    active: Box<[CachePadded<ActiveSet>]>,
    lines: Arena<Envelope<M>>,
    /// By line, where a message has one.
    attachments: Arena<A>,
    /// By chunk, the next one of its list.
    next: Arena<u32>,
    /// Free chunks of each thread, as a stack.
    free: Box<[CachePadded<Vec<u32>>]>,
    common: Mutex<Common>,
    has_attachments: bool,
    domains: usize,
    threads: usize,
    slots: u64,
}

/// A message that is being written to its line. Where this panics the message has no attachment (R9): a panic may be
/// caught, and the line read.
struct Unfinished<'m, M: Message>(&'m mut M);

impl<M: Message> Drop for Unfinished<'_, M> {
    #[cold]
    fn drop(&mut self) {
        self.0.set_attachment(M::NO_ATTACHMENT);
    }
}

/// The message has an attachment, for which there is no memory.
#[cold]
fn no_room<M: Message>(message: &mut M) -> ! {
    // The panic may be caught, and the line read (R9).
    message.set_attachment(M::NO_ATTACHMENT);
    panic!("an attachment in a simulation without");
}

/// What threads share under a lock. A thread that receives more than it sends collects chunks that others need.
struct Common {
    /// Number of segments.
    segments: usize,
    /// Free chunks that belong to no thread.
    free: Vec<u32>,
}

// SAFETY: R3 to R9 are the rules for lists, active sets, free chunks and lines; messages and attachments are
// Send. The arenas do not move (R8), and only `grow` changes a part of them, under the lock and before any thread has
// the number of a line in it.
unsafe impl<M: Send, A: Send> Sync for Mailboxes<M, A> {}

impl<M: Message, A: Attachment> Mailboxes<M, A> {
    /// `slots` must be a power of two.
    pub fn new(domains: usize, threads: usize, slots: usize, has_attachments: bool) -> Self {
        assert!(slots.is_power_of_two(), "slots are masked");
        Self {
            lists: (0..domains * threads * slots).map(|_| UnsafeCell::new(EMPTY)).collect(),
            active: (0..threads * slots).map(|_| CachePadded::new(ActiveSet::new(domains))).collect(),
            lines: Arena::new(SEGMENTS),
            attachments: Arena::new(if has_attachments { SEGMENTS } else { 0 }),
            next: Arena::new(SEGMENTS / CHUNK as usize),
            free: (0..threads).map(|_| CachePadded::new(Vec::new())).collect(),
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
    fn row_index(&self, thread: usize, window: u64) -> usize {
        (window & (self.slots - 1)) as usize * self.threads + thread
    }

    /// Whether two windows share a slot.
    #[inline]
    pub fn same_slot(&self, one: u64, other: u64) -> bool {
        (one ^ other) & (self.slots - 1) == 0
    }

    /// The row of what `thread` posts for `window`.
    pub fn row(&self, thread: usize, window: u64) -> Row {
        let index = self.row_index(thread, window);
        Row { index, first_list: index * self.domains }
    }

    /// A list of a row that these mailboxes have made.
    ///
    /// # Panics
    /// If there is no such domain: what lies behind a row is another thread's.
    #[inline]
    fn list(&self, row: Row, domain: u32) -> &UnsafeCell<List> {
        assert!((domain as usize) < self.domains, "found domain {domain}, there are {}", self.domains);
        // SAFETY: R8: a row has a list for each domain.
        unsafe { self.lists.get_unchecked(row.first_list + domain as usize) }
    }

    /// A copy of the list of `thread` to `domain` for `window`.
    ///
    /// # Safety
    /// The caller may read the list, by R4 or by R5.
    #[inline]
    unsafe fn ends(&self, thread: usize, window: u64, domain: u32) -> List {
        // SAFETY: promised by the caller (R4 or R5).
        self.list(self.row(thread, window), domain).with(|list| unsafe { *list })
    }

    /// The chunk that follows `chunk` in its list.
    ///
    /// # Safety
    /// The chunk is not the last of its list, which the caller may read, by R4 or by R5.
    #[inline]
    unsafe fn next(&self, chunk: u32) -> u32 {
        // SAFETY: promised by the caller (R4 or R5); R9: the link of a chunk that is not the last has been written.
        self.next.with(chunk, |next| unsafe { *next })
    }

    /// Posts a message from `thread` to `domain` in a row, that of a later window than the one being executed, changed
    /// by `change`; see [`super::Context::send_changed`].
    #[inline(always)] // The message is written in place, without a copy on the stack.
    #[allow(clippy::too_many_arguments)]
    pub fn push(
        &self,
        thread: usize,
        row: Row,
        domain: u32,
        time: Time,
        entity: u32,
        message: &M,
        attachment: Option<&A>,
        change: impl FnOnce(&mut M),
    ) {
        // Not the whole body in the closure: the compiler would not inline it.
        let list = self.list(row, domain).with_mut(|list| list);
        // SAFETY: R4: only this thread accesses its lists of later windows.
        let list = unsafe { &mut *list };
        // The line after the last one, unless that ends a chunk; NONE ends one too.
        let line = if list.last % CHUNK == CHUNK - 1 { self.extend(thread, row, domain, list) } else { list.last + 1 };
        list.last = line;
        // SAFETY: R7: the line belongs to this list, and by R4 the list to this thread.
        unsafe { self.write(line, time, entity, message, attachment, change) };
    }

    /// Writes a line in place.
    ///
    /// # Safety
    /// By R7 and R4, the line belongs to the calling thread.
    #[inline(always)] // As `push`.
    unsafe fn write(
        &self,
        line: u32,
        time: Time,
        entity: u32,
        message: &M,
        attachment: Option<&A>,
        change: impl FnOnce(&mut M),
    ) {
        let place = self.lines.with_mut(line, |place| place);
        // SAFETY: promised by the caller (R7, R4); R8: a chunk is of a grown segment.
        unsafe {
            (&raw mut (*place).time).write(time);
            (&raw mut (*place).entity).write(entity);
            (&raw mut (*place).message).write(*message);
            let unfinished = Unfinished(&mut (*place).message);
            // The same order as in `Context::defer`; what the engine sets comes last.
            change(unfinished.0);
            unfinished.0.sent(message);
            unfinished.0.set_attachment(if attachment.is_some() { line } else { M::NO_ATTACHMENT });
            mem::forget(unfinished);
        }
        if let Some(attachment) = attachment {
            if !self.has_attachments {
                // SAFETY: as above.
                no_room(unsafe { &mut (*place).message });
            }
            // SAFETY: as above: line and attachment are accessed under the same rules.
            self.attachments.with_mut(line, |place| attachment.copy_to(unsafe { &mut *place.cast() }));
        }
    }

    /// Starts a list, or adds a chunk to it. Returns the first line of the chunk.
    #[inline(never)] // One message in eight: kept out of the code of every `push`.
    fn extend(&self, thread: usize, row: Row, domain: u32, list: &mut List) -> u32 {
        let chunk = self.take(thread);
        if list.last == NONE {
            // SAFETY: R4: only this thread accesses its active sets of later windows.
            self.active[row.index].with_mut(|active| unsafe { &mut *active }.insert(domain));
            list.first = chunk * CHUNK;
        } else {
            // SAFETY: R7: the chunk of the last line belongs to this list, and by R4 the list to this thread.
            self.next.with_mut(list.last / CHUNK, |next| unsafe { *next = chunk });
        }
        chunk * CHUNK
    }

    /// A free chunk.
    #[inline]
    fn take(&self, thread: usize) -> u32 {
        self.free[thread].with_mut(|free| {
            // SAFETY: R7: only the thread itself accesses its free chunks.
            let free = unsafe { &mut *free };
            free.pop().unwrap_or_else(|| self.grow(free))
        })
    }

    /// Takes a chunk, and more for later, from the common list or a new segment.
    #[cold]
    fn grow(&self, free: &mut Vec<u32>) -> u32 {
        let mut common = self.lock();
        if let Some(chunk) = common.free.pop() {
            let keep = common.free.len().saturating_sub(CHUNKS as usize);
            free.extend(common.free.drain(keep..));
            return chunk;
        }
        let segment = common.segments;
        let what = "messages on their way";
        self.lines.grow(segment, what);
        if self.has_attachments {
            self.attachments.grow(segment, what);
        }
        // A segment of links serves CHUNK segments of lines.
        if segment.is_multiple_of(CHUNK as usize) {
            self.next.grow(segment / CHUNK as usize, what);
        }
        common.segments += 1;
        let first = segment as u32 * CHUNKS;
        free.extend((first + 1..first + CHUNKS).rev());
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
    /// The caller runs `domain` in `window` (R5).
    #[inline]
    pub unsafe fn visit(&self, thread: usize, window: u64, domain: u32, mut each: impl FnMut(u32, &Envelope<M>)) {
        // SAFETY: promised by the caller (R5); R9: the lines in use of a chunk are written.
        unsafe {
            self.visit_chunks(thread, window, domain, |first, count, _| {
                (first..first + count).for_each(|line| self.lines.with(line, |envelope| each(line, &*envelope)));
            });
        }
    }

    /// Calls `each` for every chunk of messages from `thread` to `domain` for `window`, with its first line, the number
    /// of lines in use, and the times of all lines of the chunk.
    ///
    /// # Safety
    /// The caller runs `domain` in `window` (R5).
    #[inline]
    pub unsafe fn visit_chunks(
        &self,
        thread: usize,
        window: u64,
        domain: u32,
        mut each: impl FnMut(u32, u32, Times<'_, M>),
    ) {
        // SAFETY: promised by the caller (R5).
        let List { first, last } = unsafe { self.ends(thread, window, domain) };
        if last == NONE {
            return;
        }
        let mut chunk = first / CHUNK;
        loop {
            let first = chunk * CHUNK;
            let is_last = chunk == last / CHUNK;
            let lines = if is_last { last % CHUNK + 1 } else { CHUNK };
            each(first, lines, Times(self.lines.from(first)));
            if is_last {
                return;
            }
            // SAFETY: promised by the caller (R5); this is not the last chunk.
            chunk = unsafe { self.next(chunk) };
        }
    }

    /// Prefetches the beginning of the attachment of a line.
    #[inline]
    pub fn prefetch_attachment(&self, line: u32) {
        prefetch(self.attachments.address(line), size_of::<A>().div_ceil(64).min(2));
    }

    /// Messages may have attachments.
    #[inline]
    pub fn has_attachments(&self) -> bool {
        self.has_attachments
    }

    /// A message and its attachment.
    ///
    /// # Safety
    /// [`Self::visit_chunks`] gave `line` as one in use to the same caller, in the window that it still runs (R5).
    #[inline]
    pub unsafe fn read(&self, line: u32) -> (&Envelope<M>, Option<&A>) {
        // SAFETY: promised by the caller (R5); R7: the chunk changes hands only when the domain has run.
        let envelope = self.lines.with(line, |envelope| unsafe { &*envelope });
        let has_attachment = envelope.message.attachment() != M::NO_ATTACHMENT;
        // SAFETY: as above; R9: the attachment was written with the message.
        (envelope, has_attachment.then(|| self.attachments.with(line, |attachment| unsafe { &*attachment })))
    }

    /// Empties the list of `from` to `domain` for `window`, and gives its chunks to `thread`.
    ///
    /// # Safety
    /// The caller is `thread`, has run `domain` in `window`, and holds no reference to its messages (R5, R7).
    #[inline]
    pub unsafe fn clear(&self, thread: usize, from: usize, window: u64, domain: u32) {
        self.list(self.row(from, window), domain).with_mut(|list| {
            // SAFETY: promised by the caller (R5).
            let list = unsafe { &mut *list };
            if list.last != NONE {
                // SAFETY: promised by the caller (R5, R7).
                unsafe { self.give_back(thread, *list) };
                *list = EMPTY;
            }
        });
    }

    /// Adds the chunks of a list to the free ones of `thread`.
    ///
    /// # Safety
    /// As [`Self::clear`]; the list is not empty.
    #[inline]
    unsafe fn give_back(&self, thread: usize, list: List) {
        self.free[thread].with_mut(|free| {
            // SAFETY: R7: only the thread itself accesses its free chunks.
            let free = unsafe { &mut *free };
            let mut chunk = list.first / CHUNK;
            while chunk != list.last / CHUNK {
                free.push(chunk);
                // SAFETY: promised by the caller (R5); this is not the last chunk.
                chunk = unsafe { self.next(chunk) };
            }
            free.push(chunk);
            if free.len() > MOST_FREE {
                self.lock().free.extend(free.drain(MOST_FREE / 2..));
            }
        });
    }

    /// Prefetches the list of `thread` to `domain` for `window`.
    #[inline]
    pub fn prefetch_list(&self, thread: usize, window: u64, domain: u32) {
        prefetch(self.list(self.row(thread, window), domain), 1);
    }

    /// Prefetches the line to which the next message of a row to `domain` will be written.
    ///
    /// # Safety
    /// The row is of the calling thread, and of a later window than the one being executed (R4).
    #[inline]
    pub unsafe fn prefetch_next_line(&self, row: Row, domain: u32) {
        // SAFETY: promised by the caller (R4).
        let last = self.list(row, domain).with(|list| unsafe { *list }).last;
        if last % CHUNK != CHUNK - 1 {
            prefetch_for_writing(self.lines.address(last + 1));
        }
    }

    /// Prefetches the messages of a list.
    ///
    /// # Safety
    /// `window` is being executed, and the calling thread runs `domain` (R5).
    #[inline]
    pub unsafe fn prefetch_messages(&self, thread: usize, window: u64, domain: u32) {
        // SAFETY: promised by the caller (R5).
        let List { first, last } = unsafe { self.ends(thread, window, domain) };
        if last == NONE {
            return;
        }
        let mut chunk = first / CHUNK;
        for _ in 0..PREFETCHED_CHUNKS {
            let is_last = chunk == last / CHUNK;
            let lines = if is_last { last % CHUNK + 1 } else { CHUNK };
            prefetch(self.lines.address(chunk * CHUNK), lines as usize);
            if is_last {
                return;
            }
            // SAFETY: promised by the caller (R5); this is not the last chunk.
            chunk = unsafe { self.next(chunk) };
        }
    }

    /// The domains to which `thread` has posted messages for `window`.
    ///
    /// # Safety
    /// `window` is the one being executed, and the reference is dropped before the next barrier: until then no thread
    /// writes the set (R4, R6).
    #[inline]
    pub unsafe fn active(&self, thread: usize, window: u64) -> &ActiveSet {
        // SAFETY: promised by the caller (R4, R6).
        self.active[self.row_index(thread, window)].with(|active| unsafe { &*active })
    }

    /// Clears the active set of what `thread` posted for `window`, which is over.
    ///
    /// # Safety
    /// The caller is `thread`, every thread has left `window`, and the window that is executed next has another slot:
    /// other threads read the active sets of that slot (R6).
    pub unsafe fn forget(&self, thread: usize, window: u64) {
        // SAFETY: promised by the caller (R6).
        self.active[self.row_index(thread, window)].with_mut(|active| unsafe { &mut *active }.clear());
    }

    /// The first of the windows after `window` for which `thread` has posted something.
    ///
    /// # Safety
    /// The caller is `thread`, and `window` is the one being executed (R4).
    pub unsafe fn next_posted(&self, thread: usize, window: u64) -> Option<u64> {
        (window + 1..window + self.slots).find(|later| {
            // SAFETY: promised by the caller (R4).
            !self.active[self.row_index(thread, *later)].with(|active| unsafe { &*active }.is_empty())
        })
    }

    /// Calls `each` with the domain and envelope of every message that was not taken.
    pub fn leftover(self, mut each: impl FnMut(u32, &Envelope<M>)) {
        for window in 0..self.slots {
            for thread in 0..self.threads {
                for domain in 0..self.domains as u32 {
                    // SAFETY: R5: the mailboxes are owned: no other thread has access.
                    unsafe { self.visit(thread, window, domain, |_, envelope| each(domain, envelope)) };
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Number(u64, u32);

    // SAFETY: R16: nothing but the engine writes the index.
    unsafe impl Message for Number {
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
        let mailboxes: Mailboxes<Number, [u8; 1]> = Mailboxes::new(2, 2, 4, false);
        let per_window = 20_000;
        let mut segments = 0;
        for window in 0..400 {
            for number in 0..per_window {
                let row = mailboxes.row(0, window + 1);
                mailboxes.push(0, row, 1, Time::from_ps(number), 0, &Number(number, 0), None, |_| {});
            }
            let mut expected = 0;
            // SAFETY: R4 to R6: one thread does the work of both, one after the other.
            unsafe {
                mailboxes.visit(0, window + 1, 1, |_, envelope| {
                    assert_eq!(envelope.message, Number(expected, Number::NO_ATTACHMENT));
                    expected += 1;
                });
                mailboxes.clear(1, 0, window + 1, 1);
                mailboxes.forget(0, window + 1);
            }
            assert_eq!(expected, per_window);
            if window == 40 {
                segments = mailboxes.segments();
            }
        }
        assert_eq!(mailboxes.segments(), segments);
    }

    #[test]
    fn attachments_stay_with_their_messages() {
        let mailboxes: Mailboxes<Number, [u32; 3]> = Mailboxes::new(1, 1, 4, true);
        for number in 0..100u32 {
            let attachment = [number; 3];
            let with = number % 3 == 0;
            mailboxes.push(
                0,
                mailboxes.row(0, 1),
                0,
                Time::ZERO,
                0,
                &Number(u64::from(number), 7),
                with.then_some(&attachment),
                |_| {},
            );
        }
        let mut lines = Vec::new();
        // SAFETY: R5: there is one thread.
        unsafe { mailboxes.visit(0, 1, 0, |line, _| lines.push(line)) };
        for (number, line) in (0u32..).zip(lines) {
            // SAFETY: R5: as above; the line was visited.
            let (envelope, attachment) = unsafe { mailboxes.read(line) };
            assert_eq!(envelope.message.0, u64::from(number));
            assert_eq!(attachment.copied(), (number % 3 == 0).then_some([number; 3]));
        }
    }
}
