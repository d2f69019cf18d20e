//! Hashes: what their commands share. Each family of verbs has a file of its own.
