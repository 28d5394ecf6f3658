//! The native engine of omnizarr.
//!
//! It runs the plans that `omnizarr.indexing` makes, over the codecs and stores that it knows, on all cores and without
//! the interpreter. The engine in Python defines the meaning of a plan. Everything that this crate does not know, or
//! that fails, is returned to it, so errors are the same with both.
//!
//! Each module knows only those above it:
//!
//! | module | holds |
//! |---|---|
//! | [`error`] | why a chunk could not be moved |
//! | [`json`] | a quick check of documents, and where their members are |
//! | [`numbers`] | types of numbers, and casts between them as NumPy does them |
//! | [`plan`] | what of which chunk goes where |
//! | [`convert`] | other types of elements, and what packed numbers mean |
//! | [`scatter`] | moving elements between a chunk and the caller's memory; all that is unsafe but for calls of C libraries and one lifetime |
//! | [`codecs`] | bytes to bytes, elements to elements |
//! | [`threads`] | threads that work for one call |
//! | [`store`] | where chunks are kept |
//! | [`manifest`] | where chunks lie in files of other formats |
//! | [`trees`] | indexes that say so in HDF5 files, whose parts Python fetches, or `trees::index` reads |
//! | [`cache`] | decoded chunks and indexes that are kept |
//! | [`chain`] | the codecs of a chunk, bound to its shape; shards, which are made of chains |
//! | `files` | a store in a directory; chunks in files of other formats |
//! | [`run`] | a plan, on several threads |
//! | `remote` | the same for remote stores |
//! | `py` | the only module that knows Python |

pub mod error;
pub mod json;
pub mod numbers;
pub mod plan;

pub mod convert;
pub mod samples;
pub mod scatter;
pub mod threads;

pub mod codecs;

pub mod cache;
#[cfg(unix)]
pub mod files;
pub mod manifest;
pub mod store;
pub mod trees;

pub mod chain;
pub mod run;

#[cfg(feature = "remote")]
pub mod remote;

#[cfg(feature = "python")]
mod py;
