//! The way out: what the scheduler wants delivered reaches its chat in order, once, and without one chat delaying another.
//!
//! One [`Desk`] per account owns everything that is in hand: [`reader`] brings parcels from the stream, [`chat`]
//! holds what waits for each chat, [`courier`] hands one parcel to the adapter and does not give up easily, [`ledger`]
//! remembers what was delivered, [`fence`] keeps late drafts away. A parcel is acknowledged when it is delivered or dead.

mod chat;
mod courier;
mod desk;
mod fence;
mod ledger;
mod reader;

pub(crate) use self::desk::Desk;
