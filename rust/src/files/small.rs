//! Small files of nodes: what the store in Python asks for in one call, because opening and creating a node consists of
//! little else.
//!
//! Whatever is unusual is left to that store, which looks again: symbolic links, large files, errors.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use rustix::{fs, io};

use super::{OF_DIRECTORIES, READ, RESERVED, discard, type_of, unique_name, write_new};

/// The size of the largest file that is read here.
const LARGEST: i64 = 64 * 1024;

/// Read a whole file. `Ok(None)`: it is large, or no file.
///
/// # Errors
/// Those of the system; among them EINTR, so that the caller can look after its signals.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, Errno> {
    let file = fs::open(path, READ, Mode::empty())?;
    let status = fs::fstat(&file)?;
    if type_of(&status) != FileType::RegularFile || status.st_size > LARGEST {
        return Ok(None);
    }
    let mut data = Vec::with_capacity(usize::try_from(status.st_size).unwrap_or_default());
    while data.len() < data.capacity() && io::read(&file, spare_capacity(&mut data))? > 0 {}
    Ok(Some(data))
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
    if fs::mkdir(folder, OF_DIRECTORIES).is_err() {
        return Created::Nothing;
    }
    let unique = unique_name();
    let temporary = folder.join(format!("{RESERVED}{}.tmp", String::from_utf8_lossy(&unique)));
    let path = temporary.as_os_str().as_bytes();
    let placed = write_new(path, data, false)
        .and_then(|()| rename_to_free(&temporary, &folder.join(name)).inspect_err(|_| discard(path)));
    match placed {
        Err(_) => Created::Directory,
        Ok(()) if is_alone(folder, name) => Created::Alone,
        Ok(()) => Created::File,
    }
}

/// Whether a file is all that a directory holds.
fn is_alone(folder: &Path, name: &str) -> bool {
    std::fs::read_dir(folder)
        .is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == name)))
}

/// Rename a file, unless there is one of that name.
fn rename_to_free(source: &Path, target: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    match fs::renameat_with(fs::CWD, source, fs::CWD, target, fs::RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {} // a file system that cannot
        done => return done,
    }
    fs::link(source, target)?;
    fs::unlink(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("omnizarr-small-{}-{name}", std::process::id()));
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
        std::fs::write(folder.0.join("one"), "").unwrap();
        assert!(is_alone(&folder.0, "one"));
        std::fs::write(folder.0.join("other"), "").unwrap();
        assert!(!is_alone(&folder.0, "one"));
        assert!(!is_alone(&folder.0.join("none"), "one"));
    }

    #[test]
    fn a_file_is_not_replaced() {
        let folder = Folder::new("free");
        let (one, other) = (folder.0.join("one"), folder.0.join("other"));
        std::fs::write(&one, "1").unwrap();
        std::fs::write(&other, "2").unwrap();
        assert_eq!(rename_to_free(&one, &other), Err(Errno::EXIST));
        assert_eq!(std::fs::read(&other).unwrap(), b"2");
    }
}
