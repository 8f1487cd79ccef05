//! Making instruments: each is registered as it is made, and every label value exists from the start, at 0.

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
    Result,
};

/// Makes instruments in one registry.
#[derive(Clone, Copy, Debug)]
pub struct Maker<'a>(pub &'a Registry);

impl Maker<'_> {
    /// Counts one thing.
    ///
    /// # Errors
    /// When the name is not valid or already taken.
    pub fn counter(self, name: &str, help: &str) -> Result<IntCounter> {
        let counter = IntCounter::new(name, help)?;
        self.0.register(Box::new(counter.clone()))?;
        Ok(counter)
    }

    /// Counts one thing by a label.
    ///
    /// # Errors
    /// When the name is not valid or already taken.
    pub fn counters(
        self,
        name: &str,
        help: &str,
        label: &str,
        values: &[&str],
    ) -> Result<IntCounterVec> {
        let counters = IntCounterVec::new(Opts::new(name, help), &[label])?;
        for value in values {
            counters.get_metric_with_label_values(&[value])?;
        }
        self.0.register(Box::new(counters.clone()))?;
        Ok(counters)
    }

    /// Shows how many of something there are.
    ///
    /// # Errors
    /// When the name is not valid or already taken.
    pub fn gauge(self, name: &str, help: &str) -> Result<IntGauge> {
        let gauge = IntGauge::new(name, help)?;
        self.0.register(Box::new(gauge.clone()))?;
        Ok(gauge)
    }

    /// Shows how something is distributed over buckets with these upper bounds.
    ///
    /// # Errors
    /// When the name is not valid or already taken.
    pub fn histogram(self, name: &str, help: &str, buckets: Vec<f64>) -> Result<Histogram> {
        let histogram = Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets))?;
        self.0.register(Box::new(histogram.clone()))?;
        Ok(histogram)
    }

    /// The same by a label.
    ///
    /// # Errors
    /// When the name is not valid or already taken.
    pub fn histograms(
        self,
        name: &str,
        help: &str,
        buckets: Vec<f64>,
        label: &str,
        values: &[&str],
    ) -> Result<HistogramVec> {
        let histograms =
            HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), &[label])?;
        for value in values {
            histograms.get_metric_with_label_values(&[value])?;
        }
        self.0.register(Box::new(histograms.clone()))?;
        Ok(histograms)
    }
}
