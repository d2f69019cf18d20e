//! One server.

use super::link::Link;
use super::{Backend, Connection, Connector, Listener, Pending, TracksChanges};
use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::request::Request;
use std::time::Duration;

/// A Russet, Redis or Valkey server.
pub struct Remote {
    link: Link,
}

impl Remote {
    /// Fails if the server can't be reached now.
    pub async fn connect(connector: &Connector, url: &str) -> Result<Self> {
        let client = redis::Client::open(connector.info(url)?)
            .map_err(|error| Error::Invalid(format!("the url: {error}")))?;
        let link = Link::new(client);
        link.connect().await?;
        Ok(Remote { link })
    }
}

impl Backend for Remote {
    fn call<'a>(&'a self, request: &'a Request, timeout: Duration) -> Pending<'a, Reply> {
        Box::pin(self.link.call(request, timeout))
    }

    fn connection(&self, _slot: u16) -> Pending<'_, Box<dyn Connection>> {
        Box::pin(async {
            let connection: Box<dyn Connection> = Box::new(self.link.connection().await?);
            Ok(connection)
        })
    }

    fn tracks_changes(&self) -> TracksChanges {
        TracksChanges::Yes
    }

    fn tracking<'a>(
        &'a self,
        prefixes: &'a [Vec<u8>],
        listener: Listener,
    ) -> Pending<'a, Box<dyn Connection>> {
        Box::pin(async move {
            let connection: Box<dyn Connection> =
                Box::new(self.link.tracking(prefixes, listener).await?);
            Ok(connection)
        })
    }

    fn name(&self) -> &'static str {
        "server"
    }
}
