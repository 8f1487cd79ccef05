//! The broker for one machine: obtaining a `nats-server` and running it as a child. The operator's commands and the tests use
//! the same code, so that what is tested is what is shipped.

mod child;
mod guard;
mod obtain;
mod orphan;
mod pins;
mod release;
mod version;
mod wheel;

pub use self::child::{Server, StartError};
pub use self::obtain::{Binary, ObtainError, obtain};
pub use self::version::Version;
