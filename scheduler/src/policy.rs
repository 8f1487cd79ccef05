//! The settings as the core wants them.

use std::time::Duration;

use node::settings::{self, Settings, Span};
use scheduler_core::{Edits, Policy, Window};

/// What the operator chose, in the core's terms.
pub(crate) fn of(settings: &Settings) -> Policy {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
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
        warning: limit(agent.timeout_warning),
        notify: limit(agent.notify_interval),
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
