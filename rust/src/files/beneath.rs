//! Opening files and directories with no symbolic link on the way, in one step: somebody who may write into a hierarchy
//! can replace a directory by a link at any moment, so a look at a path says nothing about where it leads afterwards.
//! Names are created, renamed and removed in a directory that was opened so.
//!
//! Linux (5.6) and macOS (11) have a call for this. Elsewhere, directories are opened one in the other.

use rustix::fd::OwnedFd;
use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::{self, Errno, retry_on_intr};

/// Enough to name something in the directory; it need not be readable.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(super) const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(super) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Open what an absolute path names. LOOP says that there is a link on the way, or in its place.
///
/// # Errors
/// Those of the system.
pub fn open(path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    match at_once(path, flags) {
        Some(done) => done,
        None => by_steps(path, flags),
    }
}

/// Open a directory.
pub(super) fn folder(path: &[u8]) -> io::Result<OwnedFd> {
    open(path, FOLDER)
}

/// Open a directory in an open one.
pub(super) fn below(folder: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    step(folder, name, FOLDER)
}

/// None if the system has no such call, or does not allow it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn at_once(path: &[u8], flags: OFlags) -> Option<io::Result<OwnedFd>> {
    use std::sync::atomic::{AtomicBool, Ordering};
    static IS_MISSING: AtomicBool = AtomicBool::new(false);
    if IS_MISSING.load(Ordering::Relaxed) {
        return None;
    }
    match retry_on_intr(|| fs::openat2(fs::CWD, path, flags, Mode::empty(), fs::ResolveFlags::NO_SYMLINKS)) {
        Err(Errno::NOSYS) => {
            IS_MISSING.store(true, Ordering::Relaxed);
            None
        }
        Err(Errno::PERM | Errno::INVAL | Errno::TOOBIG) => None, // a sandbox that does not know it
        done => Some(done),
    }
}

#[cfg(target_vendor = "apple")]
#[allow(clippy::unnecessary_wraps)]
fn at_once(path: &[u8], flags: OFlags) -> Option<io::Result<OwnedFd>> {
    const NOFOLLOW_ANY: OFlags = OFlags::from_bits_retain(0x2000_0000);
    Some(retry_on_intr(|| fs::open(path, (flags - OFlags::NOFOLLOW) | NOFOLLOW_ANY, Mode::empty())))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn at_once(_: &[u8], _: OFlags) -> Option<io::Result<OwnedFd>> {
    None
}

fn by_steps(path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let mut names: Vec<_> = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).collect();
    let last = names.pop().unwrap_or(b".");
    let mut folder = retry_on_intr(|| fs::open("/", FOLDER, Mode::empty()))?;
    for name in names {
        folder = step(&folder, name, FOLDER)?;
    }
    step(&folder, last, flags)
}

fn step(folder: &OwnedFd, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    retry_on_intr(|| fs::openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty())).map_err(|error| {
        if error == Errno::MLINK || (error == Errno::NOTDIR && is_link(folder, name)) { Errno::LOOP } else { error }
    })
}

fn is_link(folder: &OwnedFd, name: &[u8]) -> bool {
    fs::statat(folder, name, fs::AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Symlink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_way_of_opening_follows_links() {
        let root = std::fs::canonicalize(std::env::temp_dir()).unwrap();
        let root = root.join(format!("omnizarr-beneath-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/file"), "").unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("file", root.join("a/other")).unwrap();
        let read = OFlags::RDONLY | OFlags::CLOEXEC;
        for (name, flags, expected) in [
            ("a/b", FOLDER, Ok(())),
            ("a/", FOLDER, Ok(())),
            ("a/file", read, Ok(())),
            ("link", FOLDER, Err(Errno::LOOP)),
            ("link/b", FOLDER, Err(Errno::LOOP)),
            ("link/file", read, Err(Errno::LOOP)),
            ("link/none", read, Err(Errno::LOOP)),
            ("a/other", read, Err(Errno::LOOP)),
            ("a/none", read, Err(Errno::NOENT)),
            ("a/file/none", read, Err(Errno::NOTDIR)),
            ("a/file", FOLDER, Err(Errno::NOTDIR)),
        ] {
            let path = root.join(name);
            let path = path.as_os_str().as_bytes();
            for found in [open(path, flags), by_steps(path, flags)] {
                assert_eq!(found.map(drop), expected, "{name}");
            }
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}
