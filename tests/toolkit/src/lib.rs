#![forbid(unsafe_code)]
//! Where the toolkit's tests run: the embedded engine, servers and a cluster of the peers, started
//! once per test program and ended with it.

mod backends;
mod cluster;
mod faulty;
mod journal;
mod proxy;
mod recorder;

pub use backends::{TestBackend, address, builder, kit, run, run_behind_proxy, run_under_faults};
pub use cluster::Cluster;
pub use faulty::{Fault, Faults, faulty};
pub use journal::{Journal, durable};
pub use proxy::{Call, Proxy, ProxyFault, ProxyMode};
pub use recorder::{Record, Recorder};

/// Makes each test, an `async fn(kit: Kit)`, a test on every backend: `on_embedded::name`,
/// `on_russet::name`, `on_redis::name`, `on_valkey::name`, `on_cluster::name`.
#[macro_export]
macro_rules! on_every_backend {
    ($($name:ident)*) => {
        $crate::on_every_backend!(@ on_embedded Embedded $($name)*);
        $crate::on_every_backend!(@ on_russet Russet $($name)*);
        $crate::on_every_backend!(@ on_redis Redis $($name)*);
        $crate::on_every_backend!(@ on_valkey Valkey $($name)*);
        $crate::on_every_backend!(@ on_cluster Cluster $($name)*);
    };
    (@ $module:ident $backend:ident $($name:ident)*) => {
        $crate::on_backend!(run $module $backend $($name)*);
    };
}

/// Makes each test, an `async fn(kit: Kit, proxy: Arc<Proxy>)`, a test on every kind of server.
#[macro_export]
macro_rules! behind_a_proxy {
    ($($name:ident)*) => {
        $crate::on_backend!(run_behind_proxy on_russet Russet $($name)*);
        $crate::on_backend!(run_behind_proxy on_redis Redis $($name)*);
        $crate::on_backend!(run_behind_proxy on_valkey Valkey $($name)*);
    };
}

/// Makes each test, an `async fn(kit: Kit)`, a test on every kind of server, with random faults on
/// the way there.
#[macro_export]
macro_rules! under_faults {
    ($($name:ident)*) => {
        $crate::on_backend!(run_under_faults on_russet Russet $($name)*);
        $crate::on_backend!(run_under_faults on_redis Redis $($name)*);
        $crate::on_backend!(run_under_faults on_valkey Valkey $($name)*);
    };
}

/// A module of tests on one backend.
#[macro_export]
macro_rules! on_backend {
    ($run:ident $module:ident $backend:ident $($name:ident)*) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    $crate::$run($crate::TestBackend::$backend, super::$name).await;
                }
            )*
        }
    };
}
