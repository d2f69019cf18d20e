//! Tables, readable as they are and as Markdown.

use crate::failure::{Doing, Result};
use std::fmt;
use std::path::Path;

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub title: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Below the table: how it was measured, what to beware of.
    pub notes: Vec<String>,
}

impl Table {
    pub fn new<const COLUMNS: usize>(title: &str, header: [&str; COLUMNS]) -> Table {
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Table { title: title.to_owned(), header, ..Table::default() }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push(cells);
    }

    fn line(f: &mut fmt::Formatter<'_>, cells: &[String], widths: &[usize]) -> fmt::Result {
        for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
            match index {
                0 => write!(f, "| {cell:<width$} ")?,
                _ => write!(f, "| {cell:>width$} ")?,
            }
        }
        writeln!(f, "|")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let width = |column: usize| {
            let cells = lines().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        writeln!(f, "## {}\n", self.title)?;
        if !self.rows.is_empty() {
            Table::line(f, &self.header, &widths)?;
            let rule = |(index, width): (usize, &usize)| match index {
                0 => "-".repeat(*width),
                _ => format!("{}:", "-".repeat(width - 1)),
            };
            let rules: Vec<String> = widths.iter().enumerate().map(rule).collect();
            Table::line(f, &rules, &widths)?;
            self.rows.iter().try_for_each(|row| Table::line(f, row, &widths))?;
            writeln!(f)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "- {note}"))
    }
}

/// A figure with as many digits as are worth reading; a dash when there is none.
pub fn figure(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// Like [`figure`], for costs that may be far below one.
pub fn cost(value: Option<f64>) -> String {
    match value {
        Some(value) if value.abs() < 10.0 => format!("{value:.3}"),
        _ => figure(value),
    }
}

pub fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// The goal for the figure beside it, and whether it was reached.
pub fn goal(limit: Option<f64>, reached: Option<f64>) -> String {
    goal_in("", limit, reached)
}

/// A goal with its unit, for it is not about the figure beside it.
pub fn goal_in(unit: &str, limit: Option<f64>, reached: Option<f64>) -> String {
    let Some(limit) = limit.filter(|limit| limit.is_finite()) else { return String::new() };
    let goal = format!("≤ {limit} {unit}").trim_end().to_owned();
    match reached {
        None => goal,
        Some(reached) if reached <= limit => format!("{goal} met"),
        Some(_) => format!("{goal} MISSED"),
    }
}

pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).doing(format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown_and_aligned() {
        let mut table = Table::new("Speed", ["work", "µs"]);
        table.row(vec!["GET".into(), "1.45".into()]);
        table.notes.push("five rounds".into());
        let expected = "## Speed\n\n| work |   µs |\n| ---- | ---: |\n| GET  | 1.45 |\n\n\
                        - five rounds\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn goals_say_whether_they_are_met() {
        assert_eq!(goal(Some(0.5), Some(0.4)), "≤ 0.5 met");
        assert_eq!(goal(Some(0.5), Some(0.6)), "≤ 0.5 MISSED");
        assert_eq!(goal(None, Some(0.6)), "");
        assert_eq!(goal_in("B", Some(200.0), Some(120.5)), "≤ 200 B met");
    }
}
