//! What comes along with messages: fetched from the platform by the account that received it, from the web by the rules of
//! `web_fetch`, or taken out of the message itself.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::TryStreamExt;
use node::bus::Bus;
use proto::media::{Answer, Ask, MediaRef};
use proto::subject;

use super::fetch::{FetchError, WebFetch};
use crate::activity::Tracker;
use crate::models::Image;

/// The largest picture that providers take.
const PICTURE_BYTES_MAX: usize = 5 * 1024 * 1024;

/// How long one piece of a platform's file may take: the first one takes as long as the whole file takes to come.
const PIECE_LIMIT: Duration = Duration::from_secs(60);

/// Where they come from.
pub(crate) struct Attachments {
    web: WebFetch,
    bus: Option<Bus>,
}

impl Attachments {
    /// `private` allows addresses that are otherwise refused.
    pub(crate) fn new(private: bool) -> anyhow::Result<Self> {
        Ok(Self { web: WebFetch::new(private)?, bus: None })
    }

    /// The same, also for files of platforms.
    pub(crate) fn with_platforms(self, bus: Bus) -> Self {
        Self { bus: Some(bus), ..self }
    }

    /// Fetches a picture.
    pub(crate) async fn picture(&self, url: &str, tracker: &Tracker) -> Result<Image, FetchError> {
        picture(&self.fetch(url, PICTURE_BYTES_MAX, tracker).await?)
    }

    /// Fetches anything; refuses what is larger than `most` bytes.
    pub(crate) async fn fetch(
        &self,
        url: &str,
        most: usize,
        tracker: &Tracker,
    ) -> Result<Vec<u8>, FetchError> {
        let bytes = match url.strip_prefix("data:") {
            Some(inside) => {
                let (_, data) = inside.split_once(";base64,").unwrap_or_default();
                STANDARD.decode(data).map_err(|_| FetchError::Address("data:".into()))?
            }
            None => match url.parse::<MediaRef>() {
                Ok(reference) => self.of_platform(&reference, most, tracker).await?,
                Err(_) => self.download(url, most, tracker).await?,
            },
        };
        if bytes.len() > most { Err(FetchError::TooLarge) } else { Ok(bytes) }
    }

    /// Asks the account that received a file for it, piece by piece.
    async fn of_platform(
        &self,
        reference: &MediaRef,
        most: usize,
        tracker: &Tracker,
    ) -> Result<Vec<u8>, FetchError> {
        let failed = |why: String| FetchError::Http(why);
        let bus = self.bus.as_ref().ok_or_else(|| failed("no platform is reached".into()))?;
        let subject = subject::media(&reference.platform, &reference.account);
        let mut bytes = Vec::new();
        loop {
            let ask = Ask { reference: reference.reference.clone(), offset: bytes.len() as u64 };
            let asking = bus.ask_for::<_, Answer>(subject.clone(), &ask, PIECE_LIMIT);
            let answer = asking.await.map_err(|error| failed(error.to_string()))?;
            tracker.touch();
            let (data, total) = match answer {
                Answer::Piece { data, total, .. } => (data, total),
                Answer::Refused { why } => return Err(failed(why)),
            };
            if total > most as u64 {
                return Err(FetchError::TooLarge);
            }
            let piece = STANDARD.decode(data).map_err(|error| failed(error.to_string()))?;
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 >= total {
                return Ok(bytes);
            }
            if piece.is_empty() {
                return Err(failed("the file is cut short".into()));
            }
        }
    }

    async fn download(
        &self,
        url: &str,
        most: usize,
        tracker: &Tracker,
    ) -> Result<Vec<u8>, FetchError> {
        let response = self.web.get(url, tracker).await?;
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let mut bytes = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.try_next().await? {
            tracker.touch();
            bytes.extend_from_slice(&chunk);
            if bytes.len() > most {
                return Err(FetchError::TooLarge);
            }
        }
        Ok(bytes)
    }
}

/// The picture that bytes are.
pub(crate) fn picture(bytes: &[u8]) -> Result<Image, FetchError> {
    let mime = kind(bytes).ok_or_else(|| FetchError::NotText("no picture".into()))?;
    Ok(Image { mime, data: STANDARD.encode(bytes) })
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
        let attachments = Attachments::new(false).unwrap();
        let (tracker, _gauge) = Tracker::new(1, Default::default());
        let fetch = async |url: &str| attachments.picture(url, &tracker).await;
        let png = fetch("data:image/png;base64,iVBORw0KGgo=").await.unwrap();
        assert_eq!((png.mime, png.data.as_str()), ("image/png", "iVBORw0KGgo="));
        for url in
            ["data:image/png;base64,aGVsbG8=", "data:,x", "http://127.0.0.1/x.png", "ftp://x"]
        {
            assert!(fetch(url).await.is_err(), "{url}");
        }
    }
}
