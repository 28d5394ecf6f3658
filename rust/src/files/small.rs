//! Small files of nodes: what the store in Python asks for in one call, because opening and creating a node consists of
//! little else.
//!
//! Whatever is unusual is left to that store, which looks again: symbolic links, large files, errors. All paths are
//! absolute, and what has a link on its way is not opened (`super::beneath`).

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::{fs, io};

use super::{
    Files, OF_DIRECTORIES, READ, RESERVED, above, beneath, check_key, discard, last_of, own_name, remove, split,
    type_of, unique_name, write_in, write_new,
};
use crate::error::Result as Asked;

/// The size of the largest file that is read here.
const LARGEST: i64 = 64 * 1024;
/// After so many files the caller is asked if it wants to stop.
const MANY: usize = 4096;

/// Read a whole file. `Ok(None)`: it is large, or no file.
///
/// # Errors
/// Those of the system; among them EINTR, so that the caller can look after its signals.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, Errno> {
    let file = beneath::open(path.as_os_str().as_bytes(), READ)?;
    let status = fs::fstat(&file)?;
    if type_of(&status) != FileType::RegularFile || status.st_size > LARGEST {
        return Ok(None);
    }
    let mut data = Vec::with_capacity(usize::try_from(status.st_size).unwrap_or_default());
    while data.len() < data.capacity() && io::read(&file, spare_capacity(&mut data))? > 0 {}
    Ok(Some(data))
}

/// Return parts of an open file, by start and length: shorter ones where it ends, or where the system stops early.
///
/// # Errors
/// Those of the system; among them that there is no memory.
pub fn spans(file: impl AsFd, spans: &[(u64, usize)]) -> Result<Vec<Vec<u8>>, Errno> {
    let part = |&(start, length): &(u64, usize)| {
        let mut data = Vec::new();
        data.try_reserve_exact(length).map_err(|_| Errno::NOMEM)?;
        if length > 0 {
            io::pread(&file, spare_capacity(&mut data), start)?;
            data.truncate(length); // the memory may be larger
        }
        Ok(data)
    };
    spans.iter().map(part).collect()
}

/// Return the positions of those names that are files in a directory; None if it is none.
pub fn present<S: AsRef<str>>(folder: &Path, names: &[S]) -> Option<Vec<usize>> {
    let is = |path: &Path, wanted| fs::stat(path).is_ok_and(|status| type_of(&status) == wanted);
    let is_file = |at: &usize| is(&folder.join(names[*at].as_ref()), FileType::RegularFile);
    is(folder, FileType::Directory).then(|| (0..names.len()).filter(is_file).collect())
}

/// How far a new directory with its first file has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// There is something under the name of the directory, or it cannot be made.
    Nothing,
    /// The directory is made, but the file is not there, or another one is.
    Directory,
    /// Both are there, and something else may be, too.
    File,
    /// The file is there, and was alone in the directory afterwards.
    Alone,
}

/// Make a directory, and a file in it, which appears whole.
#[must_use]
pub fn create(folder: &Path, name: &str, data: &[u8]) -> Created {
    let path = folder.as_os_str().as_bytes();
    let Ok(folder) = beneath::folder(above(path)) else { return Created::Nothing };
    if fs::mkdirat(&folder, last_of(path), OF_DIRECTORIES).is_err() {
        return Created::Nothing;
    }
    let Ok(folder) = beneath::below(&folder, last_of(path)) else { return Created::Directory };
    match write_to_free(&folder, name, data) {
        Err(_) => Created::Directory,
        Ok(()) if is_alone(&folder, name) => Created::Alone,
        Ok(()) => Created::File,
    }
}

/// Write a file in a directory, which appears whole: in the place of another, or only if the name is free.
///
/// # Errors
/// Those of the system. EXIST: the name is not free.
pub fn set(folder: &Path, name: &str, data: &[u8], replaces: bool) -> io::Result<()> {
    let folder = beneath::folder(folder.as_os_str().as_bytes())?;
    if replaces { write_in(&folder, name, data, false) } else { write_to_free(&folder, name, data) }
}

/// Remove a file from the directory `parent` below a root, and directories that are empty then. Return how many these
/// are; None if there is no such file.
///
/// # Errors
/// Those of the system.
pub fn delete(root: &Path, parent: &str, name: &str) -> io::Result<Option<usize>> {
    let files = Files::new(root.to_path_buf(), false);
    let folder = files.opened(parent)?;
    Ok(remove(&folder, name)?.then(|| files.prune(parent)))
}

/// What is directly in a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The keys of files.
    pub files: Vec<String>,
    /// Their sizes in bytes, if these were asked for.
    pub sizes: Vec<u64>,
    /// The directories, without slashes at their ends.
    pub folders: Vec<String>,
}

/// List a directory, in the order of the system and with `prefix` before each name. None if it cannot be opened, or if
/// there is something in it that needs a closer look: a link, or a name that may be no key.
///
/// # Errors
/// If the caller wants to stop.
pub fn members(folder: &Path, prefix: &str, with_sizes: bool, asked: &dyn Fn() -> Asked<()>) -> Asked<Option<Members>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = beneath::open(folder.as_os_str().as_bytes(), flags).and_then(fs::Dir::new);
    let Ok(mut entries) = opened else { return Ok(None) };
    let mut found = Members::default();
    let mut count = 0;
    while let Some(entry) = entries.read() {
        count += 1;
        if count % MANY == 0 {
            asked()?;
        }
        let Ok(entry) = entry else { return Ok(None) };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") || name.to_bytes().starts_with(RESERVED.as_bytes()) {
            continue;
        }
        let key = match name.to_str() {
            Ok(text) if text.bytes().all(is_plain) => [prefix, text].concat(),
            _ => return Ok(None),
        };
        match entry.file_type() {
            FileType::Directory => found.folders.push(key),
            FileType::RegularFile => {
                if with_sizes {
                    let status = entries.fd().and_then(|at| fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW));
                    match status {
                        Ok(status) if type_of(&status) == FileType::RegularFile => {
                            found.sizes.push(u64::try_from(status.st_size).unwrap_or_default());
                        }
                        Err(Errno::NOENT) => continue, // it was removed
                        _ => return Ok(None),
                    }
                }
                found.files.push(key);
            }
            FileType::Symlink | FileType::Unknown => return Ok(None),
            _ => {}
        }
    }
    Ok(Some(found))
}

/// Whether names of such bytes are keys, if they are not reserved.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

/// Remove the files of some keys below a root, in their order, and directories that are empty when a key of another directory
/// follows. Return how many keys were looked at, and which directories are gone. It stops before a key that needs a closer
/// look: there is a link on the way, or it cannot be removed, or it is none.
///
/// # Errors
/// If the caller wants to stop.
pub fn delete_many<S: AsRef<str>>(
    root: &Path,
    keys: &[S],
    asked: &dyn Fn() -> Asked<()>,
) -> Asked<(usize, Vec<String>)> {
    let mut deletion =
        Deletion { files: Files::new(root.to_path_buf(), false), turn: None, is_emptied: false, gone: Vec::new() };
    for (number, key) in keys.iter().map(AsRef::as_ref).enumerate() {
        if number % MANY == MANY - 1
            && let Err(stopped) = asked()
        {
            deletion.leave();
            return Err(stopped);
        }
        if check_key(key).is_err() || deletion.delete(key).is_err() {
            deletion.leave();
            return Ok((number, deletion.gone));
        }
    }
    deletion.leave();
    Ok((keys.len(), deletion.gone))
}

struct Deletion<'a> {
    files: Files,
    /// The directory whose files are in turn, unless it is missing, and its path.
    turn: Option<(&'a str, Option<OwnedFd>)>,
    /// Whether something was removed in it.
    is_emptied: bool,
    gone: Vec<String>,
}

impl<'a> Deletion<'a> {
    fn delete(&mut self, key: &'a str) -> io::Result<()> {
        let (parent, name) = split(key);
        if self.turn.as_ref().is_none_or(|turn| turn.0 != parent) {
            self.leave();
            let folder = match self.files.opened(parent) {
                Ok(folder) => Some(folder),
                Err(Errno::NOENT) => None,
                Err(error) => return Err(error),
            };
            self.turn = Some((parent, folder));
        }
        if let Some((_, Some(folder))) = &self.turn {
            self.is_emptied |= remove(folder, name)?;
        }
        Ok(())
    }

    /// Remove the directory that was in turn, and those above it, as far as they are empty.
    fn leave(&mut self) {
        let Some((mut parent, _)) = self.turn.take() else { return };
        if std::mem::take(&mut self.is_emptied) {
            for _ in 0..self.files.prune(parent) {
                self.gone.push(parent.to_owned());
                parent = split(parent).0;
            }
        }
    }
}

fn write_to_free(folder: &OwnedFd, name: &str, data: &[u8]) -> io::Result<()> {
    let temporary = own_name(&unique_name(), ".tmp");
    write_new(folder, &temporary, data, false)?;
    rename_to_free(folder, &temporary, name).inspect_err(|_| discard(folder, &temporary))
}

/// Whether a file is all that a directory holds.
fn is_alone(folder: &OwnedFd, name: &str) -> bool {
    let is = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            matches!(entry.file_name().to_bytes(), b"." | b"..") || entry.file_name().to_bytes() == name.as_bytes()
        })
    };
    let readable = fs::openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    readable.and_then(fs::Dir::new).is_ok_and(|mut entries| entries.all(is))
}

/// Rename a file in a directory, unless there is one of that name.
fn rename_to_free(folder: &OwnedFd, source: &[u8], target: &str) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    match fs::renameat_with(folder, source, folder, target, fs::RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {} // a file system that cannot
        done => return done,
    }
    fs::linkat(folder, source, folder, target, AtFlags::empty())?;
    fs::unlinkat(folder, source, AtFlags::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let root = std::fs::canonicalize(std::env::temp_dir()).unwrap(); // without links
            let path = root.join(format!("omnizarr-small-{}-{name}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_small_file_is_read_whole() {
        let folder = Folder::new("read");
        for size in [0, 1, 4096, 65536] {
            std::fs::write(folder.0.join("a"), vec![7; size]).unwrap();
            assert_eq!(read(&folder.0.join("a")), Ok(Some(vec![7; size])));
        }
    }

    #[test]
    fn what_is_large_or_no_file_is_left_alone() {
        let folder = Folder::new("large");
        std::fs::write(folder.0.join("large"), vec![7; 65537]).unwrap();
        std::os::unix::fs::symlink("large", folder.0.join("link")).unwrap();
        assert_eq!(read(&folder.0.join("large")), Ok(None));
        assert_eq!(read(&folder.0), Ok(None));
        assert_eq!(read(Path::new("/dev/null")), Ok(None));
        assert_eq!(read(&folder.0.join("link")), Err(Errno::LOOP));
        assert_eq!(read(&folder.0.join("none")), Err(Errno::NOENT));
        assert_eq!(read(&folder.0.join("large/none")), Err(Errno::NOTDIR));
    }

    #[test]
    fn files_are_found_in_directories_only() {
        let folder = Folder::new("present");
        std::fs::write(folder.0.join("b"), "").unwrap();
        std::fs::create_dir(folder.0.join("c")).unwrap();
        std::os::unix::fs::symlink("b", folder.0.join("link")).unwrap();
        assert_eq!(present(&folder.0, &["a", "b", "c", "link"]), Some(vec![1, 3]));
        assert_eq!(present(&folder.0.join("b"), &["a"]), None);
        assert_eq!(present(&folder.0.join("a"), &["a"]), None);
    }

    #[test]
    fn a_directory_is_created_with_its_file() {
        let folder = Folder::new("create");
        let new = folder.0.join("new");
        assert_eq!(create(&new, "doc", b"abc"), Created::Alone);
        assert_eq!(std::fs::read(new.join("doc")).unwrap(), b"abc");
        assert_eq!(std::fs::read_dir(&new).unwrap().count(), 1);
        assert_eq!(create(&new, "doc", b"def"), Created::Nothing);
        assert_eq!(std::fs::read(new.join("doc")).unwrap(), b"abc");
        assert_eq!(create(&folder.0.join("none/new"), "doc", b""), Created::Nothing);
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing_in_the_directory() {
        let folder = Folder::new("fail");
        let new = folder.0.join("new");
        assert_eq!(create(&new, "none/doc", b"abc"), Created::Directory);
        assert_eq!(std::fs::read_dir(&new).unwrap().count(), 0);
    }

    #[test]
    fn a_file_beside_others_is_not_alone() {
        let folder = Folder::new("alone");
        let opened = || beneath::folder(folder.0.as_os_str().as_bytes()).unwrap();
        std::fs::write(folder.0.join("one"), "").unwrap();
        assert!(is_alone(&opened(), "one"));
        std::fs::write(folder.0.join("other"), "").unwrap();
        assert!(!is_alone(&opened(), "one"));
    }

    #[test]
    fn a_file_is_replaced_only_if_asked_for() {
        let folder = Folder::new("free");
        assert_eq!(set(&folder.0, "a", b"1", false), Ok(()));
        assert_eq!(set(&folder.0, "a", b"2", false), Err(Errno::EXIST));
        assert_eq!(std::fs::read(folder.0.join("a")).unwrap(), b"1");
        assert_eq!(set(&folder.0, "a", b"3", true), Ok(()));
        assert_eq!(std::fs::read(folder.0.join("a")).unwrap(), b"3");
        assert_eq!(set(&folder.0.join("none"), "a", b"", true), Err(Errno::NOENT));
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[test]
    fn deleting_counts_the_directories_that_go_too() {
        let folder = Folder::new("delete");
        std::fs::create_dir_all(folder.0.join("a/b/c")).unwrap();
        for key in ["a/x", "a/b/c/y", "a/b/c/z"] {
            std::fs::write(folder.0.join(key), "").unwrap();
        }
        assert_eq!(delete(&folder.0, "a/b/c", "y"), Ok(Some(0)));
        assert_eq!(delete(&folder.0, "a/b/c", "y"), Ok(None));
        assert_eq!(delete(&folder.0, "a/b", "c"), Ok(None));
        assert_eq!(delete(&folder.0, "a/b/c", "z"), Ok(Some(2)));
        assert_eq!(delete(&folder.0, "a/b/c", "z"), Err(Errno::NOENT));
        assert_eq!(delete(&folder.0, "", "none"), Ok(None));
        assert!(folder.0.join("a/x").exists());
    }

    fn deleted(folder: &Folder, keys: &[&str]) -> (usize, Vec<String>) {
        delete_many(&folder.0, keys, &|| Ok(())).unwrap()
    }

    #[test]
    fn many_are_deleted_up_to_what_needs_a_closer_look() {
        let folder = Folder::new("many");
        std::fs::create_dir_all(folder.0.join("a/b/c")).unwrap();
        std::fs::create_dir_all(folder.0.join("e")).unwrap();
        for key in ["a/b/c/1", "a/b/c/2", "a/x", "e/1", "e/2", "top"] {
            std::fs::write(folder.0.join(key), "").unwrap();
        }
        std::os::unix::fs::symlink("e", folder.0.join("link")).unwrap();
        let gone: Vec<_> = ["a/b/c", "a/b"].map(String::from).into();
        // Missing files and directories, and a directory in place of a file, are ignored.
        assert_eq!(deleted(&folder, &["a/b/c/1", "a/b/c/0", "a/b/c/2", "none/x", "a", "top"]), (6, gone));
        assert_eq!(deleted(&folder, &["e/1", "link/2", "e/2"]), (1, vec![]));
        for key in ["", "e/../e/2", "/e/2", "e/", "e//2", "e/.omnizarr-x.lock", "c:/x"] {
            assert_eq!(deleted(&folder, &["none", key]), (1, vec![]), "{key}");
        }
        assert_eq!(deleted(&folder, &["a/x", "a/../e/2"]), (1, vec!["a".to_owned()]));
        assert!(folder.0.join("e/2").exists());
        let keys = vec!["none"; MANY];
        assert!(delete_many(&folder.0, &keys, &|| Err(crate::error::Error::broken("stop"))).is_err());
    }

    #[test]
    fn members_are_listed_if_all_are_plain() {
        let folder = Folder::new("members");
        for key in ["b", ".zarray", "0.1", ".omnizarr-x.lock"] {
            std::fs::write(folder.0.join(key), key).unwrap();
        }
        std::fs::create_dir(folder.0.join("c")).unwrap();
        let listed = |sizes| {
            let mut found = members(&folder.0, "p/", sizes, &|| Ok(())).unwrap()?;
            found.files.sort();
            found.sizes.sort_unstable();
            Some(found)
        };
        let files = ["p/.zarray", "p/0.1", "p/b"].map(String::from).to_vec();
        let expected = Members { files, sizes: vec![], folders: vec!["p/c".into()] };
        assert_eq!(listed(false).as_ref(), Some(&expected));
        assert_eq!(listed(true), Some(Members { sizes: vec![1, 3, 7], ..expected }));
        assert_eq!(members(&folder.0.join("b"), "", true, &|| Ok(())).unwrap(), None);
        assert_eq!(members(&folder.0.join("none"), "", true, &|| Ok(())).unwrap(), None);
        for name in ["\u{e9}", "a\\b", "c:", "a b"] {
            std::fs::write(folder.0.join(name), "").unwrap();
            assert_eq!(listed(true), None, "{name}");
            std::fs::remove_file(folder.0.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("c", folder.0.join("link")).unwrap();
        assert_eq!(listed(false), None);
        for number in 0..MANY {
            std::fs::write(folder.0.join(format!("c/{number}")), "").unwrap();
        }
        let stopped = members(&folder.0.join("c"), "", false, &|| Err(crate::error::Error::broken("stop")));
        assert!(stopped.is_err());
    }

    #[test]
    fn nothing_is_done_behind_a_link() {
        let (folder, other) = (Folder::new("linked"), Folder::new("behind"));
        std::fs::write(other.0.join("doc"), "kept").unwrap();
        std::os::unix::fs::symlink(&other.0, folder.0.join("link")).unwrap();
        assert_eq!(set(&folder.0.join("link"), "doc", b"new", true), Err(Errno::LOOP));
        assert_eq!(read(&folder.0.join("link/doc")), Err(Errno::LOOP));
        assert_eq!(delete(&folder.0, "link", "doc"), Err(Errno::LOOP));
        assert_eq!(create(&folder.0.join("link/new"), "doc", b""), Created::Nothing);
        assert_eq!(std::fs::read(other.0.join("doc")).unwrap(), b"kept");
        assert_eq!(std::fs::read_dir(&other.0).unwrap().count(), 1);
    }
}
