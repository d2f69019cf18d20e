//! The text formats of Prometheus and OpenMetrics: families, samples, and their escapes.

use std::fmt::{Display, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

/// A label and its value.
pub type Label<'l> = (&'l str, &'l str);

/// A page of metrics so far.
pub struct Page {
    text: String,
    is_open: bool,
}

impl Page {
    pub fn new(is_open: bool) -> Self {
        Page { text: String::with_capacity(32 << 10), is_open }
    }

    /// Whether it is OpenMetrics.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    pub fn content_type(&self) -> &'static str {
        match self.is_open {
            true => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            false => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Begins a family: its samples follow.
    pub fn family(&mut self, name: &str, kind: MetricKind, help: &str) {
        let kind_name = match kind {
            // OpenMetrics knows no counters under another name.
            MetricKind::Counter if self.is_open && !name.ends_with("_total") => "unknown",
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
            MetricKind::Summary => "summary",
        };
        let name = match kind_name {
            "counter" if self.is_open => name.trim_end_matches("_total"),
            _ => name,
        };
        // Writing to a string can't fail.
        let _ = writeln!(self.text, "# HELP {name} {help}");
        let _ = writeln!(self.text, "# TYPE {name} {kind_name}");
    }

    pub fn sample(&mut self, name: &str, labels: &[Label], value: impl Display) {
        self.text.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{label}=\"");
            push_escaped(&mut self.text, value);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, name: &str, kind: MetricKind, (help, value): (&str, impl Display)) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    pub fn finish(mut self) -> String {
        if self.is_open {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

fn push_escaped(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_name_counters_their_way() {
        let page = |is_open| {
            let mut page = Page::new(is_open);
            page.family("a_total", MetricKind::Counter, "All.");
            page.sample("a_total", &[("k", "x\"y\\z\n"), ("l", "")], 2);
            page.single("b", MetricKind::Counter, ("Others.", 1.5));
            page.finish()
        };
        assert_eq!(
            page(false),
            "# HELP a_total All.\n# TYPE a_total counter\na_total{k=\"x\\\"y\\\\z\\n\",l=\"\"} 2\n\
             # HELP b Others.\n# TYPE b counter\nb 1.5\n"
        );
        assert_eq!(
            page(true),
            "# HELP a All.\n# TYPE a counter\na_total{k=\"x\\\"y\\\\z\\n\",l=\"\"} 2\n\
             # HELP b Others.\n# TYPE b unknown\nb 1.5\n# EOF\n"
        );
    }
}
