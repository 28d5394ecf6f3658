//! Locks among processes (and threads): one lock file beside each locked file, which exists only while the lock is
//! held. `omnizarr.stores.local.filelocks` explains the protocol. To acquire a lock, a writer creates the file (or
//! opens the existing one), takes the system's lock on it, and checks that the path still leads to the locked file. To
//! release it, it removes the file while still holding the lock.
//!
//! Waiting
//!     is looking again and again, at growing intervals: a thread that waits in the system cannot be told that the
//!     user wants to stop. At each release, threads that wait in the system find the file gone and start again, like
//!     those
//!     that look at intervals, so neither kind can keep the other out for good.
//!
//! Forking
//!     A forked child has the parent's descriptors, and with them its locks. So all descriptors of lock files are in a
//!     table, and [`forget_after_fork`] closes them in the child. One that another thread uses at the moment of
//!     the fork cannot be closed; as releasing also unlocks, this does no harm unless the parent is killed before.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, getpid};
use rustix::{fs, io};

use super::{OF_FILES, beneath, discard, failure};
use crate::error::{Error, Result};

/// How the names of lock files end.
pub(super) const ENDING: &str = ".lock";
const OPEN: OFlags = OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// To lock a file it is enough to read it.
const READABLE: Mode = Mode::RGRP.union(Mode::ROTH);
const WRITABLE: Mode = Mode::WGRP.union(Mode::WOTH);
/// Between two looks at a lock that others hold: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_micros(10);
const LONGEST_WAIT: Duration = Duration::from_millis(1);
/// Lock files that this process has open at the same time; beyond that, locks are refused.
const SLOTS: usize = 256;

/// A place for the descriptor of one lock file.
struct Slot {
    /// Number of the lock that has the place; 0 if it is free.
    owner: AtomicU64,
    /// Locked by the owner alone, and by a forked child, which only tries.
    file: Mutex<Option<OwnedFd>>,
}

static TABLE: [Slot; SLOTS] = [const { Slot { owner: AtomicU64::new(0), file: Mutex::new(None) } }; SLOTS];

/// Close the lock files of the parent: to be called in each forked child, before anything else here is.
///
/// They would stay locked if the parent is killed while the child lives.
pub fn forget_after_fork() {
    for slot in &TABLE {
        if slot.owner.load(Ordering::Acquire) != 0 {
            // If another thread of the parent uses it at this moment, the place stays taken in this child.
            if let Ok(mut file) = slot.file.try_lock() {
                file.take();
                slot.owner.store(0, Ordering::Release);
            }
        }
    }
}

/// A lock that is held, or waited for; dropping it lets go.
pub(super) struct Lock<'a> {
    /// The path of the directory. It is opened again for each step: another may be in its place.
    folder: &'a [u8],
    name: &'a [u8],
    slot: &'static Slot,
    number: u64,
    process: Pid,
}

/// Hold the lock file `name` in the directory with the path `folder`.
///
/// `make_parent` is called when the directory is missing, `waiting` while others hold the lock.
pub(super) fn acquire<'a>(
    folder: &'a [u8],
    name: &'a [u8],
    make_parent: &dyn Fn() -> Result<OwnedFd>,
    waiting: &dyn Fn() -> Result<()>,
) -> Result<Lock<'a>> {
    let lock = Lock::new(folder, name)?;
    let mut pause = FIRST_WAIT;
    loop {
        match lock.attempt() {
            Ok(true) => return Ok(lock),
            Ok(false) => {} // the holder has removed it: begin again
            Err(Errno::NOENT) => drop(make_parent()?),
            Err(Errno::WOULDBLOCK) => {
                waiting()?;
                thread::sleep(pause);
                pause = LONGEST_WAIT.min(pause * 2);
            }
            Err(error) if is_unsupported(error) => {
                return Err(Error::refused("the file system does not lock files"));
            }
            // A file of another user can perhaps be opened for reading; without write access to the directory, this
            // fails.
            Err(Errno::ACCESS | Errno::PERM) => return Err(Error::refused("the lock file cannot be opened")),
            Err(error) => return Err(failure(error)),
        }
    }
}

impl<'a> Lock<'a> {
    /// A lock that is not held yet.
    pub(super) fn new(folder: &'a [u8], name: &'a [u8]) -> Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let is_taken =
            |slot: &&Slot| slot.owner.compare_exchange(0, number, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let slot = TABLE.iter().find(is_taken).ok_or_else(|| Error::refused("too many locks at the same time"))?;
        Ok(Self { folder, name, slot, number, process: getpid() })
    }

    /// The descriptor; None in a child that was forked since.
    fn file(&self) -> Option<MutexGuard<'_, Option<OwnedFd>>> {
        let is_ours = self.process == getpid() && self.slot.owner.load(Ordering::Acquire) == self.number;
        is_ours.then(|| self.slot.file.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Open the lock file, unless it is open, and try to lock it; false if the file was removed meanwhile.
    fn attempt(&self) -> io::Result<bool> {
        let mut guard = self.file().ok_or(Errno::CHILD)?;
        let folder = beneath::folder(self.folder)?;
        let file = match guard.take() {
            Some(file) => file,
            None => retry_on_intr(|| fs::openat(&folder, self.name, OPEN | OFlags::CREATE, OF_FILES))?,
        };
        match retry_on_intr(|| fs::flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => {
                let Some(status) = status_in(&folder, self.name, &file)? else {
                    unlock(&file);
                    return Ok(false);
                };
                open_to_others(&folder, &file, &status);
                *guard = Some(file);
                Ok(true)
            }
            Err(Errno::WOULDBLOCK) => {
                *guard = Some(file);
                Err(Errno::WOULDBLOCK)
            }
            Err(error) => {
                if is_unsupported(error) {
                    discard(&folder, self.name);
                }
                Err(error)
            }
        }
    }
}

impl Lock<'_> {
    /// Take the lock by giving a file of the directory, which is open, the name of the lock file. False if there is no such file,
    /// if others hold the lock, or if they may not open what would be the lock file. `before` is called when it can be renamed.
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    pub(super) fn take_over(&self, folder: BorrowedFd<'_>, document: &[u8], before: &dyn Fn()) -> bool {
        let Some(mut guard) = self.file() else { return false };
        let Ok(file) = retry_on_intr(|| fs::openat(folder, document, super::READ, Mode::empty())) else { return false };
        let is_shared = |status: &fs::Stat| {
            let is_file = super::type_of(status) == fs::FileType::RegularFile && status.st_nlink == 1;
            is_file && Mode::from_raw_mode(status.st_mode).contains(READABLE)
        };
        if !fs::fstat(&file).is_ok_and(|status| is_shared(&status))
            || fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
        {
            return false;
        }
        before();
        // If another document has just been put there, that has become a lock file, and is not held.
        let is_ours = fs::renameat_with(folder, document, folder, self.name, fs::RenameFlags::NOREPLACE).is_ok()
            && status_in(folder, self.name, &file).is_ok_and(|status| status.is_some());
        if is_ours {
            *guard = Some(file);
        } else {
            unlock(&file);
        }
        is_ours
    }

    /// Release the lock, and let its file stay.
    pub(super) fn leave(&self) {
        if let Some(mut guard) = self.file()
            && let Some(file) = guard.take()
        {
            unlock(&file);
        }
    }

    /// Give the file the name back that it had before `take_over`, and release the lock.
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    pub(super) fn give_back(&self, folder: BorrowedFd<'_>, document: &[u8]) {
        let Some(mut guard) = self.file() else { return };
        if let Some(file) = guard.take() {
            if fs::renameat_with(folder, self.name, folder, document, fs::RenameFlags::NOREPLACE) == Err(Errno::EXIST) {
                let _ = fs::unlinkat(folder, self.name, AtFlags::empty()); // another program has put a new document there
            }
            unlock(&file);
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    pub(super) fn take_over(&self, _: BorrowedFd<'_>, _: &[u8], _: &dyn Fn()) -> bool {
        false
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    pub(super) fn give_back(&self, _: BorrowedFd<'_>, _: &[u8]) {}
}

impl Drop for Lock<'_> {
    /// Remove the lock file, if it is ours, and release the lock.
    fn drop(&mut self) {
        let Some(mut guard) = self.file() else {
            return; // in a child that was forked since: the lock is the parent's
        };
        if let Some(file) = guard.take() {
            // A thread that gives up waiting also removes the file, if its holder was killed meanwhile.
            if fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                if let Ok(folder) = beneath::folder(self.folder)
                    && status_in(&folder, self.name, &file).is_ok_and(|status| status.is_some())
                {
                    discard(&folder, self.name);
                }
                unlock(&file);
            }
        }
        drop(guard);
        self.slot.owner.store(0, Ordering::Release);
    }
}

/// Remove a lock file that is not held. A held one stays, so that there is only one holder, and so does one of others.
///
/// # Errors
/// ACCESS: nothing can be reached in the directory.
pub(super) fn discard_free(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let file = match retry_on_intr(|| fs::openat(folder, name, OPEN, Mode::empty())) {
        Ok(file) => file,
        Err(Errno::ACCESS) => return fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(drop),
        Err(_) => return Ok(()),
    };
    if fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        if status_in(folder, name, &file).is_ok_and(|status| status.is_some()) {
            let _ = fs::unlinkat(folder, name, AtFlags::empty());
        }
        unlock(&file);
    }
    Ok(())
}

/// Let all users with write access to the directory open the lock file, regardless of the umask.
fn open_to_others(folder: &OwnedFd, file: &OwnedFd, status: &fs::Stat) {
    let mode = Mode::from_raw_mode(status.st_mode);
    if mode.contains(READABLE) || status.st_uid != rustix::process::geteuid().as_raw() {
        return;
    }
    let Ok(folder) = fs::fstat(folder) else { return };
    let writers = Mode::from_raw_mode(folder.st_mode) & WRITABLE;
    if !writers.is_empty() {
        // A file system without permissions refuses.
        let _ = fs::fchmod(file, mode | writers | Mode::from_raw_mode(writers.as_raw_mode() << 1));
    }
}

/// Whether an error says that the file system does not lock files.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL)
}

/// Release the lock, also if a forked child still has the descriptor.
fn unlock(file: &OwnedFd) {
    let _ = fs::flock(file, FlockOperation::Unlock);
}

/// What the system says of the open file, if it still has its name in the directory.
pub(super) fn status_in(folder: impl AsFd, name: &[u8], file: &OwnedFd) -> io::Result<Option<fs::Stat>> {
    let there = match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => there,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    let open = fs::fstat(file)?;
    Ok(((there.st_dev, there.st_ino) == (open.st_dev, open.st_ino)).then_some(there))
}
