//! A cluster whose slots move and whose primaries fail while it is in use.

use super::{PATIENCE, count_patiently, counter, join_all, start_all, until_done};
use russet::key::Family;
use russet::{Kit, RequestId};
use russet_tests::server::{Kind, skip_without};
use russet_toolkit_tests::{Cluster, builder};
use std::collections::HashSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

const TASKS: usize = 8;
const WAIT: Duration = Duration::from_secs(60);
/// How long a replica may take to take over before it is asked again.
const FAILOVER_WAIT: Duration = Duration::from_secs(8);
/// Slots that move while workloads use them.
const MOVES: usize = 30;

/// One test, because a cluster takes seconds to start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_go_on_while_slots_move_and_primaries_fail() {
    let cluster = match tokio::task::spawn_blocking(Cluster::start).await.unwrap() {
        Ok(cluster) => Arc::new(cluster),
        Err(why) => {
            return skip_without(Kind::Redis, &why);
        }
    };
    let kit = builder().timeout(Duration::from_secs(2)).cluster(cluster.urls()).await.unwrap();
    let keys = kit.keys(Family { purpose: "counter", version: 1 }, "a").unwrap();
    let slot = keys.key("request").slot();
    let load = Load::start(&kit);

    for _ in 0..3 {
        load.wait_for_more().await;
        off(&cluster, move |cluster| move_slot(cluster, slot)).await;
    }
    load.wait_for_more().await;
    // The replica takes over once it has everything: nothing is lost.
    off(&cluster, move |cluster| fail_over(cluster, slot)).await;
    load.wait_for_more().await;
    let before = load.stop().await;
    assert_eq!(count_patiently(&counter(&kit)).await, before, "each request counts once");

    // Meanwhile all workloads run, each round with keys of its own.
    let moves = tokio::spawn({
        let cluster = cluster.clone();
        async move { off(&cluster, move_and_fail_over).await }
    });
    loop {
        let builder = builder().timeout(Duration::from_secs(5)).retry(PATIENCE);
        let kit = builder.cluster(cluster.urls()).await.unwrap();
        join_all(start_all(&kit)).await;
        if moves.is_finished() {
            moves.await.unwrap();
            break;
        }
    }

    // Killed, it may lose what its replica has not got; but nothing happens twice.
    off(&cluster, |cluster| cluster.set_silence_max(Duration::from_secs(2))).await;
    let load = Load::start(&kit);
    load.wait_for_more().await;
    off(&cluster, move |cluster| kill_owner(cluster, slot)).await;
    load.wait_for_more().await;
    let after = before + load.stop().await;
    let counted = count_patiently(&counter(&kit)).await;
    assert!(counted <= after && counted > before, "{before} {counted} {after}");
}

/// Tasks that count, each request with an id, until they are stopped.
struct Load {
    done: Arc<AtomicI64>,
    is_over: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn start(kit: &Kit) -> Load {
        let (done, is_over) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
        let task = |_| {
            let (counter, done, is_over) = (counter(kit), done.clone(), is_over.clone());
            tokio::spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    let id = RequestId::random();
                    until_done(|| counter.add("a", 1, Some(&id))).await;
                    done.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        let tasks = (0..TASKS).map(task).collect();
        Load { done, is_over, tasks }
    }

    async fn wait_for_more(&self) {
        let (from, deadline) = (self.done.load(Ordering::SeqCst), Instant::now() + WAIT);
        while self.done.load(Ordering::SeqCst) < from + 50 {
            assert!(Instant::now() < deadline, "calls do not go on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How many are done.
    async fn stop(self) -> i64 {
        self.is_over.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.unwrap();
        }
        self.done.load(Ordering::SeqCst)
    }
}

/// On a thread that may block.
async fn off(cluster: &Arc<Cluster>, work: impl FnOnce(&Cluster) + Send + 'static) {
    let cluster = cluster.clone();
    tokio::task::spawn_blocking(move || work(&cluster)).await.unwrap();
}

fn ask(port: u16, args: &[&str]) -> String {
    let output = Command::new("redis-cli").args(["-p", &port.to_string()]).args(args).output();
    String::from_utf8_lossy(&output.unwrap().stdout).trim().to_owned()
}

/// A node as CLUSTER NODES tells of it.
#[derive(Clone, Debug)]
struct Node {
    id: String,
    port: u16,
    /// The primary, if it is a replica.
    primary: Option<String>,
    ranges: Vec<(u16, u16)>,
}

impl Node {
    fn has(&self, slot: u16) -> bool {
        self.ranges.iter().any(|(from, to)| (*from..=*to).contains(&slot))
    }
}

/// Those that are there, as one that is there sees them.
fn nodes(cluster: &Cluster) -> Vec<Node> {
    let ports = cluster.nodes().iter().map(|node| node.address().port());
    let text = ports.map(|port| ask(port, &["cluster", "nodes"])).find(|text| !text.is_empty());
    let parse = |line: &str| {
        let parts: Vec<&str> = line.split(' ').collect();
        let range = |text: &&str| {
            let (from, to) = text.split_once('-').unwrap_or((text, text));
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        let port = parts[1].split('@').next()?.rsplit(':').next()?.parse().ok()?;
        let is_there = !parts[2].contains("fail");
        is_there.then(|| Node {
            id: parts[0].to_owned(),
            port,
            primary: (parts[3] != "-").then(|| parts[3].to_owned()),
            ranges: parts[8..].iter().filter_map(range).collect(),
        })
    };
    text.unwrap_or_default().lines().filter_map(parse).collect()
}

fn owner(nodes: &[Node], slot: u16) -> Node {
    nodes.iter().find(|node| node.has(slot)).unwrap().clone()
}

/// To another primary, key by key, as `redis-cli --cluster reshard` does it.
fn move_slot(cluster: &Cluster, number: u16) {
    let known = nodes(cluster);
    let from = owner(&known, number);
    let to = known.iter().find(|it| !it.ranges.is_empty() && it.id != from.id).unwrap();
    let slot = number.to_string();
    assert_eq!(ask(to.port, &["cluster", "setslot", &slot, "importing", &from.id]), "OK");
    assert_eq!(ask(from.port, &["cluster", "setslot", &slot, "migrating", &to.id]), "OK");
    loop {
        let keys = ask(from.port, &["cluster", "getkeysinslot", &slot, "10"]);
        if keys.is_empty() {
            break;
        }
        let port = to.port.to_string();
        // One that took too long may have arrived: what is here is newer, as it is still used.
        let mut migrate = vec!["migrate", "127.0.0.1", &port, "", "0", "5000", "replace", "keys"];
        migrate.extend(keys.lines());
        ask(from.port, &migrate);
    }
    for node in [to.port, from.port] {
        assert_eq!(ask(node, &["cluster", "setslot", &slot, "node", &to.id]), "OK");
    }
    // The next to move it goes by what another node says.
    wait_for_another(cluster, number, &from);
}

/// None if it has taken over meanwhile.
fn replica_of<'n>(nodes: &'n [Node], primary: &Node) -> Option<&'n Node> {
    nodes.iter().find(|node| node.primary.as_ref() == Some(&primary.id))
}

/// A replica that does not hear of its primary in time gives up, and is asked again.
fn fail_over(cluster: &Cluster, slot: u16) {
    let before = owner(&nodes(cluster), slot);
    let deadline = Instant::now() + WAIT;
    while !is_owned_by_another(cluster, slot, &before) {
        assert!(Instant::now() < deadline, "nobody takes over");
        let nodes = nodes(cluster);
        let Some(replica) = replica_of(&nodes, &before) else { continue };
        if ask(replica.port, &["cluster", "failover"]) == "OK" {
            let asked = Instant::now();
            while !is_owned_by_another(cluster, slot, &before) && asked.elapsed() < FAILOVER_WAIT {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Slots that are in use move, and then every primary makes room for its replica.
fn move_and_fail_over(cluster: &Cluster) {
    std::thread::sleep(Duration::from_millis(100));
    for slot in slots_in_use(cluster).into_iter().take(MOVES) {
        move_slot(cluster, slot);
    }
    for primary in nodes(cluster).into_iter().filter(|node| !node.ranges.is_empty()) {
        fail_over(cluster, primary.ranges[0].0);
    }
}

/// In no order.
fn slots_in_use(cluster: &Cluster) -> HashSet<u16> {
    let primaries = nodes(cluster).into_iter().filter(|node| !node.ranges.is_empty());
    let keys = primaries.map(|node| ask(node.port, &["--scan"])).collect::<Vec<_>>().join("\n");
    keys.lines().map(|key| russet_base::slot::slot(key.as_bytes())).collect()
}

fn kill_owner(cluster: &Cluster, slot: u16) {
    let before = owner(&nodes(cluster), slot);
    let server = cluster.nodes().iter().find(|node| node.address().port() == before.port);
    server.unwrap().signal("KILL").unwrap();
    wait_for_another(cluster, slot, &before);
}

fn is_owned_by_another(cluster: &Cluster, slot: u16, before: &Node) -> bool {
    nodes(cluster).iter().find(|node| node.has(slot)).is_some_and(|it| it.id != before.id)
}

fn wait_for_another(cluster: &Cluster, slot: u16, before: &Node) {
    let deadline = Instant::now() + WAIT;
    while !is_owned_by_another(cluster, slot, before) {
        assert!(Instant::now() < deadline, "nobody takes over");
        std::thread::sleep(Duration::from_millis(100));
    }
}
