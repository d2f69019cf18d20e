//! Places on a map, kept in sorted sets: what their commands share. Each family of verbs has a file of its own.
