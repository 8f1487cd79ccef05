//! Pictures of a message, fetched for a model that sees: from the web by the rules of `web_fetch`, or out of the message itself.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::TryStreamExt;

use super::fetch::{FetchError, WebFetch};
use crate::activity::Tracker;
use crate::models::Image;

/// The largest picture that providers take.
const BYTES_MAX: usize = 5 * 1024 * 1024;

/// Where they come from.
pub(crate) struct Pictures(WebFetch);

impl Pictures {
    /// `private` allows addresses that are otherwise refused.
    pub(crate) fn new(private: bool) -> anyhow::Result<Self> {
        Ok(Self(WebFetch::new(private)?))
    }

    /// Fetches one.
    pub(crate) async fn fetch(&self, url: &str, tracker: &Tracker) -> Result<Image, FetchError> {
        let bytes = match url.strip_prefix("data:") {
            Some(inside) => {
                let (_, data) = inside.split_once(";base64,").unwrap_or_default();
                STANDARD.decode(data).map_err(|_| FetchError::Address("data:".into()))?
            }
            None => self.download(url, tracker).await?,
        };
        let mime = kind(&bytes).ok_or_else(|| FetchError::NotText("no picture".into()))?;
        Ok(Image { mime, data: STANDARD.encode(bytes) })
    }

    async fn download(&self, url: &str, tracker: &Tracker) -> Result<Vec<u8>, FetchError> {
        let response = self.0.get(url, tracker).await?;
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let mut bytes = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.try_next().await? {
            tracker.touch();
            bytes.extend_from_slice(&chunk);
            if bytes.len() > BYTES_MAX {
                return Err(FetchError::NotText("too large".into()));
            }
        }
        Ok(bytes)
    }
}

/// What the bytes are, whatever anyone says of them.
fn kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_pictures_are_pictures() {
        let pictures = Pictures::new(false).unwrap();
        let (tracker, _gauge) = Tracker::new(1, Default::default());
        let fetch = async |url: &str| pictures.fetch(url, &tracker).await;
        let png = fetch("data:image/png;base64,iVBORw0KGgo=").await.unwrap();
        assert_eq!((png.mime, png.data.as_str()), ("image/png", "iVBORw0KGgo="));
        for url in
            ["data:image/png;base64,aGVsbG8=", "data:,x", "http://127.0.0.1/x.png", "ftp://x"]
        {
            assert!(fetch(url).await.is_err(), "{url}");
        }
    }
}
