//! The operator's side of the gate: who may talk to the agent, which chats it knows, and what could not be read.

pub mod channels;
pub mod pair;
pub mod poison;

use node::bus::Bus;
use node::exit::Exit;
use node::process::CommonArgs;
use node::settings::Flags;
use node::topology;

/// Connects for one command; the buckets are made if nothing has run yet.
async fn connect(common: &CommonArgs) -> anyhow::Result<Bus> {
    let settings = common.load(Flags::default())?.settings;
    let bus = Bus::connect(&settings.nats, "operator")
        .await
        .map_err(|error| anyhow::Error::new(error).context(Exit::Unavailable))?;
    topology::ensure(bus, &settings.streams)
        .await
        .map_err(|error| anyhow::Error::new(error).context(Exit::Configuration))
}

/// How long ago something was, for people.
fn ago(then_ms: u64) -> String {
    let age = node::clock::wall_ms().saturating_sub(then_ms) / 1000;
    format!("{} ago", humantime::format_duration(std::time::Duration::from_secs(age)))
}

/// Lines of columns that stand below each other.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let text = table(&[row(&["a", "längst", "x"]), row(&["bcd", "", "y"]), row(&["e"])]);
        assert_eq!(text, "a    längst  x\nbcd          y\ne");
        assert_eq!(table(&[]), "");
    }
}
