//! Removing a directory with everything below it.
//!
//! Names are removed in the directory that was opened for them, and directories are opened in the one above, without following
//! links: if a program replaces a directory by a link meanwhile, the link is removed, and nothing where it leads to. What others create
//! meanwhile may stay, and so do lock files that are held.
//!
//! Directories are emptied level by level, and in each of them first the documents of nodes, in the order of
//! [`Turn`]: a reader that comes in between, or after the program was killed, finds no array that lacks some of its chunks,
//! unless it has opened the array before.

use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::{Files, RESERVED, beneath, lock_name, locks, type_of};
use crate::error::{Error, Result as Asked};

const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);
/// What makes a node, in the order in which they are looked for.
const DOCUMENTS: [&[u8]; 3] = [b"zarr.json", b".zarray", b".zgroup"];
/// Directories that stay open, so that those in them are opened in one step.
const MOST_HELD: usize = 16;
/// After so many files the caller is asked if it wants to stop.
const MANY: usize = 512;

/// When a file of a directory has its turn to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// Copies of the documents of others, which are not to outlive these.
    Copies,
    /// Makes a node.
    Maker,
    /// Says more of one.
    Document,
    /// Anything else, as a chunk.
    Other,
}

impl Turn {
    fn of(name: &[u8]) -> Self {
        match name {
            b".zmetadata" => Self::Copies,
            b"zarr.json" | b".zarray" | b".zgroup" | b"meta" | b"__zmeta__" => Self::Maker,
            _ if name.ends_with(b".array.json") || name.ends_with(b".group.json") => Self::Maker,
            _ if name.ends_with(b".json") || name.starts_with(b".z") || name == b"attrs" => Self::Document,
            _ => Self::Other,
        }
    }
}

/// Why not everything was removed.
pub enum Stopped {
    /// An error of the system, and the path below the directory that the call was for.
    System(Errno, Vec<u8>),
    /// The caller wants to stop.
    Asked(Error),
}

/// One directory of the tree.
struct Node {
    /// The number of the directory that it is in; its own for the topmost one.
    above: usize,
    name: Vec<u8>,
    open: Option<OwnedFd>,
}

struct Removal<'a> {
    folder: BorrowedFd<'a>,
    /// The name of a file in the topmost directory that stays.
    kept: &'a [u8],
    nodes: Vec<Node>,
    held: usize,
    /// The directory whose members are in turn, if it is not held.
    last: Option<(usize, OwnedFd)>,
    asked: &'a dyn Fn() -> Asked<()>,
    count: usize,
}

/// Remove a directory in an open one, with everything below. A link is removed, not followed; a file stays.
///
/// # Errors
/// Those of the system, but not that something is gone, nor that a directory is not empty, as others have put something there.
pub fn remove_tree(folder: BorrowedFd<'_>, name: &[u8], asked: &dyn Fn() -> Asked<()>) -> Result<(), Stopped> {
    if clear_below(folder, name, asked)? {
        let _ = fs::unlinkat(folder, name, AtFlags::REMOVEDIR);
    }
    Ok(())
}

/// Remove everything in an open directory.
///
/// # Errors
/// As [`remove_tree`].
pub fn clear(folder: BorrowedFd<'_>, asked: &dyn Fn() -> Asked<()>) -> Result<(), Stopped> {
    clear_below(folder, b".", asked).map(drop)
}

/// Remove the directory `name` of a node in `parent` below a root, under the lock of the node. Return false if this is to be
/// done in steps: nothing was done.
///
/// The document of the node becomes the lock file, so that it is gone and the lock is held in one step. To make
/// a lock file, and to remove it, takes longer than all the rest.
///
/// `whole`: with everything in it. Otherwise nothing is done if the document is not all that it holds.
///
/// # Errors
/// As [`remove_tree`]. Then the lock file stays, so that what is left does not become part of a new node.
pub fn delete_node(
    root: &Path,
    (parent, name): (&str, &str),
    lock: &str,
    whole: bool,
    asked: &dyn Fn() -> Asked<()>,
) -> Result<bool, Stopped> {
    let files = Files::new(root.to_path_buf(), false);
    let Ok(folder) = files.opened(parent) else { return Ok(false) };
    let Ok(own) = retry_on_intr(|| fs::openat(&folder, name, READ, Mode::empty())) else { return Ok(false) };
    if !whole && !has_only(&own, &DOCUMENTS) {
        return Ok(false);
    }
    let key = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
    let (path, lock_name) = (files.path(&key), lock_name(lock));
    let Ok(held) = locks::Lock::new(&path, &lock_name) else { return Ok(false) };
    let is_taken = |document: &[u8]| {
        held.take_over(own.as_fd(), document, &|| {
            // Not while others hold the lock: the caller may give up waiting for it, and then all is to be as it was.
            if whole && document == b".zgroup" && fs::statat(&own, &lock_name[..], AtFlags::SYMLINK_NOFOLLOW).is_err() {
                let _ = fs::unlinkat(&own, ".zmetadata", AtFlags::empty());
            }
        })
    };
    let Some(document) = DOCUMENTS.into_iter().find(|document| is_taken(document)) else { return Ok(false) };
    // It may have been moved, or have got more, before the lock was held.
    if !is_at(&path, &own) || !(whole || has_only(&own, &[&lock_name])) {
        held.give_back(own.as_fd(), document);
        return Ok(false);
    }
    if whole && let Err(stopped) = clear_all(folder.as_fd(), name.as_bytes(), own, &lock_name, asked) {
        held.leave();
        return Err(stopped);
    }
    drop(held);
    // The node is gone. What others have put there since is theirs, as the lock file of one who waited to make a new node.
    let _ = fs::unlinkat(&folder, name, AtFlags::REMOVEDIR);
    files.prune(parent);
    Ok(true)
}

/// Whether a directory holds one file, which has one of these names.
fn has_only(folder: &OwnedFd, names: &[&[u8]]) -> bool {
    let Ok(entries) = fs::Dir::read_from(folder) else { return false };
    let mut count = 0;
    for entry in entries {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            count += 1;
            if count > 1 || !names.contains(&name) {
                return false;
            }
        }
    }
    count == 1
}

/// Whether a path leads to the directory that is open.
fn is_at(path: &[u8], folder: &OwnedFd) -> bool {
    beneath::folder(path).and_then(|there| locks::status_in(there, b".", folder)).is_ok_and(|status| status.is_some())
}

/// Empty a directory in an open one; return false if it is none.
fn clear_below(folder: BorrowedFd<'_>, name: &[u8], asked: &dyn Fn() -> Asked<()>) -> Result<bool, Stopped> {
    let top = match retry_on_intr(|| fs::openat(folder, name, READ, Mode::empty())) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(false),
        Err(error) if is_other(error) => {
            if fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|it| type_of(&it) == FileType::Symlink) {
                let _ = fs::unlinkat(folder, name, AtFlags::empty());
            }
            return Ok(false);
        }
        Err(error) => return Err(Stopped::System(error, name.to_vec())),
    };
    clear_all(folder, name, top, b"", asked)?;
    Ok(true)
}

/// Empty the open directory `top`, which is in `folder`, but for the file `kept`.
fn clear_all(
    folder: BorrowedFd<'_>,
    name: &[u8],
    top: OwnedFd,
    kept: &[u8],
    asked: &dyn Fn() -> Asked<()>,
) -> Result<(), Stopped> {
    let nodes = vec![Node { above: 0, name: name.to_vec(), open: None }];
    let mut removal = Removal { folder, kept, nodes, held: 0, last: None, asked, count: 0 };
    removal.empty(0, top)?;
    let mut number = 1;
    while number < removal.nodes.len() {
        if let Some(opened) = removal.opened(number)? {
            removal.empty(number, opened)?;
        }
        number += 1;
    }
    removal.last = None;
    for number in (1..removal.nodes.len()).rev() {
        removal.nodes[number].open = None;
        removal.ask()?;
        if removal.reach(removal.nodes[number].above)? {
            let node = &removal.nodes[number];
            let _ = fs::unlinkat(removal.at(node.above), &node.name[..], AtFlags::REMOVEDIR);
        }
    }
    Ok(())
}

impl Removal<'_> {
    /// Remove the files of a directory, and note the directories in it.
    fn empty(&mut self, number: usize, opened: OwnedFd) -> Result<(), Stopped> {
        let failed = |removal: &Self, error, name: &[u8]| Err(Stopped::System(error, removal.path(number, name)));
        let mut entries = match fs::Dir::new(opened) {
            Ok(entries) => entries,
            Err(error) => return failed(self, error, b""),
        };
        // One buffer: there may be a million.
        let (mut names, mut files) = (Vec::new(), Vec::new());
        let before = self.nodes.len();
        while let Some(entry) = entries.read() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::NOENT) => break, // it was removed
                Err(error) => return failed(self, error, b""),
            };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || (number == 0 && name == self.kept) {
                continue;
            }
            let is_folder = match entry.file_type() {
                FileType::Unknown => {
                    match entries.fd().and_then(|at| fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)) {
                        Ok(status) => type_of(&status) == FileType::Directory,
                        Err(Errno::NOENT) => continue,
                        Err(error) => return failed(self, error, name),
                    }
                }
                kind => kind == FileType::Directory,
            };
            if is_folder {
                self.nodes.push(Node { above: number, name: name.to_vec(), open: None });
            } else {
                files.push((Turn::of(name), names.len()));
                names.extend_from_slice(entry.file_name().to_bytes_with_nul());
            }
        }
        let Ok(at) = entries.fd() else { return Ok(()) };
        files.sort_by_key(|file| file.0);
        for &(_, start) in &files {
            self.ask()?;
            let end = names[start..].iter().position(|&byte| byte == 0).map_or(names.len(), |end| start + end);
            let name = &names[start..end];
            let is_lock = name.starts_with(RESERVED.as_bytes()) && name.ends_with(locks::ENDING.as_bytes());
            let removed = if is_lock {
                locks::discard_free(at, name)
            } else {
                retry_on_intr(|| fs::unlinkat(at, name, AtFlags::empty()))
            };
            match removed {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return failed(self, error, name),
            }
        }
        if self.nodes.len() > before {
            // It need not be open, and perhaps too many files are.
            let Ok(kept) = at.try_clone_to_owned() else { return Ok(()) };
            if self.held < MOST_HELD {
                self.held += 1;
                self.nodes[number].open = Some(kept);
            } else {
                self.last = Some((number, kept));
            }
        }
        Ok(())
    }

    /// Open a directory of the tree; None if it is gone, or if something else is there now, which is removed.
    fn opened(&mut self, number: usize) -> Result<Option<OwnedFd>, Stopped> {
        let above = self.nodes[number].above;
        if !self.reach(above)? {
            return Ok(None);
        }
        self.step(self.at(above), number, READ)
    }

    /// Have the directory of a number open, so that `at` returns it; false if that is not possible any more.
    fn reach(&mut self, number: usize) -> Result<bool, Stopped> {
        if self.nodes[number].open.is_some() || self.last.as_ref().is_some_and(|last| last.0 == number) {
            return Ok(true);
        }
        self.last = None;
        let mut way = vec![number];
        let mut here = number;
        while here != 0 && self.nodes[self.nodes[here].above].open.is_none() {
            here = self.nodes[here].above;
            way.push(here);
        }
        let mut last: Option<OwnedFd> = None;
        for &next in way.iter().rev() {
            let from = match &last {
                Some(last) => last.as_fd(),
                None if next == 0 => self.folder,
                None => self.at(self.nodes[next].above),
            };
            match self.step(from, next, beneath::FOLDER | OFlags::NOFOLLOW)? {
                Some(opened) => last = Some(opened),
                None => return Ok(false),
            }
        }
        self.last = last.map(|last| (number, last));
        Ok(true)
    }

    /// The directory that was reached.
    fn at(&self, number: usize) -> BorrowedFd<'_> {
        match (&self.nodes[number].open, &self.last) {
            (Some(open), _) => open.as_fd(),
            (None, Some((_, last))) => last.as_fd(),
            (None, None) => self.folder,
        }
    }

    fn step(&self, from: BorrowedFd<'_>, number: usize, flags: OFlags) -> Result<Option<OwnedFd>, Stopped> {
        let name = &self.nodes[number].name[..];
        match retry_on_intr(|| fs::openat(from, name, flags, Mode::empty())) {
            Ok(opened) => Ok(Some(opened)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) if is_other(error) => {
                let _ = fs::unlinkat(from, name, AtFlags::empty());
                Ok(None)
            }
            Err(error) => Err(Stopped::System(error, self.path(number, b""))),
        }
    }

    /// The path of a name in a directory of the tree.
    fn path(&self, number: usize, name: &[u8]) -> Vec<u8> {
        let mut names = if name.is_empty() { Vec::new() } else { vec![name] };
        let mut here = number;
        loop {
            names.push(&self.nodes[here].name);
            if here == 0 {
                break;
            }
            here = self.nodes[here].above;
        }
        names.reverse();
        names.join(&b'/')
    }

    fn ask(&mut self) -> Result<(), Stopped> {
        self.count += 1;
        if self.count % MANY == 0 { (self.asked)().map_err(Stopped::Asked) } else { Ok(()) }
    }
}

/// Whether an error says that something else is in the place of a directory: a link or a file.
fn is_other(error: Errno) -> bool {
    matches!(error, Errno::LOOP | Errno::MLINK | Errno::NOTDIR)
}

/// Remove the directory `name` in `parent` below a root (all of that if both are ""), and directories above that are
/// empty then.
///
/// # Errors
/// As [`remove_tree`]; LOOP among them if there is a link on the way to `parent`.
pub fn delete(root: &Path, parent: &str, name: &str, asked: &dyn Fn() -> Asked<()>) -> Result<(), Stopped> {
    let files = Files::new(root.to_path_buf(), false);
    let folder = files.opened(parent).map_err(|error| Stopped::System(error, Vec::new()))?;
    if name.is_empty() {
        return clear(folder.as_fd(), asked);
    }
    remove_tree(folder.as_fd(), name.as_bytes(), asked)?;
    files.prune(parent);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::files::Files;
    use crate::store::Store;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let root = std::fs::canonicalize(std::env::temp_dir()).unwrap(); // without links
            let path = root.join(format!("omnizarr-removal-{}-{name}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }

        /// Make files, with the directories above them.
        fn with(self, keys: &[&str]) -> Self {
            for key in keys {
                std::fs::create_dir_all(self.0.join(key).parent().unwrap()).unwrap();
                std::fs::write(self.0.join(key), "").unwrap();
            }
            self
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<_> = std::fs::read_dir(&self.0)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn removed(folder: &Folder, parent: &str, name: &str) -> Option<(Errno, Vec<u8>)> {
        match delete(&folder.0, parent, name, &|| Ok(())) {
            Ok(()) => None,
            Err(Stopped::System(error, path)) => Some((error, path)),
            Err(Stopped::Asked(_)) => panic!("it was not stopped"),
        }
    }

    #[test]
    fn a_tree_goes_with_what_is_empty_above_and_nothing_else() {
        let folder =
            Folder::new("tree").with(&["a/b/t/zarr.json", "a/b/t/c/0/1", "a/b/t/.omnizarr-x.lock", "x", "c/y"]);
        std::fs::create_dir_all(folder.0.join("a/b/t/none/at/all")).unwrap();
        assert_eq!(removed(&folder, "a/b", "t"), None);
        assert_eq!(folder.names(), ["c", "x"]);
        assert_eq!(removed(&folder, "", "none"), None);
        assert_eq!(removed(&folder, "", "x"), None);
        assert_eq!(folder.names(), ["c", "x"]);
        assert_eq!(removed(&folder, "none", "x"), Some((Errno::NOENT, vec![])));
        assert_eq!(removed(&folder, "x", "y"), Some((Errno::NOTDIR, vec![])));
        assert_eq!(removed(&folder, "", ""), None);
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let kept = Folder::new("kept").with(&["a/b", "c"]);
        let folder = Folder::new("links").with(&["t/d/x"]);
        symlink(&kept.0, folder.0.join("t/d/link")).unwrap();
        symlink(kept.0.join("c"), folder.0.join("t/file")).unwrap();
        symlink(&kept.0, folder.0.join("link")).unwrap();
        assert_eq!(removed(&folder, "link", "a"), Some((Errno::LOOP, vec![])));
        assert_eq!(removed(&folder, "", "t"), None);
        assert_eq!(removed(&folder, "", "link"), None);
        assert_eq!(folder.names(), [""; 0]);
        assert_eq!(kept.names(), ["a", "c"]);
        assert!(kept.0.join("a/b").exists());
    }

    #[test]
    fn trees_are_as_wide_and_as_deep_as_they_like() {
        let folder = Folder::new("wide");
        for number in 0..50 {
            std::fs::create_dir_all(folder.0.join(format!("t/{number}/{number}/deeper"))).unwrap();
            std::fs::write(folder.0.join(format!("t/{number}/{number}/deeper/x")), "").unwrap();
        }
        // The path is longer than the system takes.
        let name = "d".repeat(200);
        let mut here = fs::open(folder.0.join("t"), READ, Mode::empty()).unwrap();
        for _ in 0..60 {
            fs::mkdirat(&here, &name, Mode::from_raw_mode(0o777)).unwrap();
            here = fs::openat(&here, &name, READ, Mode::empty()).unwrap();
        }
        fs::symlinkat("/", &here, "link").unwrap();
        assert_eq!(removed(&folder, "", "t"), None);
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    fn documents_go_first_those_that_make_a_node_before_others() {
        let names = ["0.0", ".zattrs", ".zarray", "c", ".zmetadata", "zarr.json", "zzz", "meta", "x.array.json"];
        let mut sorted = names;
        sorted.sort_by_key(|name| Turn::of(name.as_bytes()));
        let expected = [".zmetadata", ".zarray", "zarr.json", "meta", "x.array.json", ".zattrs", "0.0", "c", "zzz"];
        assert_eq!(sorted, expected);
    }

    #[test]
    fn a_lock_that_is_held_stays_until_it_is_let_go() {
        let folder = Folder::new("locked").with(&["t/x", "t/c/y"]);
        let store = Files::new(folder.0.clone(), false);
        store
            .locked("t/x", &|| Ok(()), &mut || {
                assert_eq!(removed(&folder, "", "t"), None);
                assert_eq!(std::fs::read_dir(folder.0.join("t")).unwrap().count(), 1);
                Ok(())
            })
            .unwrap();
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    fn the_document_of_a_node_becomes_its_lock() {
        let folder = Folder::new("node").with(&["g/a/zarr.json", "g/a/c/0", "g/b/.zarray", "g/b/.zattrs", "g/c/x"]);
        let node =
            |name: &str, whole| delete_node(&folder.0, ("g", name), "zarr.json", whole, &|| Ok(())).ok().unwrap();
        let store = Files::new(folder.0.clone(), false);
        store
            .locked("g/a/zarr.json", &|| Ok(()), &mut || {
                assert!(!node("a", true));
                Ok(())
            })
            .unwrap();
        assert!(folder.0.join("g/a/zarr.json").exists());
        assert!(node("a", true));
        assert!(!folder.0.join("g/a").exists());
        assert!(!node("b", false)); // the other document is there
        assert_eq!(std::fs::read_dir(folder.0.join("g/b")).unwrap().count(), 2);
        assert!(!node("c", true)); // it has no document
        assert!(!node("none", true));
        symlink("c", folder.0.join("g/link")).unwrap();
        assert!(!node("link", true));
        std::fs::remove_dir_all(folder.0.join("g")).unwrap();
        let folder = Folder::new("alone").with(&["g/a/zarr.json"]);
        assert!(delete_node(&folder.0, ("g", "a"), "zarr.json", false, &|| Ok(())).is_ok_and(|done| done));
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    fn nothing_is_done_to_a_node_that_is_to_be_deleted_in_steps() {
        let folder = Folder::new("steps").with(&["g/.zgroup", "g/.zmetadata", "g/a/zarr.json"]);
        let store = Files::new(folder.0.clone(), false);
        store
            .locked("g/zarr.json", &|| Ok(()), &mut || {
                assert!(delete_node(&folder.0, ("", "g"), "zarr.json", true, &|| Ok(())).is_ok_and(|done| !done));
                Ok(())
            })
            .unwrap();
        assert!(folder.0.join("g/.zmetadata").exists());
        // Others take the lock at the same moment, as to make a new node when it is gone.
        let (path, is_over) = (folder.0.join("g/a/zarr.json"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = store.locked("g/a/zarr.json", &|| Ok(()), &mut || Ok(()));
                }
            });
            for _ in 0..2000 {
                std::fs::create_dir_all(folder.0.join("g/a")).and_then(|()| std::fs::write(&path, "{}")).ok();
                let was_there = path.exists();
                let done = delete_node(&folder.0, ("g", "a"), "zarr.json", false, &|| Ok(())).ok().unwrap();
                assert_eq!(path.exists(), was_there && !done);
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_node_that_was_moved_meanwhile_gets_its_document_back() {
        let folder = Folder::new("moved").with(&["b/zarr.json"]);
        let own = fs::open(folder.0.join("b"), READ, Mode::empty()).unwrap();
        let path = folder.0.join("a").into_os_string().into_encoded_bytes();
        assert!(!is_at(&path, &own));
        let name = lock_name("zarr.json");
        let held = locks::Lock::new(&path, &name).unwrap();
        assert!(held.take_over(own.as_fd(), b"zarr.json", &|| ()));
        assert!(has_only(&own, &[&name]));
        held.give_back(own.as_fd(), b"zarr.json");
        assert!(has_only(&own, &DOCUMENTS));
        assert!(held.take_over(own.as_fd(), b"zarr.json", &|| ())); // it is not locked any more
        std::fs::write(folder.0.join("b/zarr.json"), "new").unwrap();
        held.give_back(own.as_fd(), b"zarr.json");
        assert!(has_only(&own, &DOCUMENTS));
        assert_eq!(std::fs::read(folder.0.join("b/zarr.json")).unwrap(), b"new");
    }

    #[test]
    fn a_caller_that_wants_to_stop_is_heard() {
        let folder = Folder::new("stopped");
        std::fs::create_dir(folder.0.join("t")).unwrap();
        for number in 0..MANY + 9 {
            std::fs::write(folder.0.join(format!("t/{number}")), "").unwrap();
        }
        let stopped = delete(&folder.0, "", "t", &|| Err(Error::broken("stop")));
        assert!(matches!(stopped, Err(Stopped::Asked(_))));
        assert_eq!(std::fs::read_dir(folder.0.join("t")).unwrap().count(), 10);
    }

    #[test]
    fn a_node_that_is_not_all_gone_leaves_its_lock_file() {
        let folder = Folder::new("left").with(&["g/a/c/0"]);
        std::fs::write(folder.0.join("g/a/zarr.json"), "{}").unwrap();
        for number in 0..MANY {
            std::fs::write(folder.0.join(format!("g/a/{number}")), "").unwrap();
        }
        let stopped = delete_node(&folder.0, ("g", "a"), "zarr.json", true, &|| Err(Error::broken("stop")));
        assert!(matches!(stopped, Err(Stopped::Asked(_))));
        assert!(!folder.0.join("g/a/zarr.json").exists());
        assert_eq!(std::fs::read(folder.0.join("g/a/.omnizarr-zarr.json.lock")).unwrap(), b"{}");
        let store = Files::new(folder.0.clone(), false); // the lock is free
        store.locked("g/a/zarr.json", &|| Err(Error::broken("held")), &mut || Ok(())).unwrap();
        assert!(!folder.0.join("g/a/.omnizarr-zarr.json.lock").exists());
    }

    #[test]
    fn nothing_goes_where_links_lead_to_that_take_the_place_of_directories_meanwhile() {
        let kept = Folder::new("outside").with(&["1/x", "1/y/z", "2/x", "x"]);
        let folder = Folder::new("swapped");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (place, away) = (folder.0.join("t/d"), folder.0.join("away"));
                while !is_over.load(Ordering::Relaxed) {
                    if std::fs::rename(&place, &away).is_ok() {
                        let _ = symlink(&kept.0, &place);
                        let _ = std::fs::remove_dir_all(&away);
                    }
                }
            });
            for _ in 0..300 {
                for key in ["t/d/1/x", "t/d/1/y/z", "t/d/2/x", "t/d/x"] {
                    let path = folder.0.join(key);
                    // Not through the link: that would be this test's own doing.
                    let _ = beneath::folder(folder.0.join("t/d").as_os_str().as_encoded_bytes())
                        .map(|_| std::fs::create_dir_all(path.parent().unwrap()));
                    let _ = std::fs::create_dir_all(folder.0.join("t/d"));
                }
                let _ = removed(&folder, "", "t");
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(kept.names(), ["1", "2", "x"]);
        assert!(["1/x", "1/y/z", "2/x", "x"].iter().all(|key| kept.0.join(key).exists()));
    }
}
