//! Schedules: read from what people type, and the times that follow from them.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::{DateTime, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Span, SpanRelativeTo, Timestamp, Zoned};
use proto::job::When;

/// How one writes a schedule, for errors.
const FORMS: &str =
    "Write for example `0 9 * * 1-5`, `@daily`, `@every 10m`, `in 20m` or `at 2026-12-24 18:00`.";
/// How many words a duration may have: `1 hour 30 minutes`.
const DURATION_WORDS: usize = 4;
/// How many words a cron expression has.
const CRON_WORDS: usize = 5;

/// What is read: when, in which zone, and what stood behind it.
pub(super) type Read<'a> = (When, String, &'a str);

/// Reads a schedule at the beginning of a text. `zone` is the one that applies unless the text names another (`tz=Europe/Berlin`,
/// before or behind the schedule); `now_ms` is the time of day from which relative times count.
///
/// # Errors
/// What is wrong, and what to write instead.
pub fn read_schedule<'a>(text: &'a str, zone: &str, now_ms: u64) -> Result<Read<'a>, String> {
    let (named, text) = zone_option(text);
    // The zone may stand behind the schedule, and an `at` needs it to be read.
    let behind = if named.is_none() { zone_behind(text) } else { None };
    let name = named.or(behind).unwrap_or(zone);
    let zone = zone_named(name)?;
    let (word, rest) = word(text);
    let (when, rest) = match word.to_ascii_lowercase().as_str() {
        "" => return Err(format!("When? {FORMS}")),
        "@every" | "every" => {
            let (period_ms, rest) = duration(rest)?;
            (When::Every { period_ms }, rest)
        }
        "in" | "@in" => {
            let (ms, rest) = duration(rest)?;
            (When::At { at_ms: now_ms.saturating_add(ms) }, rest)
        }
        "at" | "@at" => {
            let (at_ms, rest) = moment(rest, &zone, now_ms)?;
            (When::At { at_ms }, rest)
        }
        _ => {
            let (expression, rest) = expression(text)?;
            (When::Cron { expression: expression.to_owned() }, rest)
        }
    };
    let rest = if behind.is_some() { zone_option(rest).1 } else { rest };
    let name = zone.iana_name().unwrap_or("UTC").to_owned();
    Ok((when, name, rest.trim()))
}

/// The first time of a schedule after a moment; none when there is no further one. `made_ms` is where equal steps begin.
#[must_use]
pub fn next_after(when: &When, zone: &str, made_ms: u64, after_ms: u64) -> Option<u64> {
    match when {
        When::At { at_ms } => (*at_ms > after_ms).then_some(*at_ms),
        When::Every { period_ms } => {
            let period = (*period_ms).max(1);
            let steps = after_ms.saturating_sub(made_ms) / period + 1;
            made_ms.checked_add(period.checked_mul(steps)?)
        }
        When::Cron { expression } => {
            let cron = parse(expression).ok()?;
            let after = zoned(after_ms, &zone_named(zone).ok()?)?;
            let next = cron.find_next_occurrence(&after, false).ok()?;
            u64::try_from(next.timestamp().as_millisecond()).ok().filter(|next| *next > after_ms)
        }
    }
}

/// Whether there is a time zone of that name.
#[must_use]
pub fn has_zone(name: &str) -> bool {
    zone_named(name).is_ok()
}

/// A moment as a wall clock in a zone shows it.
#[must_use]
pub fn local(ms: u64, zone: &str) -> String {
    let zone = zone_named(zone).unwrap_or(TimeZone::UTC);
    zoned(ms, &zone)
        .map_or_else(|| format!("{ms} ms"), |at| at.strftime("%Y-%m-%d %H:%M %Z").to_string())
}

/// A moment in whole seconds: schedules know nothing finer.
fn zoned(ms: u64, zone: &TimeZone) -> Option<Zoned> {
    let seconds = i64::try_from(ms / 1000).ok()?;
    Some(Timestamp::from_second(seconds).ok()?.to_zoned(zone.clone()))
}

fn zone_named(name: &str) -> Result<TimeZone, String> {
    // Not the system's: two schedulers with different ones would disagree on when a job is due.
    TimeZoneDatabase::bundled().get(name).map_err(|_| {
        format!(
            "There is no time zone {name:?}. Write one like Europe/Berlin, America/New_York or UTC."
        )
    })
}

/// `tz=Europe/Berlin` at the beginning.
fn zone_option(text: &str) -> (Option<&str>, &str) {
    let (word, rest) = word(text);
    match zone_of(word) {
        Some(zone) => (Some(zone), rest),
        None => (None, text.trim_start()),
    }
}

/// The same somewhere among the first words.
fn zone_behind(text: &str) -> Option<&str> {
    text.split_whitespace().take(CRON_WORDS + 2).find_map(zone_of)
}

fn zone_of(word: &str) -> Option<&str> {
    let (key, zone) = word.split_once('=')?;
    ["tz", "cron_tz", "zone"].iter().any(|name| key.eq_ignore_ascii_case(name)).then_some(zone)
}

fn parse(expression: &str) -> Result<Cron, String> {
    CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build()
        .parse(expression)
        .map_err(|error| error.to_string())
}

/// A cron expression: in quotes, a nickname, or five words.
fn expression(text: &str) -> Result<(&str, &str), String> {
    let quoted = text.strip_prefix(['"', '\'', '`']);
    let (found, rest) = if let Some(quoted) = quoted {
        quoted.split_once(['"', '\'', '`']).ok_or("A quote is not closed.")?
    } else if text.starts_with('@') {
        word(text)
    } else {
        words(text, CRON_WORDS).ok_or_else(|| {
            format!("{text:?} is not a schedule: a cron expression has five fields. {FORMS}")
        })?
    };
    match parse(found) {
        Ok(_) => Ok((found, rest)),
        Err(error) => Err(format!("{found:?} is not a schedule: {error} {FORMS}")),
    }
}

/// A duration: the most words that make one.
fn duration(text: &str) -> Result<(u64, &str), String> {
    for count in (1..=DURATION_WORDS).rev() {
        let Some((found, rest)) = words(text, count) else { continue };
        let Ok(span) = found.parse::<Span>() else { continue };
        let length = span.to_duration(SpanRelativeTo::days_are_24_hours());
        let ms = length.ok().and_then(|length| u64::try_from(length.as_millis()).ok());
        if let Some(ms) = ms.filter(|ms| *ms > 0) {
            return Ok((ms, rest));
        }
    }
    let (word, _) = word(text);
    Err(format!("{word:?} is not a duration; write for example 90s, 20m, 2h or 3d."))
}

/// A moment: `2026-12-24T18:00Z`, `2026-12-24 18:00` by the wall clock of the zone, or `18:00`, today or else tomorrow.
fn moment<'a>(text: &'a str, zone: &TimeZone, now_ms: u64) -> Result<(u64, &'a str), String> {
    let wrong = |word: &str| {
        format!(
            "{word:?} is not a time; write for example `at 18:00`, `at 2026-12-24 18:00` or `at 2026-12-24T18:00:00Z`."
        )
    };
    for count in [2, 1] {
        let Some((found, rest)) = words(text, count) else { continue };
        let instant = found.parse::<Timestamp>().ok();
        let at = instant.or_else(|| {
            let civil = found.parse::<DateTime>().ok().filter(|_| found.contains(':'))?;
            Some(civil.to_zoned(zone.clone()).ok()?.timestamp())
        });
        let at = at.or_else(|| clock(found, zone, now_ms));
        if let Some(at) = at {
            let ms = u64::try_from(at.as_millisecond()).map_err(|_| wrong(found))?;
            return Ok((ms, rest));
        }
    }
    Err(wrong(word(text).0))
}

/// The next time at which a clock shows this.
fn clock(text: &str, zone: &TimeZone, now_ms: u64) -> Option<Timestamp> {
    let padded = if text.find(':') == Some(1) { format!("0{text}") } else { text.to_owned() };
    let time: Time = padded.parse().ok().filter(|_| padded.contains(':'))?;
    let now = zoned(now_ms, zone)?;
    let today = now.date().to_datetime(time).to_zoned(zone.clone()).ok()?;
    if today > now {
        return Some(today.timestamp());
    }
    let tomorrow = now.date().tomorrow().ok()?;
    Some(tomorrow.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp())
}

/// The first word, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// The first words as they stand, and what follows them.
fn words(text: &str, count: usize) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let mut rest = text;
    for _ in 0..count {
        let (word, behind) = word(rest);
        if word.is_empty() {
            return None;
        }
        rest = behind;
    }
    let found = text[..text.len() - rest.len()].trim_end();
    Some((found, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-30T22:00:00Z
    const NOW: u64 = 1_796_076_000_000;

    fn read(text: &str) -> Result<(When, String, String), String> {
        read_schedule(text, "UTC", NOW).map(|(when, zone, rest)| (when, zone, rest.to_owned()))
    }

    fn cron(expression: &str) -> When {
        When::Cron { expression: expression.into() }
    }

    #[test]
    fn schedules_are_read_in_all_their_forms() {
        assert_eq!(local(NOW, "UTC"), "2026-11-30 22:00 UTC");
        let at = |ms| When::At { at_ms: NOW + ms };
        let every = |period_ms| When::Every { period_ms };
        let minute = 60_000;
        for (text, when, rest) in [
            ("0 9 * * 1-5 look at the mail", cron("0 9 * * 1-5"), "look at the mail"),
            ("\"*/5 * * * *\" 5 things", cron("*/5 * * * *"), "5 things"),
            ("0 9 * * MON-FRI  x", cron("0 9 * * MON-FRI"), "x"),
            ("@daily report", cron("@daily"), "report"),
            ("@every 10m ping", every(10 * minute), "ping"),
            ("every 2 hours ping 3 hosts", every(120 * minute), "ping 3 hosts"),
            ("every 1h 30m ping", every(90 * minute), "ping"),
            ("in 20m say hello", at(20 * minute), "say hello"),
            ("in 20 minutes say hello", at(20 * minute), "say hello"),
            ("IN 1d x", at(24 * 60 * minute), "x"),
            ("at 23:00 sleep", at(60 * minute), "sleep"),
            ("at 9:00 wake", at(11 * 60 * minute), "wake"),
            ("at 2026-12-01 00:00 x", at(120 * minute), "x"),
            ("at 2026-12-01T00:00:00Z x", at(120 * minute), "x"),
            ("at 2026-12-01T01:00:00+01:00 x", at(120 * minute), "x"),
        ] {
            assert_eq!(read(text), Ok((when, "UTC".into(), rest.into())), "{text}");
        }
    }

    #[test]
    fn a_zone_is_named_before_or_behind_and_applies() {
        let midnight = When::At { at_ms: NOW + 3_600_000 };
        for text in ["tz=Europe/Berlin at 00:00 x", "at 00:00 TZ=europe/berlin x"] {
            assert_eq!(read(text), Ok((midnight.clone(), "Europe/Berlin".into(), "x".into())));
        }
        let noon = read("0 12 * * * tz=Asia/Kolkata x").unwrap();
        assert_eq!(noon, (cron("0 12 * * *"), "Asia/Kolkata".into(), "x".into()));
        let next = next_after(&noon.0, &noon.1, 0, NOW).unwrap();
        assert_eq!(local(next, "UTC"), "2026-12-01 06:30 UTC");
    }

    #[test]
    fn what_is_no_schedule_is_an_error_that_says_what_to_write() {
        for (text, part) in [
            ("", "When?"),
            ("0 9 * *", "five fields"),
            ("61 9 * * * x", "is not a schedule"),
            ("* * * * * * x", ""),
            ("@sometimes x", "is not a schedule"),
            ("every now and then", "not a duration"),
            ("in a while", "not a duration"),
            ("in 0s x", "not a duration"),
            ("in -5m x", "not a duration"),
            ("at noon x", "not a time"),
            ("at 25:00 x", "not a time"),
            ("\"0 9 * * *", "not closed"),
            ("tz=Mars/Olympus @daily x", "no time zone"),
            ("tomorrow", "five fields"),
        ] {
            match read(text) {
                Err(error) => assert!(error.contains(part), "{text}: {error}"),
                // Five stars and a sixth that is already words.
                Ok((_, _, rest)) => assert_eq!((part, rest.as_str()), ("", "* x"), "{text}"),
            }
        }
    }

    #[test]
    fn equal_steps_count_from_the_beginning_and_once_is_once() {
        let every = When::Every { period_ms: 600 };
        assert_eq!(next_after(&every, "UTC", 1000, 1000), Some(1600));
        assert_eq!(next_after(&every, "UTC", 1000, 1599), Some(1600));
        assert_eq!(next_after(&every, "UTC", 1000, 1600), Some(2200));
        assert_eq!(next_after(&every, "UTC", 1000, 500), Some(1600));
        assert_eq!(next_after(&every, "UTC", u64::MAX - 5, u64::MAX - 5), None);
        let once = When::At { at_ms: 5 };
        assert_eq!(next_after(&once, "UTC", 0, 4), Some(5));
        assert_eq!(next_after(&once, "UTC", 0, 5), None);
        assert_eq!(
            next_after(&cron("0 0 30 2 *"), "UTC", 0, NOW),
            None,
            "there is no 30th of February"
        );
    }
}
