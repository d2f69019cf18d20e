//! Places on earth as numbers.
