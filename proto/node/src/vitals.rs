//! What every process shows of itself: its build, its memory and processor time, and its connection to the broker.

use prometheus::core::{Collector, Desc};
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntGauge, Registry, Result};

use crate::bus::Bus;
use crate::metric::Maker;

/// Registers it. `link` is read whenever the metrics are; without one, nothing is connected.
///
/// # Errors
/// When a name is not valid.
pub fn register(registry: &Registry, link: Option<Bus>) -> Result<()> {
    let make = Maker(registry);
    make.info(
        "talaria_build_info",
        "The version of the program that runs; always 1",
        &[("version", env!("CARGO_PKG_VERSION"))],
    )?;
    for collector in [
        Box::new(ProcessCollector::for_self()) as Box<dyn Collector>,
        Box::new(Link::new(link)?) as Box<dyn Collector>,
    ] {
        match registry.register(collector) {
            Ok(()) | Err(prometheus::Error::AlreadyReg) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The connection to the broker as two instruments.
struct Link {
    bus: Option<Bus>,
    connected: IntGauge,
    connects: IntCounter,
}

impl Link {
    fn new(bus: Option<Bus>) -> Result<Self> {
        Ok(Self {
            bus,
            connected: IntGauge::new(
                "talaria_broker_connected",
                "Whether this process has a connection to the broker at the moment: 1 or 0",
            )?,
            connects: IntCounter::new(
                "talaria_broker_connects_total",
                "Connections to the broker that this process has made; more than one means that it had lost one",
            )?,
        })
    }
}

impl Collector for Link {
    fn desc(&self) -> Vec<&Desc> {
        self.connected.desc().into_iter().chain(self.connects.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        if let Some(bus) = &self.bus {
            self.connected.set(i64::from(bus.is_connected()));
            let more = bus.connects().borrow().saturating_sub(self.connects.get());
            self.connects.inc_by(more);
        }
        self.connected.collect().into_iter().chain(self.connects.collect()).collect()
    }
}
