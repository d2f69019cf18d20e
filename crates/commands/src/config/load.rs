//! Reading settings, from files and from the words of an option, into values.

use std::io::Read;
use std::path::{Path, PathBuf};

use russet_base::text::split_words;

use super::directive::Directive;
use super::error::{ConfigError, Fault, Place, os_text};
use super::include;
use super::spec::Kind;
use super::table;
use super::value::{Value, os_str};

/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files that may include each other in a row.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Files that are read in all, each time counted.
const FILES_MAX: usize = 1000;

/// Settings being gathered: a later one replaces an earlier one, or adds to it.
#[derive(Clone, Debug)]
pub(super) struct Loader {
    values: Vec<Value>,
    /// The first `save` replaces the default, each further one adds a point.
    has_save: bool,
    /// Directives that stand at a value which needs a missing feature.
    unsupported: Vec<(Directive, ConfigError)>,
    files: usize,
    /// What relative paths start from, whatever the process does later.
    start_dir: PathBuf,
}

impl Loader {
    pub(super) fn new(start_dir: PathBuf) -> Self {
        let values = defaults(&start_dir);
        Loader { values, has_save: false, unsupported: Vec::new(), files: 0, start_dir }
    }

    /// The values, in the order of `Directive::ALL`.
    pub(super) fn finish(self) -> Result<Vec<Value>, ConfigError> {
        match self.unsupported.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(self.values),
        }
    }

    /// Reads a file. If it can't be, `place` is who asked for it.
    pub(super) fn file(&mut self, path: &Path, place: &Place) -> Result<(), ConfigError> {
        self.nested_file(path, place, 0)
    }

    fn nested_file(&mut self, path: &Path, place: &Place, depth: usize) -> Result<(), ConfigError> {
        let path = self.start_dir.join(path);
        let fail = |fault| ConfigError::new(place, fault);
        self.files += 1;
        if depth > INCLUDE_DEPTH_MAX || self.files > FILES_MAX {
            return Err(fail(Fault::IncludesTooDeep { path }));
        }
        let unreadable = |fault: std::io::Error| Fault::Unreadable {
            path: path.clone(),
            reason: os_text(&fault),
        };
        let file = std::fs::File::open(&path).map_err(unreadable).map_err(fail)?;
        let content = read_all(file, &path, place)?;
        self.text(&content, &path, depth)
    }

    /// Reads the content of a file, or of what stands for one.
    pub(super) fn content(&mut self, content: &[u8], name: &Path) -> Result<(), ConfigError> {
        self.text(content, name, 0)
    }

    fn text(&mut self, content: &[u8], file: &Path, depth: usize) -> Result<(), ConfigError> {
        for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let place = Place::Line { file: file.to_owned(), line: index + 1 };
            let words =
                split_words(line).map_err(|_| ConfigError::new(&place, Fault::UnbalancedQuotes))?;
            self.nested_words(&words, &place, depth)?;
        }
        Ok(())
    }

    /// Takes one setting: a name and its words.
    pub(super) fn words(&mut self, words: &[Vec<u8>], place: &Place) -> Result<(), ConfigError> {
        self.nested_words(words, place, 0)
    }

    fn nested_words(
        &mut self,
        words: &[Vec<u8>],
        place: &Place,
        depth: usize,
    ) -> Result<(), ConfigError> {
        let [name, rest @ ..] = words else { return Ok(()) };
        let lower = name.to_ascii_lowercase();
        if let Some(directive) = Directive::named(name) {
            return self.set(directive, rest, place);
        }
        match rest {
            [pattern] if lower == b"include" => self.include(pattern, place, depth),
            [_] if table::RETIRED.iter().any(|retired| retired.as_bytes() == lower) => Ok(()),
            _ => Err(ConfigError::unknown(place, &lower)),
        }
    }

    fn include(&mut self, pattern: &[u8], place: &Place, depth: usize) -> Result<(), ConfigError> {
        let unreadable =
            |reason| ConfigError::new(place, Fault::Unreadable { path: PathBuf::new(), reason });
        let pattern = self.start_dir.join(os_str(pattern).map_err(unreadable)?);
        for path in include::expand(&pattern) {
            self.nested_file(&path, place, depth + 1)?;
        }
        Ok(())
    }

    fn set(
        &mut self,
        directive: Directive,
        words: &[Vec<u8>],
        place: &Place,
    ) -> Result<(), ConfigError> {
        let spec = directive.spec();
        let bad = |reason| ConfigError::bad_value(place, spec, words, reason);
        // Several words may also be written as one, in quotes.
        let split;
        let given = match words {
            [] => return Err(bad("wrong number of arguments".to_owned())),
            [word] if spec.takes_words() && !word.is_empty() => {
                split = split_words(word).map_err(|fault| bad(fault.to_string()))?;
                split.as_slice()
            }
            [word] if directive == Directive::Dir => {
                let dir = self.start_dir.join(os_str(word).map_err(bad)?);
                split = vec![dir.into_os_string().into_encoded_bytes()];
                split.as_slice()
            }
            _ => words,
        };
        let current = &self.values[directive as usize];
        let mut value = spec.parse(given, current).map_err(bad)?;
        // A file may ask for what a later option takes back, so this is no error yet.
        self.unsupported.retain(|(earlier, _)| *earlier != directive);
        if let Some(what) = spec.unsupported(&value) {
            let error = ConfigError::new(place, Fault::Unsupported { what });
            self.unsupported.push((directive, error));
        }
        if matches!(spec.kind, Kind::SavePoints) {
            if self.has_save && !value.bytes().is_empty() && !current.bytes().is_empty() {
                value = Value::text([current.bytes(), value.bytes()].join(&b' '));
            }
            self.has_save = true;
        }
        self.values[directive as usize] = value;
        Ok(())
    }
}

/// The values before anything is read, in the order of `Directive::ALL`.
pub(super) fn defaults(start_dir: &Path) -> Vec<Value> {
    let mut values: Vec<Value> =
        Directive::ALL.iter().map(|directive| directive.spec().default_value()).collect();
    values[Directive::Dir as usize] = Value::text(start_dir.as_os_str().as_encoded_bytes());
    values
}

/// Reads to the end, but not without end.
pub(super) fn read_all(
    source: impl Read,
    path: &Path,
    place: &Place,
) -> Result<Vec<u8>, ConfigError> {
    let fail = |fault| ConfigError::new(place, fault);
    let mut content = Vec::new();
    let read = source.take(FILE_BYTES_MAX + 1).read_to_end(&mut content);
    read.map_err(|fault| {
        fail(Fault::Unreadable { path: path.to_owned(), reason: os_text(&fault) })
    })?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(fail(Fault::TooLong { path: path.to_owned() }));
    }
    Ok(content)
}
