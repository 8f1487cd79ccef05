//! The streams and buckets on the broker: created by whoever starts first, or by `talaria init` where services may not, and
//! compared by everyone else. What exists is never changed silently: a difference is an error that says what to do.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::kv;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, RetentionPolicy, StorageType};
use proto::subject;
use proto::topology::{self, BucketSpec, PARTITIONS, Retention, StreamSpec};

use crate::bus::Bus;
use crate::settings::Streams;

/// How long a bucket keeps the mark of an expired key.
const MARKER_TTL: Duration = Duration::from_secs(60);
/// How often creating is tried before an unwilling broker is an error.
const TRIES: u32 = 10;
/// How long a service that may not create streams waits for whoever does.
const WAIT: Duration = Duration::from_secs(60);

/// Streams that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// What exists is not what the settings say.
    #[error(
        "{name} exists with {field} = {found}, but the settings say {wanted}; set {setting} = {found}, or change it on the \
         broker with `nats stream edit`"
    )]
    Mismatch {
        /// The stream or bucket.
        name: &'static str,
        /// What differs.
        field: &'static str,
        /// What it is.
        found: String,
        /// What was expected.
        wanted: String,
        /// The setting that decides it.
        setting: &'static str,
    },
    /// It is not there, and we are not to create it.
    #[error(
        "{name} does not exist, and streams.create is off; run `talaria init` as a user who may create it"
    )]
    Missing {
        /// The stream or bucket.
        name: &'static str,
    },
    /// It can neither be created nor read.
    #[error(
        "cannot create or read the stream {name}; is JetStream on, are there {replicas} servers, and may this user do it?"
    )]
    Unusable {
        /// The stream or bucket.
        name: &'static str,
        /// How many replicas were asked for.
        replicas: usize,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Creates what is missing, compares what exists, and returns the bus with the partition count that the streams have.
///
/// # Errors
/// When something that exists differs from the settings, or the broker cannot create it.
pub async fn ensure(bus: Bus, settings: &Streams) -> Result<Bus, TopologyError> {
    let mut partitions = settings.partitions;
    for spec in topology::streams(settings.retentions()) {
        let info = stream(&bus, &spec, settings).await?;
        if spec.name == topology::INBOX {
            partitions = check_partitions(&info, settings)?;
        }
    }
    for spec in topology::buckets(settings.retentions()) {
        bucket(&bus, &spec, settings).await?;
    }
    Ok(bus.with_partitions(partitions))
}

/// Compares what exists and creates nothing. Returns the state of every stream, those under the buckets included.
///
/// # Errors
/// When something is missing, or differs from the settings.
pub async fn inspect(bus: &Bus, settings: &Streams) -> Result<Vec<Info>, TopologyError> {
    let read = async |name: &'static str, stream: String| {
        let unusable =
            |source| TopologyError::Unusable { name, replicas: settings.replicas, source };
        let found = bus.stream().get_stream(stream).await;
        found.map(|found| found.cached_info().clone()).map_err(|error| unusable(error.into()))
    };
    let mut infos = Vec::new();
    for spec in topology::streams(settings.retentions()) {
        let info = read(spec.name, spec.name.to_owned()).await?;
        if spec.name == topology::INBOX {
            check_partitions(&info, settings)?;
        }
        differences(&info, &spec, settings)?;
        infos.push(info);
    }
    for spec in topology::buckets(settings.retentions()) {
        let info = read(spec.name, format!("KV_{}", spec.name)).await?;
        let compare = Compare { name: spec.name };
        let found = &info.config.num_replicas;
        compare.check("replicas", found, &settings.replicas, "streams.replicas")?;
        infos.push(info);
    }
    Ok(infos)
}

async fn stream(bus: &Bus, spec: &StreamSpec, settings: &Streams) -> Result<Info, TopologyError> {
    let work_queue = spec.retention == Retention::WorkQueue;
    let config = Config {
        name: spec.name.to_owned(),
        subjects: vec![spec.subjects.to_owned()],
        retention: if work_queue { RetentionPolicy::WorkQueue } else { RetentionPolicy::Limits },
        max_age: spec.max_age,
        max_messages_per_subject: spec.per_subject.unwrap_or(-1),
        // Full means refused, so that back-pressure reaches the platform; the newest order of a session replaces an older one.
        discard: if spec.per_subject.is_some() { DiscardPolicy::Old } else { DiscardPolicy::New },
        duplicate_window: spec.duplicate_window,
        storage: StorageType::File,
        num_replicas: settings.replicas,
        allow_direct: true,
        metadata: HashMap::from([(PARTITIONS.to_owned(), settings.partitions.to_string())]),
        ..Config::default()
    };
    let create = || async { bus.stream().create_stream(config.clone()).await.map(|_| ()) };
    let info = find_or_create(bus, spec.name, spec.name, settings, create).await?;
    differences(&info, spec, settings)?;
    Ok(info)
}

fn differences(info: &Info, spec: &StreamSpec, settings: &Streams) -> Result<(), TopologyError> {
    let found = &info.config;
    let compare = Compare { name: spec.name };
    compare.check("replicas", &found.num_replicas, &settings.replicas, "streams.replicas")?;
    let ages = [
        ("max_age", found.max_age, spec.max_age, age_setting(spec.name)),
        (
            "duplicate_window",
            found.duplicate_window,
            spec.duplicate_window,
            "streams.duplicate_window",
        ),
    ];
    for (field, found, wanted, setting) in ages {
        let text = |age| humantime::format_duration(age).to_string();
        compare.check(field, &text(found), &text(wanted), setting)?;
    }
    Ok(())
}

async fn bucket(bus: &Bus, spec: &BucketSpec, settings: &Streams) -> Result<(), TopologyError> {
    let config = kv::Config {
        bucket: spec.name.to_owned(),
        history: 1,
        max_age: spec.max_age,
        storage: StorageType::File,
        num_replicas: settings.replicas,
        limit_markers: spec.key_ttl.then_some(MARKER_TTL),
        ..kv::Config::default()
    };
    let create = || async { bus.stream().create_key_value(config.clone()).await.map(|_| ()) };
    let stream = subject::bucket_stream(spec.name);
    let found = find_or_create(bus, spec.name, &stream, settings, create).await?.config;
    Compare { name: spec.name }.check(
        "replicas",
        &found.num_replicas,
        &settings.replicas,
        "streams.replicas",
    )
}

/// Reads what the broker says of a stream; if there is none, creates it or waits for whoever does, as the settings say.
async fn find_or_create<F, E>(
    bus: &Bus,
    name: &'static str,
    stream: &str,
    settings: &Streams,
    create: impl Fn() -> F,
) -> Result<Info, TopologyError>
where
    F: Future<Output = Result<(), E>>,
    E: std::error::Error + Send + Sync + 'static,
{
    let (mut tries, begun, mut told) = (0, Instant::now(), false);
    loop {
        match bus.stream().get_stream(stream).await {
            Ok(stream) => return Ok(stream.cached_info().clone()),
            Err(error) if !is_missing(&error.kind()) => {
                retry(&mut tries, name, settings, error.into()).await?;
            }
            Err(_) if settings.create => {
                // Someone else may have been faster, with the same or with another configuration: it is read back.
                if let Err(error) = create().await {
                    retry(&mut tries, name, settings, error.into()).await?;
                }
            }
            Err(_) if begun.elapsed() > WAIT => return Err(TopologyError::Missing { name }),
            Err(_) => {
                if !std::mem::replace(&mut told, true) {
                    tracing::info!(name, "waiting for `talaria init` to create the streams");
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

/// A fresh cluster may need a moment before it can create streams.
async fn retry(
    tries: &mut u32,
    name: &'static str,
    settings: &Streams,
    source: Box<dyn std::error::Error + Send + Sync>,
) -> Result<(), TopologyError> {
    *tries += 1;
    if *tries >= TRIES {
        return Err(TopologyError::Unusable { name, replicas: settings.replicas, source });
    }
    tokio::time::sleep(Duration::from_millis(100) * *tries).await;
    Ok(())
}

fn check_partitions(info: &Info, settings: &Streams) -> Result<u16, TopologyError> {
    let found =
        info.config.metadata.get(PARTITIONS).and_then(|text| text.parse().ok()).unwrap_or(0);
    Compare { name: topology::INBOX }.check(
        "partitions",
        &found,
        &settings.partitions,
        "streams.partitions",
    )?;
    Ok(found)
}

const fn age_setting(name: &str) -> &'static str {
    match name.as_bytes() {
        b"EVENTS" => "streams.events_retention",
        _ => "streams.inbox_retention",
    }
}

struct Compare {
    name: &'static str,
}

impl Compare {
    fn check<T: PartialEq + ToString>(
        &self,
        field: &'static str,
        found: &T,
        wanted: &T,
        setting: &'static str,
    ) -> Result<(), TopologyError> {
        if found == wanted {
            return Ok(());
        }
        let (found, wanted) = (found.to_string(), wanted.to_string());
        Err(TopologyError::Mismatch { name: self.name, field, found, wanted, setting })
    }
}
