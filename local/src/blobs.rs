//! A folder as blob store.

use std::path::PathBuf;

use common::store::{Blobs, BoxFuture, StoreError};

pub struct FolderBlobs {
    folder: PathBuf,
}

impl FolderBlobs {
    pub fn new(folder: PathBuf) -> FolderBlobs {
        FolderBlobs { folder }
    }
}

impl Blobs for FolderBlobs {
    fn put<'a>(
        &'a self,
        key: &'a str,
        _content_type: &'a str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let path = self.folder.join(key);
            if let Some(folder) = path.parent() {
                tokio::fs::create_dir_all(folder).await.map_err(StoreError::new)?;
            }
            // Written beside and renamed, so that a reader (or a crash) never meets half a blob. Two writers of one blob
            // have a draft each.
            let draft = path.with_extension(format!("{:016x}.draft", u64::from_be_bytes(common::digest::random())));
            tokio::fs::write(&draft, bytes).await.map_err(StoreError::new)?;
            tokio::fs::rename(&draft, &path).await.map_err(StoreError::new)
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            match tokio::fs::read(self.folder.join(key)).await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(StoreError::new(error)),
            }
        })
    }
}
