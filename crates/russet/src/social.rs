//! Likes, follows, feeds and places nearby.
//!
//! Every one of them is bounded in size and time by its settings, which have no defaults. What
//! people say is set, not toggled, so that a call that is made twice says the same as one.

mod feed;
mod follows;
mod likes;
mod nearby;

pub use feed::{Feed, FeedCursor, FeedPage, FeedSettings, FeedStats, Post, Published};
pub use follows::{
    Edge, EdgeCursor, EdgePage, Follow, FollowSettings, FollowStats, Follows, Unfollow,
};
pub use likes::{Like, LikeSettings, LikeStats, Likes, Unlike};
pub use nearby::{
    Found, Nearby, NearbyCursor, NearbyPage, NearbySettings, NearbyStats, Placed, Point,
};

use crate::step::StepInfo;

pub(crate) static STEPS: &[&StepInfo] = &[
    likes::SET.info(),
    likes::READ.info(),
    follows::CHANGE.info(),
    follows::APPLY.info(),
    follows::CONFIRM.info(),
    follows::LOOK.info(),
    follows::PAGE.info(),
    follows::MUTUAL.info(),
    feed::BEGIN.info(),
    feed::PUSH.info(),
    feed::PROGRESS.info(),
    feed::UNFINISHED.info(),
    feed::SCROLL.info(),
    nearby::PLACE.info(),
    nearby::SEARCH.info(),
];
