//! `cron`: what is to be done at set times. A scheduler keeps the jobs and carries the call out; each run of a job is a turn of
//! its own, whose answer comes to the chat.

use node::clock::wall_ms;
use proto::job::{Home, JobAction, JobChange, JobReply, JobRequest, Requester};
use proto::subject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::work::Work;
use super::object;
use crate::fence::Lost;
use crate::tools::{Output, arguments};

/// How often a scheduler is asked that does not answer.
const TRIES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Add,
    Remove,
    Pause,
    Resume,
    Run,
    Stop,
}

#[derive(Deserialize)]
struct Call {
    action: Action,
    #[serde(default)]
    schedule: Option<String>,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    timezone: Option<String>,
    #[serde(default)]
    job: Option<String>,
}

pub(super) fn schema() -> (&'static str, Value) {
    let actions = ["list", "add", "remove", "pause", "resume", "run", "stop"];
    let when = "when it runs: a cron expression of five fields (`0 9 * * 1-5`), `@daily`, `every 10m`, or once: `in 20m`, \
                `at 18:00`, `at 2026-12-24 18:00`";
    let prompt = "for add: what you are to do at each run. You will not know this conversation then, so it must be complete in \
                  itself";
    let properties = json!({
        "action": { "type": "string", "enum": actions },
        "schedule": { "type": "string", "description": when },
        "prompt": { "type": "string", "description": prompt },
        "name": { "type": "string", "description": "for add: what people call it" },
        "timezone": { "type": "string", "description": "for add: the person's, as Europe/Berlin" },
        "job": { "type": "string", "description": "the id or name of the job, for all but list and add" },
    });
    let about = "Reminders and repeated work: makes, lists and changes the scheduled jobs of this chat. Each run is a turn of its \
                 own, whose answer comes to this chat.";
    (about, object(&["action"], properties))
}

impl Call {
    /// What is wanted; the error is for the model.
    fn wanted(self) -> Result<JobAction, &'static str> {
        let change = match self.action {
            Action::List => return Ok(JobAction::List),
            Action::Add => {
                return Ok(JobAction::Add {
                    schedule: self.schedule.ok_or("when? give it as `schedule`")?,
                    prompt: self.prompt.ok_or("what is to be done? give it as `prompt`")?,
                    name: self.name,
                    zone: self.timezone,
                });
            }
            Action::Remove => JobChange::Remove,
            Action::Pause => JobChange::Pause,
            Action::Resume => JobChange::Resume,
            Action::Run => JobChange::Run,
            Action::Stop => JobChange::Stop,
        };
        let job = self.job.ok_or("which job? give its id as `job`; `list` shows them")?;
        Ok(JobAction::Change { job, change })
    }
}

impl Work<'_> {
    /// Has a scheduler carry out what is wanted.
    pub(super) async fn cron(&self, call: &Value) -> Output {
        let wanted = match arguments::<Call>(call).map(Call::wanted) {
            Ok(Ok(wanted)) => wanted,
            Ok(Err(why)) => return Output::failed(why),
            Err(output) => return output,
        };
        match self.ask_scheduler(wanted).await {
            Ok(Ok(JobReply { done: true, text, .. })) => Output::done(text),
            Ok(Ok(JobReply { text, .. }) | Err(text)) => Output::failed(text),
            Err(lost) => Output::failed(lost),
        }
    }

    async fn ask_scheduler(&self, action: JobAction) -> Result<Result<JobReply, String>, Lost> {
        let turn = self.turn;
        let mut speaker = None;
        if let Some(seq) = turn.order.inputs.last() {
            speaker = turn.input(*seq).await?;
        }
        let Some(speaker) = speaker else { return Ok(Err("no one speaks".into())) };
        let home = Home {
            session: turn.order.session.clone(),
            address: turn.order.address.clone(),
            user: speaker.user,
            admission: speaker.admission,
        };
        // One name for all tries: what an unheard try has done is not done again.
        let request = format!("{:032x}", u128::from_be_bytes(node::process::random()));
        let request =
            JobRequest { by: Requester::Agent { home }, request, at_ms: wall_ms(), action };
        let mut why = String::new();
        for _ in 0..TRIES {
            turn.fence.check()?;
            let asked = turn.shared.node.bus.ask(subject::job_desk().to_owned(), &request);
            match asked.await {
                Ok(reply) => return Ok(Ok(reply)),
                Err(error) => why = error.to_string(),
            }
        }
        Ok(Err(format!(
            "no scheduler took it ({why}); whether it was done is not known: list them later"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let wanted = |call: Value| arguments::<Call>(&call).unwrap().wanted();
        assert_eq!(wanted(json!({ "action": "list" })), Ok(JobAction::List));
        for (call, part) in [
            (json!({ "action": "add", "prompt": "x" }), "`schedule`"),
            (json!({ "action": "add", "schedule": "@daily" }), "`prompt`"),
            (json!({ "action": "remove" }), "`job`"),
        ] {
            assert!(wanted(call.clone()).unwrap_err().contains(part), "{call}");
        }
        assert!(arguments::<Call>(&json!({ "action": "explode" })).is_err());
    }
}
