//! The desk: where people, the agent and the operator have jobs made, listed and changed. Any scheduler serves; records are
//! changed by compare-and-set, and a repeated request does nothing more.

use async_nats::Message;
use bytes::Bytes;
use futures_util::StreamExt;
use node::bus::WriteError;
use node::clock::wall_ms;
use node::settings::CronAccess;
use proto::codec;
use proto::event::MessageEvent;
use proto::id::{JobId, Seq};
use proto::inbox::Inbox;
use proto::job::{
    Home, Job, JobAction, JobChange, JobPhase, JobReply, JobRequest, Requester, run_id,
};
use proto::subject;
use scheduler_core::jobs::{self, New};
use tokio_util::sync::CancellationToken;

use super::Jobs;
use super::record::{PAUSE, Record};

/// The group in which each request is served once.
const GROUP: &str = "schedulers";
/// The pause before a lost subscription is made anew.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);
/// The platform whose clients are gone by the time a job runs.
const API: &str = "api";

/// A request that is not fulfilled: why, and what to do.
struct Refused(String);

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self(why)
    }
}

/// Serves requests of workers and of the command line until `stop`.
pub(crate) async fn serve(jobs: Jobs, stop: CancellationToken) {
    loop {
        let subscribed =
            jobs.bus.client().queue_subscribe(subject::job_desk(), GROUP.to_owned()).await;
        if let Ok(mut requests) = subscribed {
            loop {
                let request = tokio::select! {
                    () = stop.cancelled() => return,
                    request = requests.next() => request,
                };
                let Some(request) = request else { break };
                let jobs = jobs.clone();
                tokio::spawn(async move { jobs.serve_one(request).await });
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

/// What a `/cron` wants. The error is the answer.
pub(crate) fn find_command(
    jobs: &Jobs,
    seq: Seq,
    event: &MessageEvent,
) -> Result<JobRequest, String> {
    let proto::command::Parsed::Command(command) = event.parsed() else {
        return Err("That is not a command any more.".into());
    };
    let action = jobs::read_command(command.args, &jobs.limits.zone, event.accepted_at_ms)?;
    let home = Home {
        session: event.session.chat(),
        address: event.address.clone(),
        user: event.user.clone(),
        admission: event.admission.clone(),
    };
    Ok(JobRequest {
        by: Requester::Person { seq, home },
        request: seq.to_string(),
        at_ms: event.accepted_at_ms,
        action,
    })
}

impl Jobs {
    async fn serve_one(&self, request: Message) {
        let Some(reply_to) = request.reply else { return };
        let answer = match codec::decode::<JobRequest>(&request.payload) {
            Ok(asked) if matches!(asked.by, Requester::Person { .. }) => {
                tracing::warn!("a person's request did not come through the log");
                return;
            }
            Ok(asked) => self.answer(&asked).await,
            Err(error) => Ok(JobReply {
                done: false,
                text: format!("The request cannot be read: {error}"),
                jobs: Vec::new(),
            }),
        };
        match answer {
            Ok(answer) => {
                let sent = self.bus.client().publish(reply_to, codec::encode(&answer).into()).await;
                if let Err(error) = sent {
                    tracing::debug!(%error, "an answer about jobs was not sent");
                }
            }
            // Who asked asks again.
            Err(error) => tracing::warn!("a request about jobs failed: {error:#}"),
        }
    }

    /// Fulfils a request, or says why not.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub(crate) async fn answer(&self, request: &JobRequest) -> anyhow::Result<JobReply> {
        let outcome = match self.may(request) {
            Ok(()) => match &request.action {
                JobAction::List => self.list(request).await?,
                JobAction::Add { .. } => self.add(request).await?,
                JobAction::Change { job, change } => self.change(request, job, *change).await?,
            },
            Err(refused) => Err(refused),
        };
        Ok(match outcome {
            Ok((text, jobs)) => JobReply { done: true, text, jobs },
            Err(Refused(text)) => JobReply { done: false, text, jobs: Vec::new() },
        })
    }

    /// Whether the operator lets this be wished for. What ingress knows (who is an administrator) it has checked.
    fn may(&self, request: &JobRequest) -> Result<(), Refused> {
        let refused = match (self.who, &request.by) {
            (CronAccess::Anyone, _)
            | (_, Requester::Operator { .. })
            | (CronAccess::Admins, Requester::Person { .. }) => return Ok(()),
            (CronAccess::Nobody, _) => "Scheduled jobs are turned off here (cron.who).",
            (CronAccess::Admins, Requester::Agent { .. }) => {
                "Only administrators may have scheduled jobs here, by /cron (cron.who)."
            }
        };
        Err(Refused(refused.into()))
    }

    async fn list(&self, request: &JobRequest) -> anyhow::Result<Answer> {
        let stored = match home(&request.by) {
            Some(home) => self.of_chat(&home.session.chat()).await?,
            None => self.all(subject::jobs()).await?,
        };
        let mut found: Vec<Job> = stored.into_iter().map(|(_, job)| job).collect();
        found.retain(|job| matches!(job.phase, JobPhase::Active | JobPhase::Paused));
        Ok(Ok((jobs::list(&found, wall_ms()), found)))
    }

    async fn add(&self, request: &JobRequest) -> anyhow::Result<Answer> {
        let JobAction::Add { schedule, prompt, name, zone } = &request.action else {
            return Ok(Err(Refused("That is nothing new.".into())));
        };
        let Some(home) = home(&request.by) else {
            return Ok(Err(Refused(
                "For which chat? Say the platform, the account and the chat.".into(),
            )));
        };
        if let Err(refused) = has_place(home) {
            return Ok(Err(refused));
        }
        let home = Home { session: home.session.chat(), ..home.clone() };
        let id = JobId::of_request(&request.request);
        let key = self.key(&home.session, id);
        loop {
            let Record { job, revision } = self.read(&key).await?;
            if let Some(job) = job {
                // This very request has made it.
                return Ok(Ok((jobs::added(&job), vec![job])));
            }
            let others: Vec<Job> =
                self.of_chat(&home.session).await?.into_iter().map(|(_, job)| job).collect();
            let new = New {
                id,
                home: home.clone(),
                schedule,
                prompt,
                name: name.as_deref(),
                zone: zone.as_deref(),
                at_ms: request.at_ms,
                seen: place(&request.by).unwrap_or_default(),
            };
            let job = match jobs::add(new, &others, &self.limits) {
                Ok(job) => job,
                Err(why) => return Ok(Err(why.into())),
            };
            if self.write(&key, &job, revision).await?.is_some() {
                tracing::info!(job = %id, chat = %home.session, "a job is made");
                return Ok(Ok((jobs::added(&job), vec![job])));
            }
        }
    }

    async fn change(
        &self,
        request: &JobRequest,
        which: &str,
        change: JobChange,
    ) -> anyhow::Result<Answer> {
        let seen = place(&request.by);
        let key = match self.meant(&request.by, which, seen).await? {
            Ok(key) => key,
            Err(refused) => return Ok(Err(refused)),
        };
        loop {
            let Record { job, revision } = self.read(&key).await?;
            let Some(job) = job else { return Ok(Err(unknown(which))) };
            if let Err(refused) = is_theirs(&request.by, &job) {
                return Ok(Err(refused));
            }
            let after = if change == JobChange::Run {
                self.last_input(&job).await?
            } else {
                Seq::default()
            };
            let changed = jobs::change(&job, change, request.at_ms, seen, after);
            if change == JobChange::Stop && job.run.is_some() {
                self.stop_run(&job, &request.request).await?;
            }
            let Some(after) = changed.job else { return Ok(Ok((changed.text, vec![job]))) };
            if self.write(&key, &after, revision).await?.is_some() {
                tracing::info!(job = %job.id, chat = %job.home.session, change = change.name(), "a job is changed");
                self.metrics.fired.inc_by(after.counts.runs - job.counts.runs);
                return Ok(Ok((changed.text, vec![after])));
            }
        }
    }

    /// The job that is meant: by its id, the beginning of it, or its name.
    async fn meant(
        &self,
        by: &Requester,
        which: &str,
        seen: Option<Seq>,
    ) -> anyhow::Result<Result<String, Refused>> {
        let stored = match (home(by), which.parse::<JobId>()) {
            (Some(home), _) => self.of_chat(&home.session.chat()).await?,
            (None, Ok(id)) => self.all(&subject::job_anywhere(id)).await?,
            (None, Err(_)) => self.all(subject::jobs()).await?,
        };
        // What a command has removed is still meant by a repetition of that command.
        let is_there = |job: &Job| match job.phase {
            JobPhase::Active | JobPhase::Paused => true,
            JobPhase::Done | JobPhase::Removed => seen.is_some_and(|seen| seen <= job.seen),
        };
        let found: Vec<_> = stored.into_iter().filter(|(_, job)| is_there(job)).collect();
        let whole = |job: &Job| job.id.to_string() == which || job.name.eq_ignore_ascii_case(which);
        let begins = |job: &Job| job.id.to_string().starts_with(which);
        let of = |test: &dyn Fn(&Job) -> bool| -> Vec<String> {
            found.iter().filter(|(_, job)| test(job)).map(|(key, _)| key.clone()).collect()
        };
        let keys = Some(of(&whole)).filter(|keys| !keys.is_empty()).unwrap_or_else(|| of(&begins));
        Ok(match &keys[..] {
            [key] => Ok(key.clone()),
            [] => Err(unknown(which)),
            _ => Err(Refused(format!("Several jobs are called {which:?}; write more of the id."))),
        })
    }

    /// Tells the session of a job's run that no one wants its answer any more.
    async fn stop_run(&self, job: &Job, request: &str) -> anyhow::Result<()> {
        let Some(run) = job.run else { return Ok(()) };
        let session = job.home.session.of_job(job.id);
        let sid = session.sid();
        let message = run_id(job.id, run.due_ms);
        let id = format!("stop-{message}-{request}");
        let subject = subject::inbox(self.bus.partition_of(sid), sid);
        let payload = Bytes::from(codec::encode(&Inbox::Hangup { session, message }));
        loop {
            let limit = PAUSE * 100;
            match self.bus.write_until(&subject, payload.clone(), &id, limit).await {
                Ok(_) => return Ok(()),
                Err(WriteError::Unknown) => {}
                Err(error @ (WriteError::Refused | WriteError::TooLarge)) => {
                    return Err(error.into());
                }
            }
        }
    }
}

/// What a request has come to: the words, and the jobs that it is about.
type Answer = Result<(String, Vec<Job>), Refused>;

const fn home(by: &Requester) -> Option<&Home> {
    match by {
        Requester::Person { home, .. } | Requester::Agent { home } => Some(home),
        Requester::Operator { home } => home.as_ref(),
    }
}

/// The place of the command in the log.
const fn place(by: &Requester) -> Option<Seq> {
    match by {
        Requester::Person { seq, .. } => Some(*seq),
        Requester::Agent { .. } | Requester::Operator { .. } => None,
    }
}

/// Whether a job can be made here: its answers must find someone, and jobs must not beget jobs.
fn has_place(home: &Home) -> Result<(), Refused> {
    if home.session.job().is_some() {
        return Err(Refused(
            "A scheduled job cannot make another one; do it from the chat.".into(),
        ));
    }
    if home.address.platform == API {
        let why = "The answers of a job cannot come back over the API. Make it in a chat, or on the command line with `talaria cron add`.";
        return Err(Refused(why.into()));
    }
    Ok(())
}

fn is_theirs(by: &Requester, job: &Job) -> Result<(), Refused> {
    let asks = match by {
        Requester::Person { home, .. } | Requester::Agent { home } => &home.user.id,
        Requester::Operator { .. } => return Ok(()),
    };
    if *asks == job.home.user.id {
        return Ok(());
    }
    let theirs = job.home.user.name.as_ref().unwrap_or(&job.home.user.id);
    Err(Refused(format!(
        "Job {} is {theirs}'s, and only they can change it. An operator can: talaria cron remove {}",
        job.id, job.id
    )))
}

fn unknown(which: &str) -> Refused {
    Refused(format!("There is no job {which:?} here. /cron lists them."))
}
