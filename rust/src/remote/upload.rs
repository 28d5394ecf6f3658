//! Large values, stored in parts: they appear as a whole once all parts have been sent, or not at all.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use futures_util::future::join_all;
use object_store::{MultipartUpload, PutMultipartOptions, UploadPart};

use crate::error::{Error, Result};
use crate::remote::fetch::Place;
use crate::remote::process::runtime;
use crate::threads::locked;

/// Values with more bytes are sent in parts, as `omnizarr.stores.remote.object` does,
pub(super) const LARGEST_WHOLE: usize = 32 * 1024 * 1024;
/// of this number of bytes,
const PART: usize = 8 * 1024 * 1024;
/// and so many of a value at once.
const PARTS_AT_ONCE: usize = 4;

impl Place<'_> {
    /// Make `data` the value, whatever it was before.
    ///
    /// # Errors
    /// If the store fails. Then the value is the old one, unless only the answer to the last request was lost.
    pub(super) async fn put_in_parts(&self, data: &Bytes) -> Result<()> {
        let permit = self.live.gate.pass().await;
        let begun = self.live.store.put_multipart_opts(&self.path, PutMultipartOptions::default()).await;
        drop(permit);
        let mut upload = Upload(Some(begun.map_err(|error| self.failed(&error))?));
        let result = match self.send_parts(&mut upload, data).await {
            Ok(()) => upload.complete(self).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => Ok(()),
            Err(error) => {
                upload.abort().await;
                Err(self.failed(&error))
            }
        }
    }

    /// Send all parts. After an error, those that are on their way are still sent, so that none arrives after the abort.
    async fn send_parts(&self, upload: &mut Upload, data: &Bytes) -> object_store::Result<()> {
        let Some(upload) = &mut upload.0 else { return Ok(()) };
        let starts = (0..data.len()).step_by(PART);
        let parts =
            starts.map(|start| upload.put_part(data.slice(start..data.len().min(start + PART)).into())).collect();
        let parts = Mutex::new(parts);
        let sent = join_all((0..PARTS_AT_ONCE).map(|_| self.send_some(&parts))).await;
        sent.into_iter().collect()
    }

    async fn send_some(&self, parts: &Mutex<VecDeque<UploadPart>>) -> object_store::Result<()> {
        let next = || locked(parts).pop_front();
        while let Some(part) = next() {
            let _permit = self.live.gate.pass().await;
            if let Err(error) = part.await {
                locked(parts).clear();
                return Err(error);
            }
        }
        Ok(())
    }

    fn failed(&self, error: &object_store::Error) -> Error {
        self.live.meaning(error).unwrap_or_else(|| Error::refused("there is no place for it"))
    }
}

/// An upload that has begun; None once it has been completed. Parts of one that is dropped are removed from the server.
struct Upload(Option<Box<dyn MultipartUpload>>);

impl Upload {
    async fn complete(&mut self, place: &Place<'_>) -> object_store::Result<()> {
        let Some(upload) = &mut self.0 else { return Ok(()) };
        let _permit = place.live.gate.pass().await;
        upload.complete().await?;
        self.0 = None;
        Ok(())
    }

    /// Remove the parts. If the server does not do that, it forgets them in its own time.
    async fn abort(&mut self) {
        if let Some(upload) = &mut self.0 {
            let _ = upload.abort().await;
        }
        self.0 = None;
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // It was given up.
        if let Some(mut upload) = self.0.take()
            && let Ok(runtime) = runtime()
        {
            runtime.spawn(async move { upload.abort().await });
        }
    }
}
