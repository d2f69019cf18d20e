//! Settings that a program makes one by one, in place of a command line.

use std::path::{Path, PathBuf};

use super::error::{ConfigError, Position};
use super::load::Loader;
use super::store::Config;

/// Settings so far. Each is checked when it is made.
#[derive(Clone, Debug)]
pub struct Settings {
    loader: Loader,
    start_dir: PathBuf,
}

impl Default for Settings {
    /// The defaults of every directive.
    fn default() -> Self {
        // Without a working directory every path must be absolute; the root keeps them so.
        let start_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Settings { loader: Loader::new(start_dir.clone()), start_dir }
    }
}

impl Settings {
    /// Sets a directive to what would stand behind its name in a file.
    pub fn set(&mut self, name: &str, value: &[u8]) -> Result<(), ConfigError> {
        self.loader.take(&[name.as_bytes().to_vec(), value.to_vec()], &Position::Program)
    }

    /// Sets what takes several arguments: its name, and these.
    pub fn set_all(&mut self, args: &[Vec<u8>]) -> Result<(), ConfigError> {
        self.loader.take(args, &Position::Program)
    }

    /// Reads a file in the style of redis.conf.
    pub fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        self.loader.file(path, &Position::Program)
    }

    /// Fails if a directive is left at a value that needs what this version does not have.
    pub fn finish(self) -> Result<Config, ConfigError> {
        let loaded = self.loader.finish()?;
        let mut config = Config::new(loaded.values, None, self.start_dir);
        config.given_without_effect = loaded.without_effect;
        config.users = loaded.users;
        config.renames = loaded.renames;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;
    use crate::node::config::Directive;

    #[test]
    fn a_program_sets_what_a_file_can() {
        let mut settings = Settings::default();
        settings.set("databases", b"4").unwrap();
        settings.set("client-output-buffer-limit", b"pubsub 1mb 0 0").unwrap();
        let fault = settings.set("databasess", b"4").unwrap_err().to_string();
        assert_eq!(fault, "unknown directive 'databasess', did you mean 'databases'?");
        settings.set("databases", b"none").unwrap_err();
        assert_eq!(settings.finish().unwrap().int(Directive::Databases), 4);
    }
}
