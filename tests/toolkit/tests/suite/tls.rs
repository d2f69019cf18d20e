//! Over TLS, with an authority of one's own and certificates on both sides, as docs/security.md
//! advises: every kind of connection of a kit, and who is turned away.

use russet::backend::{Changed, ClientCertificate, TlsOptions};
use russet::key::Family;
use russet::lease::{Attempt, Lease, Release, Terms};
use russet::limit::{Limit, Limiter, Outage};
use russet::{Builder, Error, Kit, Request};
use russet_tests::server::{Kind, Server, free_port, skip_without};
use russet_tests::tls::Certificates;
use russet_toolkit_tests::builder;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const MINUTE: Duration = Duration::from_secs(60);
const BLOCKING_WAIT: Duration = Duration::from_secs(35);
const FAMILY: Family = Family { purpose: "test", version: 1 };

fn read(certificates: &Certificates, name: &str) -> Vec<u8> {
    std::fs::read(certificates.path(name)).unwrap()
}

/// Trusts the authority of these, and shows the certificate of this name, if there is one.
fn with(certificates: &Certificates, client: Option<&str>) -> Builder {
    let client = client.map(|name| ClientCertificate {
        chain: read(certificates, &format!("{name}.crt")),
        key: read(certificates, &format!("{name}.key")),
    });
    builder().tls(TlsOptions { ca: Some(read(certificates, "ca.crt")), client })
}

/// Steps on the shared connection.
async fn limits_and_leases_hold(kit: &Kit) {
    let limits = [Limit::bucket("burst", 2, MINUTE).unwrap()];
    let limiter = Limiter::new(kit, "api", limits, Outage::Deny).unwrap();
    for is_allowed in [true, true, false] {
        assert_eq!(limiter.check("ann", 1, None).await.unwrap().is_allowed(), is_allowed);
    }
    let lease = Lease::new(kit, "report", Terms::new(MINUTE)).unwrap();
    let Ok(Attempt::Held(guard)) = lease.try_acquire().await else { panic!("not held") };
    assert!(matches!(lease.try_acquire().await, Ok(Attempt::Busy { .. })));
    assert_eq!(guard.release().await, Ok(Release::Released));
    assert!(matches!(lease.try_acquire().await, Ok(Attempt::Held(_))));
}

/// A call that blocks, on a connection of its own, while others go on.
async fn blocking_calls_wait(kit: &Kit) {
    let key = kit.keys(FAMILY, "blocking").unwrap().key("list");
    let mut own = kit.connection(key.slot()).await.unwrap();
    let request = Request::new("BLPOP").key(&key).arg(30);
    let waiting = tokio::spawn(async move { own.call(&request, BLOCKING_WAIT).await });
    kit.call(&Request::new("RPUSH").key(&key).arg("job")).await.unwrap();
    let popped = waiting.await.unwrap().unwrap().into_list().unwrap();
    assert_eq!(popped[1].as_bytes(), Some(b"job".as_slice()));
}

/// The connection over which changes are heard.
async fn changes_are_heard(kit: &Kit) {
    let key = kit.keys(FAMILY, "tracked").unwrap().key("x");
    let (sender, mut heard) = mpsc::unbounded_channel();
    let listener = Arc::new(move |changed| {
        let _ = sender.send(changed);
    });
    let _connection = kit.tracking(&[key.as_bytes().to_vec()], listener).await.unwrap();
    kit.call(&Request::new("SET").key(&key).arg(1).arg("PX").arg(MINUTE)).await.unwrap();
    let changed = tokio::time::timeout(MINUTE, heard.recv()).await.unwrap();
    assert_eq!(changed, Some(Changed::Keys(vec![key.as_bytes().to_vec()])));
}

/// Only the web's authorities were trusted and no certificate could be shown: a Russet that was set
/// up as its own pages say could not be reached at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_ones_own_authority_is_reached_and_strangers_are_not_served() {
    let (ours, others) = (Certificates::make().unwrap(), Certificates::make().unwrap());
    let extra = ["--tls-auth-clients", "yes"];
    let server = Server::start_with_certificates(&ours, &extra).unwrap();
    let url = format!("rediss://{}", server.address());

    let kit = with(&ours, Some("client")).connect(&url).await.unwrap();
    limits_and_leases_hold(&kit).await;
    blocking_calls_wait(&kit).await;
    changes_are_heard(&kit).await;

    let without = with(&ours, None).connect(&url).await;
    assert!(matches!(&without, Err(Error::Unavailable(_))), "{without:?}");
    let client =
        ClientCertificate { chain: read(&others, "client.crt"), key: read(&others, "client.key") };
    let ca = Some(read(&ours, "ca.crt"));
    let strange = builder().tls(TlsOptions { ca, client: Some(client) }).connect(&url).await;
    assert!(matches!(&strange, Err(Error::Unavailable(_))), "{strange:?}");
    // Nor is a server served that our authority has not signed for, or nobody's plain port.
    for builder in [with(&others, Some("client")), builder()] {
        let refused = builder.connect(&url).await;
        assert!(
            matches!(&refused, Err(Error::Refused { code, .. }) if code == "TLS"),
            "{refused:?}"
        );
    }
    let plain = with(&ours, Some("client")).connect(&format!("redis://{}", server.address())).await;
    assert!(matches!(plain, Err(Error::Invalid(_))), "{plain:?}");
}

/// A key that is not that of the certificate is a mistake of the caller's, and said at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_another_certificate_is_refused() {
    let ours = Certificates::make().unwrap();
    let server = Server::start_with_certificates(&ours, &[]).unwrap();
    let client =
        ClientCertificate { chain: read(&ours, "client.crt"), key: read(&ours, "server.key") };
    let tls = TlsOptions { ca: Some(read(&ours, "ca.crt")), client: Some(client) };
    let refused = builder().tls(tls).connect(&format!("rediss://{}", server.address())).await;
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
}

/// One node that serves all slots. The connections to nodes that a cluster names have the
/// certificates too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_reached_too() {
    let ours = Certificates::make().unwrap();
    let (port, bus) = (free_port().unwrap().to_string(), free_port().unwrap().to_string());
    let mut args = ours.server_args();
    let options = [
        ["--tls-port", &port],
        ["--tls-auth-clients", "yes"],
        ["--tls-cluster", "yes"],
        ["--cluster-enabled", "yes"],
        ["--cluster-port", &bus],
    ];
    args.extend(options.concat().into_iter().map(str::to_owned));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let server = match Server::start(Kind::Redis, &args) {
        Ok(server) => server,
        Err(why) => return skip_without(Kind::Redis, &why),
    };
    let plain = server.address().port().to_string();
    let ask = |args: &[&str]| {
        let asked = Command::new("redis-cli").args(["-p", &plain]).args(args).output().unwrap();
        String::from_utf8_lossy(&asked.stdout).into_owned()
    };
    ask(&["cluster", "addslotsrange", "0", "16383"]);
    crate::eventually(async || ask(&["cluster", "info"]).contains("cluster_state:ok")).await;

    let nodes = [format!("rediss://127.0.0.1:{port}")];
    let kit = with(&ours, Some("client")).cluster(&nodes).await.unwrap();
    limits_and_leases_hold(&kit).await;
    blocking_calls_wait(&kit).await;
    let without = with(&ours, None).cluster(&nodes).await;
    assert!(matches!(&without, Err(Error::Unavailable(_))), "{without:?}");
}
