//! The way out: what the scheduler wants delivered reaches its chat in order, once, and without one chat delaying another.
//!
//! One [`Desk`] per account owns everything that is in hand: [`reader`] brings parcels from the stream, [`chat`]
//! holds what waits for each chat, [`courier`] tries to deliver one parcel and does not give up easily, [`messenger`] makes
//! messages of it where the platform shows messages, [`pace`] keeps to what the platform bears, [`ledger`] remembers what was
//! tried, [`fence`] keeps late drafts away. A parcel is acknowledged when it is delivered or dead.

mod chat;
mod courier;
mod desk;
mod fence;
mod ledger;
mod messenger;
mod pace;
mod reader;
mod silence;

pub(crate) use self::desk::Desk;
