//! The times of cron expressions, by the wall clocks of many zones.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;
use proto::job::When;
use scheduler_core::jobs::next_after;

use crate::{BEGIN, HOUR, MINUTE};

/// Zones that change their clocks: by an hour, by half an hour, at night, at midnight, in the south; and some that do not.
const ZONES: [&str; 9] = [
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Kolkata",
    "UTC",
];

fn cron(expression: &str) -> When {
    When::Cron { expression: expression.into() }
}

/// The times between two moments.
fn times(when: &When, zone: &str, from: u64, to: u64) -> Vec<u64> {
    let next = |last: &u64| next_after(when, zone, BEGIN, *last);
    std::iter::successors(next(&from), next).take_while(|at| *at <= to).collect()
}

fn day(ms: u64, zone: &str) -> Date {
    let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
    Timestamp::from_millisecond(ms.cast_signed()).unwrap().to_zoned(zone).date()
}

fn utc(text: &str) -> u64 {
    text.parse::<Timestamp>().unwrap().as_millisecond().cast_unsigned()
}

#[test]
fn a_time_that_the_clock_leaves_out_runs_once_after_the_gap_and_one_that_it_repeats_runs_once() {
    let at = cron("30 2 * * *");
    let spring =
        times(&at, "Europe/Berlin", utc("2026-03-28T12:00:00Z"), utc("2026-03-30T12:00:00Z"));
    // 02:00 to 03:00 does not exist on the 29th.
    assert_eq!(spring, [utc("2026-03-29T01:00:00Z"), utc("2026-03-30T00:30:00Z")]);
    let autumn =
        times(&at, "Europe/Berlin", utc("2026-10-24T12:00:00Z"), utc("2026-10-26T12:00:00Z"));
    // 02:30 comes twice on the 25th.
    assert_eq!(autumn, [utc("2026-10-25T00:30:00Z"), utc("2026-10-26T01:30:00Z")]);
    let hourly = times(
        &cron("0 * * * *"),
        "Europe/Berlin",
        utc("2026-10-24T23:30:00Z"),
        utc("2026-10-25T03:30:00Z"),
    );
    assert_eq!(
        hourly.len(),
        4,
        "every hour that passes has its run, also the one that the clock repeats"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_daily_job_runs_exactly_once_each_day_in_every_zone(
        zone in prop::sample::select(&ZONES[..]), hour in 0..24_u64, minute in 0..60_u64,
    ) {
        let when = cron(&format!("{minute} {hour} * * *"));
        let found = times(&when, zone, BEGIN, BEGIN + 400 * 24 * HOUR);
        prop_assert!(found.len() >= 399, "{} of 400 days", found.len());
        let days: Vec<_> = found.iter().map(|at| day(*at, zone)).collect();
        for pair in days.windows(2) {
            prop_assert_eq!(pair[0].tomorrow().unwrap(), pair[1], "in {}", zone);
        }
    }

    #[test]
    fn an_hourly_job_runs_every_hour_where_clocks_change_by_hours(
        zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "America/Santiago", "Africa/Cairo"]),
        start in 0..365_u64,
    ) {
        let from = BEGIN + start * 24 * HOUR;
        let found = times(&cron("0 * * * *"), zone, from, from + 10 * 24 * HOUR);
        prop_assert!(found.windows(2).all(|pair| pair[1] - pair[0] == HOUR), "{:?}", found);
    }

    #[test]
    fn the_next_time_is_the_same_from_every_moment_before_it(
        zone in prop::sample::select(&ZONES[..]),
        expression in prop::sample::select(vec!["*/7 * * * *", "15 1-4 * * *", "0 0 * * MON", "30 2 1,15 * *", "0 12 L * *", "0 9 * * 5#2"]),
        minutes in 0..(2 * 365 * 24 * 60_u64), share in 0.0..1.0_f64,
    ) {
        let when = cron(expression);
        let from = BEGIN + minutes * MINUTE + 123;
        let next = next_after(&when, zone, BEGIN, from).unwrap();
        prop_assert!(next > from);
        prop_assert_eq!(next % 1000, 0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a share of it")]
        let between = from + ((next - from - 1) as f64 * share) as u64;
        prop_assert_eq!(next_after(&when, zone, BEGIN, between), Some(next));
    }
}
