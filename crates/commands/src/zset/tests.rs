//! What wire files cannot show of sorted sets.
