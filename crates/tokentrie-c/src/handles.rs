//! Numbers for objects. C holds a number and never a pointer, so a handle that was freed, guessed, or of another kind
//! is found out by comparing integers.
//!
//! ```text
//! bits 0–19   the slot
//! bits 20–46  its generation, from 1: how many objects it has held
//! bits 47–51  the kind
//! ```
//!
//! Below 2^53, so that JavaScript can hold one as a number. Slots are never given back to the allocator, so looking one
//! up takes no lock but its own. A slot whose generations are used up is left alone, so no number comes twice.

use crate::error::{Error, Result};
use crate::status::{TOKENTRIE_ERROR_HANDLE, TOKENTRIE_ERROR_LIMIT, TOKENTRIE_ERROR_PANIC};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

const SLOT_BITS: u32 = 20;
const GENERATION_BITS: u32 = 27;
const LAST_GENERATION: u32 = (1 << GENERATION_BITS) - 1;
/// Slots of the first page; each further page doubles what there is.
const FIRST_PAGE: usize = 64;
const PAGES: usize = 15;
const SLOTS: usize = 1 << SLOT_BITS;

/// Type of the object behind a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Handle of a vocabulary.
    Vocab = 1,
    /// Handle of tries by path.
    Trie,
    /// Handle of a sampler.
    Sampler,
    /// Handle of a batch.
    Batch,
    /// Tries by their payloads.
    Cache,
    /// A constraint of any kind.
    Constraint,
    /// Handle of a session.
    Session,
    /// The format of a chat.
    Format,
    /// A reply that is read.
    Parser,
    /// A choice that is scored.
    Scoring,
}

impl Kind {
    /// Returns whether its objects are locked for long, and by one thread at a time: then others are refused.
    fn is_exclusive(self) -> bool {
        matches!(self, Self::Sampler | Self::Batch | Self::Parser | Self::Scoring)
    }

    const NAMES: [&'static str; 11] = [
        "",
        "vocabulary",
        "trie",
        "sampler",
        "batch",
        "cache",
        "constraint",
        "session",
        "chat format",
        "parser",
        "choice",
    ];

    fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// All objects of one kind.
pub struct Table<T> {
    kind: Kind,
    pages: [OnceLock<Page<T>>; PAGES],
    unused: Mutex<FreeSlots>,
}

type Page<T> = Box<[Mutex<Slot<T>>]>;

struct Slot<T> {
    generation: u32,
    object: Option<T>,
}

struct FreeSlots {
    /// Slots that held something before.
    freed: Vec<u32>,
    /// The first slot that never held anything.
    next: usize,
}

/// Returns the location of a slot: its page, its place in it, and the length of that page.
fn place(slot: usize) -> (usize, usize, usize) {
    let page = (slot / FIRST_PAGE + 1).ilog2() as usize;
    (page, slot - FIRST_PAGE * ((1 << page) - 1), FIRST_PAGE << page)
}

impl<T> Table<T> {
    /// Returns an empty table.
    pub const fn new(kind: Kind) -> Self {
        let unused = Mutex::new(FreeSlots { freed: Vec::new(), next: 0 });
        Self { kind, pages: [const { OnceLock::new() }; PAGES], unused }
    }

    /// Keeps an object and gives its handle.
    ///
    /// # Errors
    /// Too many of them.
    pub fn insert(&self, object: T) -> Result<u64> {
        let slot = {
            let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
            match unused.freed.pop() {
                Some(slot) => slot as usize,
                None if unused.next < SLOTS => {
                    unused.next += 1;
                    unused.next - 1
                }
                None => {
                    let message = format!("{SLOTS} handles of one kind ({}) are in use: free some", self.kind.name());
                    return Err(Error::new(TOKENTRIE_ERROR_LIMIT, message));
                }
            }
        };
        let (page, index, length) = place(slot);
        let empty = || Mutex::new(Slot { generation: 0, object: None });
        let page = self.pages[page].get_or_init(|| std::iter::repeat_with(empty).take(length).collect());
        let mut slot_ = page[index].lock().unwrap_or_else(PoisonError::into_inner);
        slot_.generation += 1;
        slot_.object = Some(object);
        page[index].clear_poison();
        Ok((self.kind as u64) << (SLOT_BITS + GENERATION_BITS) | u64::from(slot_.generation) << SLOT_BITS | slot as u64)
    }

    /// The slot of a handle and the generation that it must have.
    #[inline]
    fn find(&self, handle: u64) -> Result<(&Mutex<Slot<T>>, u32)> {
        let slot = handle as usize & (SLOTS - 1);
        let generation = (handle >> SLOT_BITS) as u32 & LAST_GENERATION;
        let (page, index, _) = place(slot);
        let kind = handle >> (SLOT_BITS + GENERATION_BITS);
        match self.pages.get(page).and_then(OnceLock::get) {
            Some(page) if kind == self.kind as u64 => Ok((&page[index], generation)),
            _ => Err(self.refuse(handle)),
        }
    }

    /// Returns whether the number is a handle of this kind; it may be freed.
    #[cfg(feature = "specs")]
    pub(crate) fn is_of_kind(&self, handle: u64) -> bool {
        handle >> (SLOT_BITS + GENERATION_BITS) == self.kind as u64
    }

    #[cold]
    fn refuse(&self, handle: u64) -> Error {
        let kind = (handle >> (SLOT_BITS + GENERATION_BITS)) as usize;
        let wanted = self.kind.name();
        let message = match Kind::NAMES.get(kind).copied().unwrap_or_default() {
            _ if handle == 0 => format!("the handle is 0: a {wanted} is needed"),
            "" => format!("invalid handle {handle:#x}: expected a {wanted}"),
            found if found != wanted => format!("the handle {handle:#x} is a {found}: a {wanted} is needed"),
            _ => format!("the {wanted} {handle:#x} was freed before, or never made"),
        };
        Error::new(TOKENTRIE_ERROR_HANDLE, message)
    }

    #[inline]
    fn held<'a>(&self, handle: u64, generation: u32, slot: &'a mut Slot<T>) -> Result<&'a mut T> {
        match &mut slot.object {
            Some(object) if slot.generation == generation => Ok(object),
            _ => Err(self.refuse(handle)),
        }
    }

    #[cold]
    fn closed(&self, handle: u64) -> Error {
        let message = format!("the {} {handle:#x} is closed after a fault of the library: free it", self.kind.name());
        Error::new(TOKENTRIE_ERROR_PANIC, message)
    }

    #[cold]
    fn busy(&self, handle: u64) -> Error {
        let message =
            format!("another thread is using the {} {handle:#x}: use it from one at a time", self.kind.name());
        Error::busy(message)
    }

    /// The object, for as long as `work` takes. One thread at a time; another one is refused.
    ///
    /// # Errors
    /// No handle of this kind, or what `work` fails with.
    #[inline]
    pub fn with<R>(&self, handle: u64, work: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        let (slot, generation) = self.find(handle)?;
        let mut slot = match slot.try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::WouldBlock) => return Err(self.busy(handle)),
            Err(TryLockError::Poisoned(_)) => return Err(self.closed(handle)),
        };
        work(self.held(handle, generation, &mut slot)?)
    }

    /// As [`Table::with`], but another thread waits.
    ///
    /// # Errors
    /// As there.
    pub fn with_waiting<R>(&self, handle: u64, work: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        let (slot, generation) = self.find(handle)?;
        let mut slot = slot.lock().map_err(|_| self.closed(handle))?;
        work(self.held(handle, generation, &mut slot)?)
    }

    /// Ends the handle and gives its object back, if `may` allows it.
    ///
    /// # Errors
    /// No handle of this kind, or what `may` fails with.
    pub fn remove(&self, handle: u64, may: impl FnOnce(&T) -> Result<()>) -> Result<T> {
        let (slot, generation) = self.find(handle)?;
        // What a fault has closed can be freed. Where others only look for a moment, it waits for them.
        let mut slot: MutexGuard<'_, Slot<T>> = match slot.try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            Err(TryLockError::WouldBlock) if self.kind.is_exclusive() => return Err(self.busy(handle)),
            Err(TryLockError::WouldBlock) => slot.lock().unwrap_or_else(PoisonError::into_inner),
        };
        may(self.held(handle, generation, &mut slot)?)?;
        let object = slot.object.take().ok_or_else(|| self.refuse(handle))?;
        let again = slot.generation < LAST_GENERATION;
        drop(slot);
        if again {
            let number = handle as u32 & (SLOTS as u32 - 1);
            self.unused.lock().unwrap_or_else(PoisonError::into_inner).freed.push(number);
        }
        Ok(object)
    }

    /// Ends the handle. The object goes outside of every lock.
    ///
    /// # Errors
    /// No handle of this kind.
    pub fn free(&self, handle: u64) -> Result<()> {
        self.remove(handle, |_| Ok(())).map(drop)
    }
}

impl<T: Clone> Table<T> {
    /// A copy of the object: for those that are shared.
    ///
    /// # Errors
    /// No handle of this kind.
    pub fn get(&self, handle: u64) -> Result<T> {
        self.with_waiting(handle, |object| Ok(object.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::TOKENTRIE_ERROR_BUSY;

    #[test]
    fn slots_fill_pages_of_doubling_length() {
        let mut before = None;
        for slot in (0..100_000).chain(SLOTS - 3..SLOTS) {
            let (page, index, length) = place(slot);
            assert!(index < length && page < PAGES, "{slot}");
            match before {
                Some((last, at)) if last == page => assert!(index == at + 1 || slot >= SLOTS - 3),
                _ => assert!(index == 0 || slot == SLOTS - 3),
            }
            before = Some((page, index));
        }
    }

    #[test]
    fn a_freed_handle_is_refused_for_ever_and_its_slot_used_again() {
        let table = Table::new(Kind::Trie);
        let first = table.insert("first").unwrap();
        assert!(first < 1 << 53);
        assert_eq!(table.get(first).unwrap(), "first");
        table.free(first).unwrap();
        let second = table.insert("second").unwrap();
        assert_ne!(first, second);
        assert_eq!(first & 0xf_ffff, second & 0xf_ffff, "the same slot");
        for gone in [first, 0, 1, u64::MAX, first ^ (1 << 50), second + 1] {
            let error = table.get(gone).unwrap_err();
            assert_eq!(error.status, TOKENTRIE_ERROR_HANDLE, "{gone:#x}: {error}");
            assert!(table.free(gone).is_err());
        }
        assert_eq!(table.get(second).unwrap(), "second");
    }

    #[test]
    fn a_handle_of_another_kind_is_named() {
        let (tries, samplers) = (Table::new(Kind::Trie), Table::new(Kind::Sampler));
        let (trie, sampler) = (tries.insert(1).unwrap(), samplers.insert(1).unwrap());
        let said = format!("the handle {trie:#x} is a trie: a sampler is needed");
        assert_eq!(samplers.get(trie).unwrap_err().to_string(), said);
        let said = format!("the handle {sampler:#x} is a sampler: a trie is needed");
        assert_eq!(tries.get(sampler).unwrap_err().to_string(), said);
        assert_eq!(tries.get(0).unwrap_err().to_string(), "the handle is 0: a trie is needed");
    }

    #[test]
    fn a_slot_whose_generations_are_used_up_is_left_alone() {
        let table = Table::new(Kind::Cache);
        let handle = table.insert(()).unwrap();
        table.pages[0].get().unwrap()[0].lock().unwrap().generation = LAST_GENERATION;
        let last = handle | u64::from(LAST_GENERATION) << SLOT_BITS;
        table.free(last).unwrap();
        assert_ne!(table.insert(()).unwrap() & 0xf_ffff, handle & 0xf_ffff);
    }

    #[test]
    fn a_shared_object_is_freed_once_nobody_looks_at_it() {
        let table = Table::new(Kind::Trie);
        let handle = table.insert(5).unwrap();
        std::thread::scope(|scope| {
            let looks = || (0..10_000).take_while(|_| table.get(handle).is_ok()).count();
            let looking = [scope.spawn(looks), scope.spawn(looks)];
            table.free(handle).unwrap();
            for thread in looking {
                thread.join().unwrap();
            }
        });
        assert_eq!(table.get(handle).unwrap_err().status, TOKENTRIE_ERROR_HANDLE);
    }

    #[test]
    fn another_thread_is_refused_and_a_fault_closes() {
        let table = Table::new(Kind::Sampler);
        let handle = table.insert(0).unwrap();
        table
            .with(handle, |_| {
                std::thread::scope(|scope| {
                    let other = scope.spawn(|| table.with(handle, |_| Ok(())).unwrap_err().status);
                    assert_eq!(other.join().unwrap(), TOKENTRIE_ERROR_BUSY);
                    let other = scope.spawn(|| table.free(handle).unwrap_err().status);
                    assert_eq!(other.join().unwrap(), TOKENTRIE_ERROR_BUSY);
                });
                Ok(())
            })
            .unwrap();
        let fault = || table.with(handle, |_| -> Result<()> { std::panic::panic_any("as if it had failed") });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(fault)).is_err());
        assert_eq!(table.with(handle, |_| Ok(())).unwrap_err().status, TOKENTRIE_ERROR_PANIC);
        table.free(handle).unwrap();
        let again = table.insert(7).unwrap();
        assert_eq!(table.get(again).unwrap(), 7);
    }
}
