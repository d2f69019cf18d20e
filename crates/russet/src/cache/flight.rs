//! Loads that are under way in this process, by the token under which their caller was elected: who
//! finds that token in the store waits here for what comes of it.

use super::encoding::Payload;
use super::load::LoadError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// What came of a load, for those who waited.
pub(super) type Landed = Result<Arc<Payload>, LoadError>;

#[derive(Default)]
pub(super) struct Flights {
    under_way: Arc<Mutex<UnderWay>>,
}

type UnderWay = HashMap<Vec<u8>, Load>;

struct Load {
    /// The tokens of the tags that its caller has read.
    tags: Vec<u8>,
    landed: watch::Receiver<Option<Landed>>,
}

/// One load. When it is dropped without having landed, those who wait are woken to look again.
pub(super) struct Flight {
    token: Vec<u8>,
    under_way: Arc<Mutex<UnderWay>>,
    landed: watch::Sender<Option<Landed>>,
}

impl Flights {
    pub fn start(&self, token: &[u8], tags: &[u8]) -> Flight {
        let (landed, receiver) = watch::channel(None);
        let load = Load { tags: tags.to_vec(), landed: receiver };
        lock(&self.under_way).insert(token.to_vec(), load);
        Flight { token: token.to_vec(), under_way: self.under_way.clone(), landed }
    }

    /// Waits for a load of this process; None if there is none or it came to nothing. A load that
    /// began with other tokens of tags is none: a tag was invalidated since, or it is for others.
    pub async fn join(&self, token: &[u8], tags: &[u8]) -> Option<Landed> {
        let mut receiver = {
            let under_way = lock(&self.under_way);
            let load = under_way.get(token).filter(|load| load.tags == tags)?;
            load.landed.clone()
        };
        let landed = receiver.wait_for(Option::is_some).await.ok()?;
        landed.clone()
    }
}

impl Flight {
    pub fn land(&self, landed: Landed) {
        self.landed.send_replace(Some(landed));
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        lock(&self.under_way).remove(&self.token);
    }
}

fn lock(under_way: &Mutex<UnderWay>) -> MutexGuard<'_, UnderWay> {
    under_way.lock().unwrap_or_else(|poison| poison.into_inner())
}
