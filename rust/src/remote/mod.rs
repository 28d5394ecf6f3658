//! Chunks of object stores and web servers, fetched and stored without the interpreter.
//!
//! `omnizarr.stores.remote.object` says how a store is set up and what its errors mean; whatever is unusual is refused
//! here, and left to it.
//!
//! | module | holds |
//! |---|---|
//! | [`process`] | the runtime, and what else each process makes for itself |
//! | [`failures`] | what goes wrong with requests, and errors that several readers get |
//! | [`dialler`] | new connections to servers |
//! | [`connections`] | connections to servers: free, waited for, being made |
//! | [`transport`] | HTTP/1.1 for the crate `object_store`; how many requests are on their way |
//! | [`answers`] | values and parts of values, with their versions; what readers share of them |
//! | [`flights`] | one request for all readers that need the same value at once |
//! | [`client`] | a store of that crate, set up as obstore sets up its own |
//! | [`fetch`] | requests for values and parts of them; values stored and deleted |
//! | `upload` | large values, stored in parts |
//! | [`change`] | requests on conditions, so that no change of another writer is lost |
//! | [`copies`] | values whose beginning the server copies from the old value |
//! | [`job`] | orders, and what tasks need to carry them out |
//! | [`located`] | chunks in files of other formats, near ones together |
//! | `read` | a chunk, read |
//! | `merge` | parts of chunks, changed: what tasks change in the same chunk is stored together |
//! | `write` | a chunk, written |
//! | [`batch`] | orders, carried out by tasks |

pub mod process;

pub mod failures;

pub mod dialler;

pub mod connections;
pub mod transport;

pub mod answers;
pub mod flights;

pub mod client;

pub mod fetch;

pub mod change;
pub mod copies;
mod upload;

pub mod indexes;
pub mod job;
pub mod located;

mod read;

mod merge;
mod write;

pub mod batch;

#[cfg(test)]
mod tests {
    use crc_fast::{CrcAlgorithm, Digest};

    #[test]
    fn crc_fast_in_place_of_the_real_one_has_the_check_value_of_crc64_nvme() {
        let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
        digest.update(b"1234");
        digest.update(b"56789");
        assert_eq!(digest.finalize(), 0xae8b_1486_0a79_9888);
    }
}
