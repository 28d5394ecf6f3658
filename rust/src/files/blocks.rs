//! Blocks of N5 in a directory, to be read: a chunk is what follows the header of its file, whose path has the numbers of
//! the chunk in the opposite order.
//!
//! A block with another header, such as a smaller one at an edge, is refused: the store in Python makes a chunk of it.

use super::Files;
use crate::error::{Error, Result};
use crate::store::{Change, Hold, Stamp, Store, Value};

/// The blocks of one array.
pub struct Blocks {
    files: Files,
    /// What the keys of chunks begin with.
    head: String,
    /// What the paths of blocks begin with.
    folder: String,
    /// What a block begins with that is a whole chunk.
    header: Vec<u8>,
}

impl Blocks {
    /// Blocks in `files`, below `folder`: those that begin with `header`. Keys of chunks begin with `head`.
    #[must_use]
    pub fn new(files: Files, head: String, folder: String, header: Vec<u8>) -> Self {
        Self { files, head, folder, header }
    }

    fn path(&self, key: &str) -> Result<String> {
        let numbers = key.strip_prefix(&self.head).ok_or_else(|| Error::refused("the key of no chunk"))?;
        let mut path = String::with_capacity(self.folder.len() + numbers.len());
        path.push_str(&self.folder);
        for (at, number) in numbers.rsplit('/').enumerate() {
            if at > 0 {
                path.push('/');
            }
            path.push_str(number);
        }
        Ok(path)
    }

    fn block(&self, key: &str) -> Result<Option<Block<'_>>> {
        let Some(value) = self.files.open(&self.path(key)?)? else { return Ok(None) };
        let mut header = vec![0; self.header.len()];
        if value.read_at(0, &mut header)? < header.len() || header != self.header {
            return Err(Error::refused("a block that is not a whole chunk"));
        }
        Ok(Some(Block { value, skip: header.len() as u64 }))
    }
}

/// A block without its header.
struct Block<'a> {
    value: Box<dyn Value + 'a>,
    skip: u64,
}

impl Value for Block<'_> {
    fn size(&self) -> Result<u64> {
        self.value.size()?.checked_sub(self.skip).ok_or_else(|| Error::broken("a block that became shorter"))
    }

    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<usize> {
        self.value.read_at(start.saturating_add(self.skip), out)
    }

    fn stamp(&self) -> Result<Option<Stamp>> {
        self.value.stamp()
    }

    fn hold(&self) -> Option<Hold> {
        self.value.hold()
    }
}

impl Store for Blocks {
    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        Ok(self.block(key)?.map(|block| Box::new(block) as Box<dyn Value + '_>))
    }

    fn read_all(&self, key: &str, _hint: usize, most: usize, into: &mut Vec<u8>) -> Result<bool> {
        let Some(block) = self.block(key)? else { return Ok(false) };
        let size = usize::try_from(block.size()?).map_err(|_| Error::broken("larger than memory"))?;
        if size > most {
            return Err(Error::broken("larger than it may be"));
        }
        // Old bytes need not be cleared.
        into.truncate(size);
        into.try_reserve_exact(size - into.len()).map_err(|_| Error::broken("larger than memory"))?;
        into.resize(size, 0);
        let read = block.read_at(0, into)?;
        into.truncate(read);
        Ok(true)
    }

    fn read_into(&self, key: &str, out: &mut [u8]) -> Result<Option<u64>> {
        let Some(block) = self.block(key)? else { return Ok(None) };
        let size = block.size()?;
        if size == out.len() as u64 && block.read_at(0, out)? < out.len() {
            return Err(Error::broken("a block that became shorter"));
        }
        Ok(Some(size))
    }

    fn set(&self, _key: &str, _data: &[u8]) -> Result<()> {
        Err(Error::refused("blocks of N5 are written by the store"))
    }

    fn delete(&self, _key: &str) -> Result<()> {
        Err(Error::refused("blocks of N5 are written by the store"))
    }

    fn locked(&self, _key: &str, _waiting: &dyn Fn() -> Result<()>, _change: &mut Change<'_>) -> Result<()> {
        Err(Error::refused("blocks of N5 are written by the store"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn chunks_are_what_follows_the_header_in_files_of_the_opposite_order() {
        let root =
            std::fs::canonicalize(std::env::temp_dir()).unwrap().join(format!("omnizarr-n5-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/2/10")).unwrap();
        std::fs::write(root.join("a/2/10/0"), b"headbody").unwrap();
        std::fs::write(root.join("a/2/10/1"), b"hea").unwrap();
        std::fs::write(root.join("a/2/10/2"), b"HEADbody").unwrap();
        let blocks = Blocks::new(Files::new(root.clone(), false), "a/c/".into(), "a/".into(), b"head".to_vec());
        let mut whole = vec![9; 20];
        assert!(blocks.read_all("a/c/0/10/2", 0, 4, &mut whole).unwrap());
        assert_eq!(whole, b"body");
        assert!(blocks.read_all("a/c/0/10/2", 0, 3, &mut whole).is_err());
        let mut out = [0; 4];
        assert_eq!(blocks.read_into("a/c/0/10/2", &mut out).unwrap(), Some(4));
        assert_eq!(&out, b"body");
        assert_eq!(blocks.read_into("a/c/0/10/2", &mut [0; 5]).unwrap(), Some(4));
        let value = blocks.open("a/c/0/10/2").unwrap().unwrap();
        assert_eq!((value.size().unwrap(), value.read_at(2, &mut out).unwrap()), (4, 2));
        assert_eq!(&out[..2], b"dy");
        assert!(blocks.open("a/c/9/10/2").unwrap().is_none());
        for other in ["a/c/1/10/2", "a/c/2/10/2", "b/c/0"] {
            assert_eq!(blocks.open(other).err().unwrap().kind, Kind::Refused);
        }
        assert_eq!(blocks.set("a/c/0/10/2", b"").unwrap_err().kind, Kind::Refused);
        std::fs::remove_dir_all(root).unwrap();
    }
}
