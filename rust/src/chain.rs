//! The codecs of a chunk, bound to its shape.
