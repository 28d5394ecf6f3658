//! What `object_store` calls of the crate `crc-fast`, done by the crate `crc`.
//!
//! `object_store` needs it for the checksum CRC-64/NVME of uploads to S3, and the native engine does not upload. The real
//! crate exports functions for C, which the linker must keep with all their tables: 0.8 MB of the module.

/// The algorithms that are needed.
#[derive(Clone, Copy, Debug)]
pub enum CrcAlgorithm {
    /// CRC-64/NVME.
    Crc64Nvme,
}

static NVME: crc::Crc<u64> = crc::Crc::<u64>::new(&crc::CRC_64_NVME);

/// A checksum of bytes that come in parts.
pub struct Digest(crc::Digest<'static, u64>);

impl Digest {
    /// Start with no bytes.
    #[must_use]
    pub fn new(algorithm: CrcAlgorithm) -> Self {
        match algorithm {
            CrcAlgorithm::Crc64Nvme => Self(NVME.digest()),
        }
    }

    /// Add bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes.
    #[must_use]
    pub fn finalize(self) -> u64 {
        self.0.finalize()
    }
}
