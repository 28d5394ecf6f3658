use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::error::Kind;

/// A directory that is removed at the end of a test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let root = fs::canonicalize(env::temp_dir()).unwrap(); // without links
        let path = root.join(format!("omnizarr-test-{}", String::from_utf8_lossy(&unique_name())));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> Files {
        Files::new(self.0.clone(), false)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.0.join(key)
    }

    /// Everything below, sorted.
    fn names(&self) -> Vec<String> {
        fn walk(path: &Path, prefix: &str, names: &mut Vec<String>) {
            for entry in fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
                if entry.file_type().unwrap().is_dir() {
                    walk(&entry.path(), &format!("{name}/"), names);
                }
                names.push(name);
            }
        }
        let mut names = Vec::new();
        walk(&self.0, "", &mut names);
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the three ways to read say of a key.
fn read(store: &Files, key: &str) -> Option<Vec<u8>> {
    let mut all = vec![7; 3];
    let value = store.read_all(key, 10, usize::MAX, &mut all).unwrap().then_some(all);

    let mut out = [0; 4096];
    let size = store.read_into(key, &mut out).unwrap();
    assert_eq!(size, value.as_ref().map(|value| value.len() as u64));
    if let Some(value) = &value {
        let there = value.len().min(out.len());
        assert_eq!(out[..there], value[..there]);
    }

    let opened = store.open(key).unwrap().map(|opened| {
        let mut parts = vec![0; usize::try_from(opened.size().unwrap()).unwrap() + 1];
        let (head, tail) = parts.split_at_mut(1);
        let read = opened.read_at(0, head).unwrap() + opened.read_at(1, tail).unwrap();
        parts.truncate(read);
        parts
    });
    assert_eq!(opened, value);
    value
}

fn kind_of<T>(result: Result<T>) -> Option<Kind> {
    result.err().map(|error| error.kind)
}

/// What each verb says of a key.
fn kinds(store: &Files, key: &str) -> [Option<Kind>; 6] {
    [
        kind_of(store.open(key)),
        kind_of(store.read_all(key, 8, usize::MAX, &mut Vec::new())),
        kind_of(store.read_into(key, &mut [0; 8])),
        kind_of(store.set(key, b"abc")),
        kind_of(store.delete(key)),
        kind_of(lock(store, key, || ())),
    ]
}

fn lock(store: &Files, key: &str, mut change: impl FnMut() + Send) -> Result<()> {
    store.locked(key, &|| Ok(()), &mut || {
        change();
        Ok(())
    })
}

/// Run a test of this module once more, in a process of its own that finds `role` set.
fn spawn(test: &str, role: &Path, through_shell: Option<&str>) -> Child {
    let program = env::current_exe().unwrap();
    let arguments = ["--exact", &format!("files::tests::{test}"), "--nocapture"].map(OsString::from);
    let mut command = match through_shell {
        None => Command::new(program),
        Some(preparation) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("{preparation}; exec \"$@\""), "sh"]).arg(program);
            // A limit to the size of files holds for a log that the output goes to as well.
            shell.stdout(Stdio::null()).stderr(Stdio::null());
            shell
        }
    };
    command.args(arguments).env("OMNIZARR_TEST_ROLE", role).spawn().unwrap()
}

fn role() -> Option<PathBuf> {
    env::var_os("OMNIZARR_TEST_ROLE").map(PathBuf::from)
}

// -- reading -----------------------------------------------------------------------------------------------------------

#[test]
fn a_key_that_is_not_there_is_none() {
    let folder = Folder::new();
    let store = folder.store();
    assert_eq!(read(&store, "a"), None);
    assert_eq!(read(&store, "a/b/c"), None);
    assert_eq!(read(&Files::new(folder.path("nowhere"), false), "a"), None);
    assert_eq!(read(&store, &"x".repeat(300)), None);
}

#[test]
fn values_are_the_contents_of_files() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("a/c")).unwrap();
    fs::write(folder.path("a/c/0"), b"abcdef").unwrap();
    fs::write(folder.path("empty"), b"").unwrap();
    let store = folder.store();
    assert_eq!(read(&store, "a/c/0").unwrap(), b"abcdef");
    assert_eq!(read(&store, "empty").unwrap(), b"");
}

#[test]
fn a_slash_at_the_end_of_the_root_changes_nothing() {
    let folder = Folder::new();
    let store = Files::new(folder.path("a//"), false);
    store.set("b", b"abc").unwrap();
    assert_eq!(fs::read(folder.path("a/b")).unwrap(), b"abc");
}

#[test]
fn values_of_any_size_are_read_whole_whatever_was_expected() {
    let folder = Folder::new();
    let store = folder.store();
    for size in [0, 1, 7, 8, 9, 4095, 4096, 4097, 1_000_000] {
        let data: Vec<u8> = (0..size).map(|place: usize| place.to_le_bytes()[0]).collect();
        store.set("key", &data).unwrap();
        for hint in [0, 1, 8, 4096, 2_000_000] {
            let mut fresh = Vec::new();
            assert!(store.read_all("key", hint, usize::MAX, &mut fresh).unwrap());
            assert_eq!(fresh, data);
            let mut used = vec![1; 5000];
            assert!(store.read_all("key", hint, usize::MAX, &mut used).unwrap());
            assert_eq!(used, data);
        }
        for room in [0, 1, 8, 4096, 2_000_000] {
            let mut out = vec![255; room];
            assert_eq!(store.read_into("key", &mut out).unwrap(), Some(size as u64));
            let there = size.min(room);
            assert_eq!(out[..there], data[..there]);
        }
    }
}

#[test]
fn reading_at_an_offset_ends_with_the_value() {
    let folder = Folder::new();
    let store = folder.store();
    store.set("key", b"abcdef").unwrap();
    let value = store.open("key").unwrap().unwrap();
    for (start, room, expected) in [(2, 3, "cde"), (4, 9, "ef"), (6, 1, ""), (u64::MAX, 1, ""), (0, 0, "")] {
        let mut out = vec![0; room];
        let read = value.read_at(start, &mut out).unwrap();
        assert_eq!(out[..read], *expected.as_bytes());
    }
}

#[test]
fn what_is_no_regular_file_is_no_value() {
    let folder = Folder::new();
    fs::create_dir(folder.path("directory")).unwrap();
    mknodat(CWD, folder.path("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _socket = UnixListener::bind(folder.path("socket")).unwrap();
    fs::write(folder.path("file"), b"abc").unwrap();
    let store = folder.store();
    for key in ["directory", "pipe", "socket", "file/below"] {
        assert_eq!(read(&store, key), None, "{key}");
    }
}

#[test]
fn an_open_value_stays_as_it_was_when_the_key_is_set() {
    let folder = Folder::new();
    let store = folder.store();
    store.set("key", b"old").unwrap();
    let value = store.open("key").unwrap().unwrap();
    store.set("key", b"newer").unwrap();
    let mut out = [0; 8];
    assert_eq!(value.size().unwrap(), 3);
    assert_eq!(value.read_at(0, &mut out).unwrap(), 3);
    assert_eq!(out[..3], *b"old");
}

#[test]
fn a_stamp_changes_with_the_value_alone() {
    let folder = Folder::new();
    let store = folder.store();
    store.set("key", b"abc").unwrap();
    let first = settled_stamp(&store, "key");
    assert_eq!(settled_stamp(&store, "key"), first);
    let status = fs::metadata(folder.path("key")).unwrap();
    assert_eq!(first[..3], [status.dev(), status.ino(), 3]);
    store.set("key", b"abc").unwrap();
    assert_ne!(settled_stamp(&store, "key"), first);
}

/// The stamp of a value, as soon as it has one.
fn settled_stamp(store: &Files, key: &str) -> Stamp {
    let deadline = Instant::now() + 10 * SETTLED_COARSELY;
    loop {
        if let Some(stamp) = store.open(key).unwrap().unwrap().stamp().unwrap() {
            return stamp;
        }
        assert!(Instant::now() < deadline, "no stamp");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_value_that_was_only_just_written_has_no_stamp() {
    let folder = Folder::new();
    let store = folder.store();
    let start = Instant::now();
    let mut stamps = 0;
    while start.elapsed() < Duration::from_millis(300) {
        let written = Instant::now();
        store.set("key", b"abc").unwrap();
        let stamp = store.open("key").unwrap().unwrap().stamp().unwrap();
        // This thread may have been kept waiting.
        stamps += usize::from(stamp.is_some() && written.elapsed() < Duration::from_millis(100));
    }
    assert_eq!(stamps, 0);
}

#[test]
fn equal_stamps_are_of_equal_values_however_fast_they_are_written() {
    let folder = Folder::new();
    let store = folder.store();
    let mut stamped = std::collections::HashMap::new();
    for number in 0_u32..5000 {
        // Every now and then there is time enough for a stamp; then others follow at once.
        if number % 1000 == 500 {
            thread::sleep(Duration::from_millis(200));
        }
        for moment in 0..2 {
            if let Some(value) = store.open("key").unwrap() {
                let mut bytes = [0; 4];
                value.read_at(0, &mut bytes).unwrap();
                if let Some(stamp) = value.stamp().unwrap() {
                    assert_eq!(*stamped.entry(stamp).or_insert(bytes), bytes, "after {number}");
                }
            }
            if moment == 0 {
                store.set("key", &number.to_ne_bytes()).unwrap();
            }
        }
    }
    assert!(!stamped.is_empty());
}

#[test]
fn a_change_is_settled_once_the_clock_has_gone_on_for_sure() {
    let second = NANOSECONDS;
    let at = |nanoseconds: i128| Duration::from_nanos(u64::try_from(nanoseconds).unwrap());
    let fine = 10 * second + 123_456_789;
    let tenth = second / 10;
    assert!(!is_settled(fine, fine, at(fine)));
    assert!(!is_settled(fine, fine, at(fine + tenth)));
    assert!(is_settled(fine, fine, at(fine + tenth + 1)));
    // Both times count, the later one decides; and neither may be in the future.
    assert!(!is_settled(0, fine, at(fine + tenth)));
    assert!(!is_settled(fine, 0, at(fine + tenth)));
    assert!(is_settled(-fine, fine, at(fine + 2 * tenth)));
    assert!(!is_settled(fine + second, fine, at(fine + 2 * tenth)));
    assert!(!is_settled(fine, fine, Duration::ZERO));
    // Whole seconds are those of a file system that knows no others.
    let whole = 10 * second;
    assert!(!is_settled(whole, whole, at(whole + 2 * second)));
    assert!(is_settled(whole, whole, at(whole + 3 * second + 1)));
    assert!(is_settled(0, fine, at(fine + 2 * tenth)));
}

// -- what a key cannot do ----------------------------------------------------------------------------------------------

#[test]
fn what_is_no_key_is_refused() {
    let folder = Folder::new();
    let store = folder.store();
    let bad = ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a\\b", "a\0b", "C:", "c:/a"];
    for key in bad.into_iter().chain([".omnizarr-a.lock", "a/.omnizarr-a.tmp/b"]) {
        assert_eq!(kinds(&store, key), [Some(Kind::Refused); 6], "{key:?}");
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn what_only_looks_strange_is_a_key() {
    let folder = Folder::new();
    let store = folder.store();
    for key in ["...", ".a", "a./b", "C", "CC:/a", "a/C:/b", "é", ".omnizarr", "a b", "~"] {
        store.set(key, key.as_bytes()).unwrap();
        assert_eq!(read(&store, key).unwrap(), key.as_bytes());
    }
}

#[test]
fn symbolic_links_are_refused() {
    let folder = Folder::new();
    let other = Folder::new();
    fs::write(other.path("0"), b"abc").unwrap();
    fs::create_dir(folder.path("inside")).unwrap();
    fs::write(folder.path("inside/0"), b"abc").unwrap();
    symlink(&other.0, folder.path("outwards")).unwrap();
    symlink("inside", folder.path("inwards")).unwrap();
    symlink("circle", folder.path("circle")).unwrap();
    let store = folder.store();
    for key in ["outwards/0", "inwards/0"] {
        assert_eq!(kinds(&store, key), [Some(Kind::Refused); 6], "{key}");
    }
    for key in ["outwards/new/a", "inwards/new/a", "circle/a"] {
        assert_eq!(kind_of(store.set(key, b"")), Some(Kind::Refused), "{key}");
        assert_eq!(kind_of(lock(&store, key, || ())), Some(Kind::Refused), "{key}");
    }
    for key in ["outwards", "inwards", "circle"] {
        assert_eq!(kinds(&store, key)[..3], [Some(Kind::Refused); 3], "{key}");
    }
    assert_eq!(other.names(), ["0"]);
    assert_eq!(fs::read(other.path("0")).unwrap(), b"abc");
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_and_removed_itself() {
    let folder = Folder::new();
    let other = Folder::new();
    fs::write(other.path("0"), b"abc").unwrap();
    for key in ["a", "b"] {
        symlink(other.path("0"), folder.path(key)).unwrap();
    }
    let store = folder.store();
    store.set("a", b"new").unwrap();
    store.delete("b").unwrap();
    assert_eq!(read(&store, "a").unwrap(), b"new");
    assert_eq!(folder.names(), ["a"]);
    assert_eq!(fs::read(other.path("0")).unwrap(), b"abc");
}

#[test]
fn a_root_that_is_a_link_is_refused() {
    let folder = Folder::new();
    fs::create_dir(folder.path("real")).unwrap();
    symlink("real", folder.path("link")).unwrap();
    let store = Files::new(folder.path("link"), false);
    for key in ["a/b", "c"] {
        assert_eq!(kinds(&store, key), [Some(Kind::Refused); 6], "{key}");
    }
    assert_eq!(folder.names(), ["link", "real"]);
}

#[test]
fn a_directory_that_becomes_a_link_at_any_moment_leads_nowhere() {
    let (folder, other) = (Folder::new(), Folder::new());
    let store = folder.store();
    store.set("a/b/0", b"abc").unwrap();
    fs::create_dir(other.path("b")).unwrap();
    fs::write(other.path("b/0"), b"kept").unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let _ = fs::rename(folder.path("a"), folder.path("away"));
                let _ = symlink(&other.0, folder.path("a"));
                let _ = fs::remove_file(folder.path("a"));
                let _ = fs::rename(folder.path("away"), folder.path("a"));
            }
        });
        for number in 0..2000 {
            let _ = match number % 4 {
                0 => store.set("a/b/0", b"new"),
                1 => store.set("a/b/c/1", b"new"),
                2 => store.delete("a/b/0"),
                _ => lock(&store, "a/b/0", || ()),
            };
            let mut value = Vec::new();
            if store.read_all("a/b/0", 8, usize::MAX, &mut value).is_ok() {
                assert_ne!(value, b"kept");
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(other.names(), ["b", "b/0"]);
    assert_eq!(fs::read(other.path("b/0")).unwrap(), b"kept");
}

// -- writing -----------------------------------------------------------------------------------------------------------

#[test]
fn a_value_that_is_set_is_the_only_file_there() {
    let folder = Folder::new();
    for (fsync, key) in [(false, "a"), (true, "b")] {
        let store = Files::new(folder.path(key), fsync);
        store.set("c/0/0", b"old").unwrap();
        store.set("c/0/0", b"abc").unwrap();
        assert_eq!(read(&store, "c/0/0").unwrap(), b"abc");
    }
    assert_eq!(folder.names(), ["a", "a/c", "a/c/0", "a/c/0/0", "b", "b/c", "b/c/0", "b/c/0/0"]);
}

#[test]
fn files_have_the_permissions_that_the_umask_leaves() {
    let folder = Folder::new();
    folder.store().set("a/b", b"").unwrap();
    fs::create_dir(folder.path("c")).unwrap();
    fs::write(folder.path("c/d"), b"").unwrap();
    let mode = |key| fs::metadata(folder.path(key)).unwrap().permissions().mode();
    assert_eq!(mode("a"), mode("c"));
    assert_eq!(mode("a/b"), mode("c/d"));
}

#[test]
fn where_there_is_a_value_there_can_be_none_below_and_the_other_way_round() {
    let folder = Folder::new();
    let store = folder.store();
    store.set("file", b"abc").unwrap();
    store.set("directory/file", b"abc").unwrap();
    for key in ["directory", "file/a", "file/a/b"] {
        assert_eq!(kind_of(store.set(key, b"new")), Some(Kind::Broken), "{key}");
    }
    assert_eq!(kind_of(lock(&store, "file/a", || ())), Some(Kind::Broken));
    assert_eq!(kind_of(store.set(&"x".repeat(300), b"")), Some(Kind::Broken));
    assert_eq!(folder.names(), ["directory", "directory/file", "file"]);
    assert_eq!(read(&store, "file").unwrap(), b"abc");
}

#[test]
fn a_value_that_does_not_fit_leaves_the_old_one_and_nothing_else() {
    if let Some(folder) = role() {
        assert_eq!(kind_of(Files::new(folder, false).set("a/b", &vec![1; 1 << 20])), Some(Kind::Broken));
        return;
    }
    let folder = Folder::new();
    folder.store().set("a/b", b"old").unwrap();
    // Files of 16 blocks at most; without the trap, the system kills a process that writes more.
    let test = "a_value_that_does_not_fit_leaves_the_old_one_and_nothing_else";
    assert!(spawn(test, &folder.0, Some("trap '' XFSZ; ulimit -f 16")).wait().unwrap().success());
    assert_eq!(folder.names(), ["a", "a/b"]);
    assert_eq!(read(&folder.store(), "a/b").unwrap(), b"old");
}

#[test]
fn directories_that_were_removed_are_created_again() {
    let folder = Folder::new();
    let store = folder.store();
    store.set("a/b/c", b"abc").unwrap();
    fs::remove_dir_all(&folder.0).unwrap();
    assert_eq!(read(&store, "a/b/c"), None);
    store.delete("a/b/c").unwrap();
    store.set("a/b/c", b"def").unwrap();
    assert_eq!(read(&store, "a/b/c").unwrap(), b"def");
    fs::remove_dir_all(&folder.0).unwrap();
    lock(&store, "a/b/c", || ()).unwrap();
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn directories_below_one_that_is_known_are_checked_like_any_other() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let store = folder.store();
    store.set("c/0/0", b"abc").unwrap();
    symlink(&elsewhere.0, folder.path("c/1")).unwrap();
    fs::write(elsewhere.path("0"), b"secret").unwrap();
    fs::write(folder.path("c/2"), b"no directory").unwrap();
    let refused = Some(Kind::Refused);
    assert_eq!(kinds(&store, "c/1/0"), [refused; 6]);
    assert_eq!(kind_of(store.set("c/1/2/0", b"abc")), refused);
    assert_eq!(kind_of(lock(&store, "c/1/2/0", || ())), refused);
    assert_eq!(kind_of(store.set("c/2/0", b"abc")), Some(Kind::Broken));
    assert_eq!(elsewhere.names(), ["0"]);

    fs::remove_dir_all(folder.path("c")).unwrap();
    store.set("c/3/0", b"def").unwrap();
    store.set("c/3/4/0", b"ghi").unwrap();
    assert_eq!(folder.names(), ["c", "c/3", "c/3/0", "c/3/4", "c/3/4/0"]);
}

#[test]
fn names_of_temporary_files_are_sixteen_digits_and_all_different() {
    let mut names: Vec<_> = (0..1000).map(|_| unique_name()).collect();
    assert!(names.iter().all(|name| name.iter().all(u8::is_ascii_hexdigit)));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 1000);
}

// -- deleting ----------------------------------------------------------------------------------------------------------

#[test]
fn deleting_removes_the_directories_that_it_leaves_empty() {
    let folder = Folder::new();
    let store = folder.store();
    for key in ["a/b/c/0", "a/b/c/1", "a/d"] {
        store.set(key, b"").unwrap();
    }
    store.delete("a/b/c/0").unwrap();
    assert_eq!(folder.names(), ["a", "a/b", "a/b/c", "a/b/c/1", "a/d"]);
    store.delete("a/b/c/1").unwrap();
    assert_eq!(folder.names(), ["a", "a/d"]);
    store.delete("a/d").unwrap();
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn deleting_what_is_no_value_does_nothing() {
    let folder = Folder::new();
    let store = folder.store();
    fs::create_dir_all(folder.path("a/b")).unwrap();
    fs::write(folder.path("c"), b"").unwrap();
    for key in ["a", "a/b", "a/b/c", "c/d", "d"] {
        store.delete(key).unwrap();
    }
    assert_eq!(folder.names(), ["a", "a/b", "c"]);
}

// -- all at the same time ----------------------------------------------------------------------------------------------

#[test]
fn readers_see_whole_values_while_others_set_and_delete_them() {
    const SIZE: usize = 20_000;
    let folder = Folder::new();
    let stop = AtomicBool::new(false);
    let seen = AtomicUsize::new(0);
    thread::scope(|scope| {
        for seed in 0..3 {
            let (folder, stop) = (&folder, &stop);
            scope.spawn(move || {
                let store = folder.store();
                for round in 0..200_u8 {
                    let key = ["a/0", "a/1", "a/b/0"][usize::from(round) % 3];
                    store.set(key, &vec![round; SIZE + usize::from(round)]).unwrap();
                    if (round + seed) % 4 == 0 {
                        store.delete(key).unwrap();
                    }
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            let store = folder.store();
            let mut all = Vec::new();
            let mut out = vec![0; SIZE];
            while !stop.load(Ordering::Relaxed) {
                for key in ["a/0", "a/1", "a/b/0"] {
                    if store.read_all(key, SIZE, usize::MAX, &mut all).unwrap() {
                        assert_eq!(all, vec![all[0]; SIZE + usize::from(all[0])]);
                        seen.fetch_add(1, Ordering::Relaxed);
                    }
                    if let Some(size) = store.read_into(key, &mut out).unwrap() {
                        assert_eq!(size, SIZE as u64 + u64::from(out[0]));
                        assert_eq!(out, vec![out[0]; SIZE]);
                    }
                }
            }
        });
    });
    assert!(seen.into_inner() > 0);
    let store = folder.store();
    for key in ["a/0", "a/1", "a/b/0"] {
        store.delete(key).unwrap();
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn directories_are_created_while_others_remove_them() {
    let folder = Folder::new();
    let store = folder.store();
    thread::scope(|scope| {
        for name in ["0", "1", "2", "3"] {
            let store = &store;
            scope.spawn(move || {
                let key = format!("a/b/c/{name}");
                for _ in 0..300 {
                    store.set(&key, name.as_bytes()).unwrap();
                    assert_eq!(read(store, &key).unwrap(), name.as_bytes());
                    store.delete(&key).unwrap();
                }
            });
        }
    });
    assert_eq!(folder.names(), [""; 0]);
}

// -- locking -----------------------------------------------------------------------------------------------------------

/// Add one to the number that a key holds, many times.
fn count(store: &Files, key: &str, times: usize) {
    for _ in 0..times {
        lock(store, key, || {
            let mut value = Vec::new();
            let old = if store.read_all(key, 8, usize::MAX, &mut value).unwrap() {
                u64::from_le_bytes(value[..].try_into().unwrap())
            } else {
                0
            };
            store.set(key, &(old + 1).to_le_bytes()).unwrap();
        })
        .unwrap();
    }
}

#[test]
fn threads_that_lock_a_key_exclude_each_other() {
    let folder = Folder::new();
    let store = folder.store();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| count(&store, "a/c/0", 200));
        }
    });
    assert_eq!(read(&store, "a/c/0").unwrap(), 800_u64.to_le_bytes());
    assert_eq!(folder.names(), ["a", "a/c", "a/c/0"]);
}

#[test]
fn processes_that_lock_a_key_exclude_each_other() {
    if let Some(folder) = role() {
        count(&Files::new(folder, false), "a/c/0", 300);
        return;
    }
    let folder = Folder::new();
    let store = folder.store();
    let test = "processes_that_lock_a_key_exclude_each_other";
    let children: Vec<_> = (0..3).map(|_| spawn(test, &folder.0, None)).collect();
    count(&store, "a/c/0", 300);
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(read(&store, "a/c/0").unwrap(), 1200_u64.to_le_bytes());
    assert_eq!(folder.names(), ["a", "a/c", "a/c/0"]);
}

#[test]
fn a_lock_that_is_held_is_a_file_beside_the_key() {
    let folder = Folder::new();
    let store = folder.store();
    // The hashes are those of hashlib.blake2b(name.encode(), digest_size=16) in Python.
    for (key, expected) in [
        ("a/0.0", "a/.omnizarr-0.0.lock".to_owned()),
        ("0", ".omnizarr-0.lock".to_owned()),
        (&"é".repeat(60), format!(".omnizarr-{}.lock", "é".repeat(60))),
        (&"é".repeat(61), ".omnizarr-2cce68ee2940045fecd29cff5231e711.lock".to_owned()),
        (&("0.".repeat(31) + "0"), ".omnizarr-53642ed7b1fd6b8c34b754081e8f6ef1.lock".to_owned()),
        (&format!("a/{}", "x".repeat(200)), "a/.omnizarr-a838c58b985551205df88cdbb16ec53d.lock".to_owned()),
    ] {
        lock(&store, key, || assert!(folder.names().contains(&expected), "{key}")).unwrap();
        assert_eq!(folder.names(), [""; 0]);
    }
}

#[test]
fn the_file_that_a_killed_holder_left_is_taken_over() {
    let folder = Folder::new();
    fs::write(folder.path(".omnizarr-0.lock"), b"").unwrap();
    lock(&folder.store(), "0", || ()).unwrap();
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn keys_do_not_wait_for_each_other() {
    let folder = Folder::new();
    let store = folder.store();
    lock(&store, "a", || lock(&store, "b", || ()).unwrap()).unwrap();
}

#[test]
fn waiting_for_a_lock_ends_when_the_user_wants_to_stop() {
    let folder = Folder::new();
    let store = folder.store();
    let begin = Instant::now();
    let waiting = || match begin.elapsed() {
        elapsed if elapsed < Duration::from_millis(20) => Ok(()),
        _ => Err(Error::interrupted(Box::new(()))),
    };
    lock(&store, "a", || {
        let result = store.locked("a", &waiting, &mut || panic!("entered twice"));
        assert_eq!(kind_of(result), Some(Kind::Interrupted));
        assert_eq!(folder.names(), [".omnizarr-a.lock"]);
    })
    .unwrap();
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_change_that_fails_or_panics_lets_go_of_the_lock() {
    let folder = Folder::new();
    let store = folder.store();
    let result = store.locked("a/b", &|| Ok(()), &mut || Err(Error::refused("no")));
    assert_eq!(kind_of(result), Some(Kind::Refused));
    assert!(catch_unwind(AssertUnwindSafe(|| lock(&store, "a/b", || panic!("of the test")))).is_err());
    assert_eq!(folder.names(), [""; 0]);
    lock(&store, "a/b", || ()).unwrap();
}

#[test]
fn a_link_in_the_place_of_a_lock_file_is_not_followed() {
    let folder = Folder::new();
    symlink("target", folder.path(".omnizarr-a.lock")).unwrap();
    assert_eq!(kind_of(lock(&folder.store(), "a", || ())), Some(Kind::Refused));
    assert_eq!(folder.names(), [".omnizarr-a.lock"]);
}

#[test]
fn a_forked_child_holds_no_lock_of_its_parent() {
    // Locks of other tests would be forgotten too.
    let Some(folder) = role() else {
        let folder = Folder::new();
        let test = "a_forked_child_holds_no_lock_of_its_parent";
        assert!(spawn(test, &folder.0, None).wait().unwrap().success());
        return;
    };
    let store = Files::new(folder.clone(), false);
    let open_files = || fs::read_dir("/dev/fd").unwrap().count();
    let before = open_files();
    lock(&store, "a", || {
        assert_eq!(open_files(), before + 1);
        forget_after_fork();
        assert_eq!(open_files(), before);
        // What another process, that has the lock now, must find left alone.
        fs::write(folder.join(".omnizarr-a.lock"), b"").unwrap();
        lock(&store, "b", || ()).unwrap();
    })
    .unwrap();
    assert!(folder.join(".omnizarr-a.lock").exists());
    lock(&store, "a", || ()).unwrap();
}

#[test]
fn more_locks_at_the_same_time_than_there_are_places_for_are_refused() {
    fn nest(store: &Files, depth: usize) -> usize {
        let mut reached = depth;
        match lock(store, &format!("{depth}"), || reached = nest(store, depth + 1)) {
            Ok(()) => reached,
            Err(error) => {
                assert_eq!(error.kind, Kind::Refused);
                depth
            }
        }
    }
    let Some(folder) = role() else {
        let folder = Folder::new();
        let test = "more_locks_at_the_same_time_than_there_are_places_for_are_refused";
        assert!(spawn(test, &folder.0, None).wait().unwrap().success());
        assert_eq!(folder.names(), [""; 0]);
        return;
    };
    assert_eq!(nest(&Files::new(folder, false), 0), 256);
}

#[test]
fn the_directory_of_an_array_is_not_made_again_once_its_document_is_gone() {
    let folder = Folder::new();
    let store = Files::new(folder.path("root"), false).of_array("a", "a/zarr.json");
    assert_eq!(kind_of(store.set("a/c/0", b"1")), Some(Kind::Refused));
    assert!(!folder.path("root").exists());
    Files::new(folder.path("root"), false).set("a/zarr.json", b"{}").unwrap();
    store.set("a/c/0", b"1").unwrap();
    std::fs::remove_dir_all(folder.path("root/a")).unwrap();
    assert_eq!(kind_of(store.set("a/c/0", b"1")), Some(Kind::Refused));
    assert!(!folder.path("root/a").exists());
    // Where documents are elsewhere, the directory of the chunks comes and goes.
    let store = Files::new(folder.path("root"), false).of_array("data/a", "meta/a.array");
    Files::new(folder.path("root"), false).set("meta/a.array", b"{}").unwrap();
    store.set("data/a/0", b"1").unwrap();
    store.delete("data/a/0").unwrap();
    store.set("data/a/0", b"1").unwrap();
}

#[test]
fn a_patch_replaces_bytes_and_leaves_what_is_open_as_it_was() {
    let folder = Folder::new();
    let store = folder.store();
    let old: Vec<u8> = (0..LEAST_PATCHED + 9).map(|at| (at % 251) as u8).collect();
    store.set("a/b", &old).unwrap();
    let open = store.open("a/b").unwrap().unwrap();
    let done = store.patch("a/b", &mut |value| {
        let mut first = [0; 3];
        assert_eq!(value.read_at(5, &mut first).unwrap(), 3);
        assert_eq!(first, [5, 6, 7]);
        Ok(Some(vec![(5, vec![1, 2]), (LEAST_PATCHED + 8, vec![3])]))
    });
    let mut new = old.clone();
    (new[5], new[6], new[old.len() - 1]) = (1, 2, 3);
    let is_done = done.unwrap();
    assert_eq!(is_done, cfg!(target_os = "linux"));
    assert!(read(&store, "a/b") == Some(if is_done { new } else { old.clone() }));
    let mut kept = vec![0; old.len()];
    open.read_at(0, &mut kept).unwrap();
    assert!(kept == old);
    assert_eq!(folder.names(), ["a", "a/b"]);
}

#[test]
fn what_is_not_patched_stays() {
    let folder = Folder::new();
    let store = folder.store();
    store.set("small", b"abc").unwrap();
    let large = vec![7; usize::try_from(LEAST_PATCHED).unwrap()];
    store.set("large", &large).unwrap();
    let never = &mut |_: &dyn Value| panic!("it is not asked");
    assert!(!store.patch("missing", never).unwrap());
    assert!(!store.patch("small", never).unwrap());
    assert!(!store.patch("large", &mut |_| Ok(None)).unwrap());
    assert!(store.patch("large", &mut |_| Ok(Some(vec![(LEAST_PATCHED - 1, vec![1, 2])]))).is_err());
    assert!(store.patch("large", &mut |_| Ok(Some(vec![(u64::MAX, vec![1, 2])]))).is_err());
    assert!(store.patch("large", &mut |_| Err(Error::broken("a chunk"))).is_err());
    assert!(read(&store, "large") == Some(large));
    assert_eq!(folder.names(), ["large", "small"]);
}

#[test]
fn an_unseen_value_is_written_under_its_name_and_replaces_an_older_one_as_always() {
    let folder = Folder::new();
    let store = folder.store();
    store.attached(&mut || {
        store.set_unseen("a/new", b"1").unwrap();
        fs::hard_link(folder.path("a/new"), folder.path("kept")).unwrap();
        store.set_unseen("a/new", b"second").unwrap();
        store.set_unseen("b/new", b"3").unwrap();
        fs::remove_dir_all(folder.path("b")).unwrap();
        store.set_unseen("b/new", b"4").unwrap();
    });
    assert_eq!(read(&store, "a/new"), Some(b"second".to_vec()));
    assert_eq!(fs::read(folder.path("kept")).unwrap(), b"1");
    assert_eq!(read(&store, "b/new"), Some(b"4".to_vec()));
    assert_eq!(folder.names(), ["a", "a/new", "b", "b/new", "kept"]);
    FOLDER.with_borrow(|kept| assert!(kept.is_none()));
}

#[test]
fn an_unseen_value_never_goes_through_a_link() {
    let (folder, other) = (Folder::new(), Folder::new());
    fs::write(other.path("target"), "kept").unwrap();
    fs::create_dir(folder.path("a")).unwrap();
    symlink(other.path("target"), folder.path("a/x")).unwrap();
    symlink(&other.0, folder.path("link")).unwrap();
    let store = folder.store();
    store.set_unseen("a/x", b"new").unwrap();
    assert_eq!(kind_of(store.set_unseen("link/y", b"new")), Some(Kind::Refused));
    FOLDER.take();
    assert_eq!(read(&store, "a/x"), Some(b"new".to_vec()));
    assert_eq!(fs::read(other.path("target")).unwrap(), b"kept");
    assert_eq!(other.names(), ["target"]);
}
