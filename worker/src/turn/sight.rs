//! The pictures of a conversation: fetched when a model that sees is asked, kept for the turn.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proto::event::Media;
use proto::transcript::Entry;

use super::Turn;
use crate::models::{Image, Model};
use crate::transcript::rendered;

/// The most pictures that are sent with one request: the newest ones.
const PICTURES_MAX: usize = 8;

/// Pictures by address; none for one that could not be had.
#[derive(Debug, Default)]
pub(super) struct Album(HashMap<String, Option<Arc<Image>>>);

impl Album {
    /// Fetches what the model would see and is not there yet. What cannot be had stays a line of text.
    pub(super) async fn fetch(&mut self, model: &dyn Model, entries: &[Arc<Entry>], turn: &Turn) {
        if !model.sees() {
            self.0.clear();
            return;
        }
        let (_, attached) = rendered(entries);
        let wanted = attached.iter().rev().flat_map(|(_, media)| *media).take(PICTURES_MAX);
        for media in wanted {
            if self.0.contains_key(&media.url) {
                continue;
            }
            let fetched = tokio::select! {
                () = turn.cut.cancelled() => return,
                fetched = turn.shared.attachments.picture(&media.url, &turn.tracker) => fetched,
            };
            let image = fetched
                .inspect_err(|error| tracing::warn!(%error, "a picture could not be fetched"))
                .ok();
            self.0.insert(media.url.clone(), image.map(Arc::new));
        }
    }

    /// The pictures by the place of the message that they came with.
    pub(super) fn of(&self, attached: &[(usize, &[Media])]) -> BTreeMap<usize, Vec<Arc<Image>>> {
        let mut left = PICTURES_MAX;
        let mut out = BTreeMap::new();
        for (at, media) in attached.iter().rev() {
            let found = media.iter().filter_map(|media| self.0.get(&media.url)?.clone());
            let images: Vec<_> = found.take(left).collect();
            left -= images.len();
            if !images.is_empty() {
                out.insert(*at, images);
            }
        }
        out
    }
}
