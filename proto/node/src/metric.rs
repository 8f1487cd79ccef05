//! Making instruments: each is registered as it is made, and every label value exists from the start, at 0.

use prometheus::core::{Atomic, Collector, GenericCounter, GenericCounterVec};
use prometheus::{
    Counter, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, Result,
};

/// A label, and all values that it can have: few, and never an id.
pub type Label<'a> = (&'a str, &'a [&'a str]);

/// Makes instruments in one registry. A name that is taken already (two services of one kind in one process) keeps its first
/// instrument; the second one then counts unseen.
#[derive(Clone, Copy, Debug)]
pub struct Maker<'a>(pub &'a Registry);

impl Maker<'_> {
    /// Counts one thing.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn counter(self, name: &str, help: &str) -> Result<IntCounter> {
        self.made(IntCounter::new(name, help)?)
    }

    /// Sums up something that is not a whole number.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn sum(self, name: &str, help: &str) -> Result<Counter> {
        self.made(Counter::new(name, help)?)
    }

    /// Counts one thing by a label.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn counters(
        self,
        name: &str,
        help: &str,
        label: &str,
        values: &[&str],
    ) -> Result<IntCounterVec> {
        self.tally(name, help, &[(label, values)])
    }

    /// Counts one thing by several labels; every combination exists.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn tally(self, name: &str, help: &str, labels: &[Label<'_>]) -> Result<IntCounterVec> {
        let vec = IntCounterVec::new(Opts::new(name, help), &names(labels))?;
        for values in combinations(labels) {
            touch(&vec, &values)?;
        }
        self.made(vec)
    }

    /// Shows how many of something there are.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn gauge(self, name: &str, help: &str) -> Result<IntGauge> {
        self.made(IntGauge::new(name, help)?)
    }

    /// Shows how many of something there are by labels; every combination exists.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn gauges(self, name: &str, help: &str, labels: &[Label<'_>]) -> Result<IntGaugeVec> {
        let vec = IntGaugeVec::new(Opts::new(name, help), &names(labels))?;
        for values in combinations(labels) {
            vec.get_metric_with_label_values(&values)?;
        }
        self.made(vec)
    }

    /// Shows something that never changes, in labels; its value is 1.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn info(self, name: &str, help: &str, labels: &[(&str, &str)]) -> Result<()> {
        let (names, values): (Vec<_>, Vec<_>) = labels.iter().copied().unzip();
        let vec = GaugeVec::new(Opts::new(name, help), &names)?;
        vec.get_metric_with_label_values(&values)?.set(1.0);
        self.made(vec).map(drop)
    }

    /// Shows how something is distributed over buckets with these upper bounds.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn histogram(self, name: &str, help: &str, buckets: Vec<f64>) -> Result<Histogram> {
        self.made(Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets))?)
    }

    /// The same by a label.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn histograms(
        self,
        name: &str,
        help: &str,
        buckets: Vec<f64>,
        label: &str,
        values: &[&str],
    ) -> Result<HistogramVec> {
        let vec = HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), &[label])?;
        for value in values {
            vec.get_metric_with_label_values(&[*value])?;
        }
        self.made(vec)
    }

    /// Registers something that was made elsewhere.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn made<C: Collector + Clone + 'static>(self, collector: C) -> Result<C> {
        match self.0.register(Box::new(collector.clone())) {
            Ok(()) | Err(prometheus::Error::AlreadyReg) => Ok(collector),
            Err(error) => Err(error),
        }
    }
}

fn touch<P: Atomic>(vec: &GenericCounterVec<P>, values: &[&str]) -> Result<()> {
    vec.get_metric_with_label_values(values).map(drop::<GenericCounter<P>>)
}

fn names<'a>(labels: &[Label<'a>]) -> Vec<&'a str> {
    labels.iter().map(|(name, _)| *name).collect()
}

/// Each way to choose one value for each label.
fn combinations<'a>(labels: &[Label<'a>]) -> Vec<Vec<&'a str>> {
    let mut all = vec![Vec::new()];
    for (_, values) in labels {
        let longer = |begun: &Vec<&'a str>| {
            let begun = begun.clone();
            values.iter().map(move |value| [begun.as_slice(), &[*value]].concat())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Upper bounds from `from` on, each twice the one before: `count` of them. Seconds, bytes or numbers of things.
///
/// # Errors
/// When `from` is not above 0, or `count` is 0.
pub fn doubling(from: f64, count: usize) -> Result<Vec<f64>> {
    prometheus::exponential_buckets(from, 2.0, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_label_values_exists_from_the_start() {
        let registry = Registry::new();
        let make = Maker(&registry);
        make.tally("t_total", "T", &[("a", &["1", "2"]), ("b", &["x", "y", "z"])]).unwrap();
        make.info("i", "I", &[("version", "1")]).unwrap();
        let families = registry.gather();
        assert_eq!(families[1].get_metric().len(), 6);
        assert_eq!(families[0].get_metric()[0].get_label()[0].value(), "1");
    }

    #[test]
    fn a_second_service_of_a_kind_in_one_process_counts_unseen() {
        let registry = Registry::new();
        let first = Maker(&registry).counter("c_total", "C").unwrap();
        Maker(&registry).counter("c_total", "C").unwrap().inc();
        assert_eq!((first.get(), registry.gather().len()), (0, 1));
    }
}
