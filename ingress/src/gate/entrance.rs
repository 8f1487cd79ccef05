//! The way through the gate, for one arrival.

use futures_util::future::OptionFuture;
use node::bus::ReadError;
use node::identities::{self, Requested};
use node::settings::UnauthorizedDm;
use node::{channels, clock};
use proto::access::{self, Admission, Denied, Grounds};
use proto::channel::Home;
use proto::command::{Bypass, Name, Parsed};
use proto::event::{Address, MessageEvent, User};
use proto::session::{ChatKind, SessionKey, Source};

use super::{Arrival, Deed, Gate, Inner, Outcome, Policy, Refused, Sender, notice};
use crate::metrics::Pairing;
use crate::publish::{AcceptError, Accepted, Rank};

/// What is known when an arrival is looked at.
struct Known {
    /// The forms of its sender's ids.
    names: Vec<String>,
    /// The id that its chat had first.
    first_id: Option<String>,
}

impl Gate {
    /// Takes something of a platform in, or says why not. When it returns, everything that follows from the arrival is durable.
    ///
    /// # Errors
    /// When the broker does not take it, so that it must come again; or it is too large ever to be taken: then it is for
    /// [`set_aside`](Self::set_aside).
    pub async fn admit(&self, arrival: Arrival) -> Result<Outcome, AcceptError> {
        let outcome = self.0.admit(arrival).await;
        self.0.count(&outcome);
        outcome
    }

    /// Notes that a chat has a new id on its platform. Its conversations go on.
    ///
    /// # Errors
    /// When the broker does not take it: then the platform must say it again.
    pub async fn moved(&self, from: &str, to: &str) -> Result<(), AcceptError> {
        let Inner { platform, account, node, .. } = &*self.0;
        channels::moved(&node.bus, (platform, account), from, to)
            .await
            .map_err(|error| unavailable(&error))
    }
}

impl Inner {
    async fn admit(&self, arrival: Arrival) -> Result<Outcome, AcceptError> {
        let bus = &self.node.bus;
        let address = self.address(&arrival);
        let engaged = self.is_engaged(&arrival, &address).await.map_err(|e| unavailable(&e))?;
        if let Err(why) = self.policy.heeds(&arrival, engaged) {
            return Ok(Outcome::Unheeded(why));
        }
        let names = self.policy.names(&self.platform, &arrival);
        self.ruled().await.map_err(|error| unavailable(&error))?;
        let account = (self.platform.as_str(), self.account.as_str());
        let has_id = arrival.place.kind != ChatKind::Dm;
        let moved =
            OptionFuture::from(has_id.then(|| channels::first_id(bus, account, &address.chat)));
        let (standing, first_id) =
            tokio::try_join!(identities::standing(bus, &self.platform, &names), async {
                moved.await.transpose()
            })
            .map_err(|error| unavailable(&error))?;
        let judged = self.policy.rules.judge(Policy::applicant(&arrival, &names), standing);
        let known = Known { names, first_id: first_id.flatten() };
        let event = self.shape(&arrival, address, &known);
        match judged {
            Ok(grounds) => {
                let admission = Admission { grounds, ..event.admission };
                self.enter(arrival, MessageEvent { admission, ..event }, &known).await
            }
            Err(denied) => self.refuse(&arrival, &event, &known, denied).await,
        }
    }

    fn address(&self, arrival: &Arrival) -> Address {
        Address {
            platform: self.platform.clone(),
            account: self.account.clone(),
            chat: arrival.place.chat.clone(),
            kind: arrival.place.kind,
            thread: arrival.place.thread.clone(),
        }
    }

    /// Whether the agent has taken part in the thread that something comes from. Looked up only where it matters.
    async fn is_engaged(&self, arrival: &Arrival, address: &Address) -> Result<bool, ReadError> {
        let matters = self.policy.asks_for_threads()
            && self.policy.heeds(arrival, true).is_ok()
            && self.policy.heeds(arrival, false).is_err();
        if matters { self.directory.has(&self.node.bus, address).await } else { Ok(false) }
    }

    /// The event as it will be published.
    fn shape(&self, arrival: &Arrival, address: Address, known: &Known) -> MessageEvent {
        let Arrival { id, deed, place, sender, text, media, reply_to, history, .. } = arrival;
        let about = match deed {
            Deed::Wrote | Deed::Pressed => id,
            Deed::Edited { message } | Deed::Withdrew { message } => message,
        };
        let person = known.names.first().cloned().unwrap_or_default();
        let platform = format!("{}/{}", self.platform, self.account);
        let parts = Source {
            platform: &platform,
            kind: place.kind,
            chat: known.first_id.as_deref().unwrap_or(&place.chat),
            thread: place.thread.as_deref(),
            person: Some(person.as_str()).filter(|person| !person.is_empty()),
        }
        .parts(self.policy.settings.isolation());
        let channel = self.policy.channel(place);
        MessageEvent {
            id: about.clone(),
            session: SessionKey::new(parts),
            address,
            text: text.clone(),
            media: media.clone(),
            reply_to: reply_to.clone(),
            mode: self.policy.mode(place),
            history: history.clone(),
            admission: Admission {
                grounds: Grounds::Proof,
                aliases: known.names.iter().skip(1).cloned().collect(),
                shared: parts.are_shared(),
                prompt: channel.and_then(|channel| channel.prompt.clone()),
                model: channel.and_then(|channel| channel.model.clone()),
            },
            user: User { name: self.shown_name(sender, &person), id: person },
            accepted_at_ms: clock::wall_ms(),
        }
    }

    /// What a sender is called, wherever it is shown; without a name, an id that is not to be seen is hidden.
    fn shown_name(&self, sender: &Sender, id: &str) -> Option<String> {
        let hides = self.node.settings.access.redact_pii && !id.is_empty();
        sender.name.clone().or_else(|| hides.then(|| access::masked(id)))
    }

    /// Its sender may talk to the agent.
    async fn enter(
        &self,
        arrival: Arrival,
        event: MessageEvent,
        known: &Known,
    ) -> Result<Outcome, AcceptError> {
        let Arrival { id, deed, place, .. } = arrival;
        if let Parsed::Command(command) = event.parsed()
            && !matches!(deed, Deed::Withdrew { .. })
        {
            if !self.policy.may_use(command.spec, place.kind, &known.names) {
                if !self.policy.answers_itself {
                    let text = self.policy.may_instead(&command, place.kind, &known.names);
                    self.say(&id, &event, "not-allowed", text).await?;
                }
                return Ok(Outcome::Refused(Refused::Command));
            }
            if command.spec.name == Name::Bypass(Bypass::SetHome) {
                return self.set_home(&id, &event, place.name).await;
            }
        }
        let address = event.address.clone();
        let stored = match deed {
            Deed::Wrote | Deed::Pressed => self.publisher.accept(event, Rank::Admin).await,
            Deed::Edited { .. } => self.publisher.edit(&id, event).await,
            Deed::Withdrew { message } => {
                let MessageEvent { session, user, .. } = event;
                self.publisher.withdraw(&id, &address, session, (message, user)).await
            }
        }?;
        self.directory.note(&self.node.bus, &address, place.name.as_deref()).await;
        Ok(match stored {
            Accepted::Stored { seq } => Outcome::Stored(seq),
            Accepted::Duplicate { seq } => Outcome::Duplicate(seq),
        })
    }

    async fn set_home(
        &self,
        id: &str,
        event: &MessageEvent,
        name: Option<String>,
    ) -> Result<Outcome, AcceptError> {
        let home = Home {
            address: event.address.clone(),
            name,
            by: event.user.id.clone(),
            since_ms: event.accepted_at_ms,
        };
        channels::set_home(&self.node.bus, &home).await.map_err(|error| unavailable(&error))?;
        self.say(id, event, "home", notice::home(&self.platform)).await?;
        Ok(Outcome::Done)
    }

    /// Its sender may not. Someone unknown who writes in private gets a code; groups are never answered.
    async fn refuse(
        &self,
        arrival: &Arrival,
        event: &MessageEvent,
        known: &Known,
        denied: Denied,
    ) -> Result<Outcome, AcceptError> {
        let refused = match denied {
            Denied::Revoked => Refused::Revoked,
            Denied::Nameless => Refused::Nameless,
            Denied::Unknown => Refused::Unknown,
        };
        let asks = denied == Denied::Unknown
            && arrival.deed == Deed::Wrote
            && arrival.place.kind == ChatKind::Dm
            && self.policy.unauthorized == UnauthorizedDm::Pair;
        if let (true, Some(person)) = (asks, known.names.first()) {
            let asked = identities::request(
                &self.node.bus,
                (&self.platform, person),
                arrival.sender.name.as_deref(),
                (&event.address, &event.session),
            )
            .await
            .map_err(|error| unavailable(&error))?;
            self.metrics.paired(&self.platform, Pairing::from(&asked));
            match asked {
                Requested::Code(code) => {
                    self.say(&arrival.id, event, "pair", notice::code(&self.platform, &code))
                        .await?
                }
                Requested::TooMany => {
                    self.say(&arrival.id, event, "pair", notice::too_many()).await?
                }
                Requested::AlreadyTold | Requested::Locked => {}
            }
        }
        Ok(Outcome::Refused(refused))
    }

    fn count(&self, outcome: &Result<Outcome, AcceptError>) {
        match outcome {
            Ok(Outcome::Unheeded(why)) => self.metrics.unheeded(&self.platform, *why),
            Ok(Outcome::Refused(why)) => self.metrics.refused(&self.platform, *why),
            // The publisher has counted it.
            Ok(Outcome::Stored(_) | Outcome::Duplicate(_) | Outcome::Done) | Err(_) => {}
        }
    }
}

fn unavailable(error: &dyn std::error::Error) -> AcceptError {
    tracing::warn!(%error, "the gate cannot ask the broker");
    AcceptError::Unavailable
}
