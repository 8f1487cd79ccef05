//! The settings as the core wants them.

use std::collections::BTreeMap;
use std::time::Duration;

use node::settings::{self, Limits, Settings, Span};
use proto::session::SessionKey;
use scheduler_core::{Edits, Policy, TimeoutSetting, Window};

/// What the operator chose: for most sessions, for the runs of jobs, and for the sessions of single platforms.
pub(crate) struct Policies {
    most: Policy,
    jobs: Policy,
    platforms: BTreeMap<String, Policy>,
}

impl Policies {
    pub(crate) fn new(settings: &Settings) -> Self {
        let pool = settings.agent.pool.get(&settings.worker.pool).copied().unwrap_or_default();
        let most = limited(of(settings), pool, TimeoutSetting::Pool);
        let platforms =
            settings.agent.platform.iter().map(|(name, limits)| {
                (name.clone(), limited(most, *limits, TimeoutSetting::Platform))
            });
        // Of the run of a job nothing is said while it goes on.
        let jobs = Policy {
            timeout: settings.cron.timeout.limit().map(ms),
            timeout_setting: TimeoutSetting::Cron,
            warning: None,
            notify: None,
            ..most
        };
        Self { most, jobs, platforms: platforms.collect() }
    }

    /// What applies to a session.
    pub(crate) fn of(&self, session: &SessionKey) -> &Policy {
        if session.job().is_some() {
            return &self.jobs;
        }
        let name = session.platform();
        let platform = name.split('/').next().unwrap_or_default();
        let found = self.platforms.get(name).or_else(|| self.platforms.get(platform));
        found.unwrap_or(&self.most)
    }
}

fn limited(policy: Policy, limits: Limits, setting: TimeoutSetting) -> Policy {
    let or = |wish: Option<Span>, before| wish.map_or(before, |wish| wish.limit().map(ms));
    Policy {
        timeout: or(limits.timeout, policy.timeout),
        timeout_setting: if limits.timeout.is_some() { setting } else { policy.timeout_setting },
        warning: or(limits.timeout_warning, policy.warning),
        notify: or(limits.notify_interval, policy.notify),
        ..policy
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The settings that apply to most sessions, in the core's terms.
fn of(settings: &Settings) -> Policy {
    let limit = |span: Span| span.limit().map(ms);
    let (scheduler, agent) = (&settings.scheduler, &settings.agent);
    Policy {
        busy_mode: agent.busy_mode,
        lease_ttl: ms(scheduler.lease_ttl.get()),
        stop_deadline: ms(scheduler.stop_deadline.get()),
        queue_limit: scheduler.queue_limit.max(1),
        interrupt_depth: scheduler.interrupt_depth,
        attempts: scheduler.attempts.max(1),
        timeout: limit(agent.timeout),
        setup: limit(agent.setup_timeout),
        warning: limit(agent.timeout_warning),
        notify: limit(agent.notify_interval),
        job_approve: settings.cron.approve,
        album: Window {
            quiet: ms(scheduler.album_quiet.get()),
            most: ms(scheduler.album_most.get()),
        },
        collect: Window {
            quiet: ms(scheduler.collect_quiet.get()),
            most: ms(scheduler.collect_most.get()),
        },
        stop_suspends: agent.stop_suspends,
        edits: match agent.edits {
            settings::Edits::Ignore => Edits::Ignore,
            settings::Edits::Steer => Edits::Steer,
            settings::Edits::Interrupt => Edits::Interrupt,
        },
        ..Policy::default()
    }
}

#[cfg(test)]
mod tests {
    use proto::session::{ChatKind, SessionParts};

    use super::*;

    fn key(platform: &str) -> SessionKey {
        let (kind, chat) = (ChatKind::Dm, "c");
        SessionKey::new(SessionParts { platform, kind, chat, thread: None, participant: None })
    }

    #[test]
    fn a_platform_goes_before_a_pool_and_that_before_the_rest() {
        let mut settings = Settings::default();
        let limits =
            |timeout| Limits { timeout: Some(Span::seconds(timeout)), ..Limits::default() };
        settings.agent.pool.insert("default".into(), limits(60));
        settings.agent.platform.insert("telegram".into(), limits(0));
        settings.agent.platform.insert("webhook/slow".into(), limits(7200));
        let policies = Policies::new(&settings);
        for (platform, timeout, setting) in [
            ("web", Some(60_000), TimeoutSetting::Pool),
            ("telegram", None, TimeoutSetting::Platform),
            ("webhook/slow", Some(7_200_000), TimeoutSetting::Platform),
            ("webhook/other", Some(60_000), TimeoutSetting::Pool),
        ] {
            let policy = policies.of(&key(platform));
            assert_eq!((policy.timeout, policy.timeout_setting), (timeout, setting), "{platform}");
            assert_eq!(policy.warning, Some(900_000));
        }
        assert_eq!(
            Policies::new(&Settings::default()).of(&key("web")).timeout_setting,
            TimeoutSetting::Agent
        );
    }
}
