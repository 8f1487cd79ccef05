//! What the clients of all providers share: one streaming call, read event by event into an answer.

use std::marker::PhantomData;

use eventsource_stream::Event;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proto::transcript::ToolCall;
use reqwest::RequestBuilder;

use super::choose::Access;
use super::stream::{Events, cut_off};
use super::{Answer, Model, ModelError, Request, Words};

/// A provider's form of the API: how a request is written, and how an event of the answer is read.
pub(super) trait Form: Default + Send {
    /// The provider, as OpenTelemetry's conventions name it.
    const PROVIDER: &'static str;

    /// The request, with its body.
    fn request(access: &Access, request: &Request<'_>) -> RequestBuilder;

    /// Takes an event of the answer in; true when nothing more will come.
    fn event(&mut self, event: &Event, so_far: &mut SoFar<'_>) -> Result<bool, ModelError>;

    /// Whether everything has been said, should the stream end here.
    fn is_whole(&self) -> bool {
        false
    }
}

/// A model behind a provider's API.
pub(super) struct Client<F> {
    access: Access,
    form: PhantomData<fn() -> F>,
}

impl<F: Form> Client<F> {
    pub(super) const fn new(access: Access) -> Self {
        Self { access, form: PhantomData }
    }

    async fn stream(&self, request: Request<'_>, words: Words) -> Result<Answer, ModelError> {
        let mut events =
            Events::open(F::request(&self.access, &request), self.access.stall).await?;
        let (mut form, mut so_far) = (F::default(), SoFar::new(request.messages.len(), &words));
        while let Some(event) = events.next().await? {
            if form.event(&event, &mut so_far)? {
                return Ok(so_far.answer);
            }
        }
        if form.is_whole() { Ok(so_far.answer) } else { Err(cut_off()) }
    }
}

impl<F: Form> Model for Client<F> {
    fn call<'a>(
        &'a self,
        request: Request<'a>,
        words: Words,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.stream(request, words).boxed()
    }

    fn provider(&self) -> &'static str {
        F::PROVIDER
    }

    fn name(&self) -> &str {
        &self.access.model
    }
}

/// The answer as far as it has come.
pub(super) struct SoFar<'a> {
    pub(super) answer: Answer,
    /// The provider's number of each call in `answer`.
    numbers: Vec<u64>,
    /// Which message this will be: it begins the ids of calls to which the server gives none.
    place: usize,
    words: &'a Words,
}

impl<'a> SoFar<'a> {
    const fn new(place: usize, words: &'a Words) -> Self {
        let answer = Answer {
            text: String::new(),
            calls: Vec::new(),
            usage: proto::turn::Usage { input: 0, output: 0 },
        };
        Self { answer, numbers: Vec::new(), place, words }
    }

    /// Takes words in; without any it is still a sign of life.
    pub(super) fn say(&mut self, text: &str) {
        if text.is_empty() {
            self.words.busy();
        } else {
            self.answer.text += text;
            self.words.say(text);
        }
    }

    /// It advances without words.
    pub(super) fn busy(&self) {
        self.words.busy();
    }

    /// How many calls have begun.
    pub(super) fn calls(&self) -> u64 {
        u64::try_from(self.numbers.len()).unwrap_or_default()
    }

    /// The call of that number; a new one, if there is none.
    pub(super) fn call(&mut self, number: u64) -> &mut ToolCall {
        let known = self.numbers.iter().position(|known| *known == number);
        let at = known.unwrap_or_else(|| {
            self.numbers.push(number);
            let id = format!("call_{}_{number}", self.place);
            self.answer.calls.push(ToolCall { id, name: String::new(), arguments: String::new() });
            self.numbers.len() - 1
        });
        &mut self.answer.calls[at]
    }
}
