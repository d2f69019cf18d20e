//! A cluster on loopback: three primaries, a replica of each.

use russet_tests::server::{Kind, Server};
use std::process::Command;
use std::time::{Duration, Instant};

const NODES: usize = 6;
/// How long the nodes may take to agree.
const AGREE_WAIT: Duration = Duration::from_secs(60);
/// How often a node is started, each time with another port for its peers.
const ATTEMPTS_MAX: usize = 3;
/// After how much silence a node counts as gone. On a busy machine nodes say nothing for seconds: a
/// replica that takes over then loses writes that a test counts on.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Nodes of Redis that know each other. They end with the test program.
pub struct Cluster {
    nodes: Vec<&'static Server>,
}

impl Cluster {
    pub fn start() -> Result<Self, String> {
        let nodes: Result<Vec<_>, String> = (0..NODES).map(|_| start_node()).collect();
        let nodes = nodes?;
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(nodes.iter().map(|it| it.address().to_string()));
        create.args(["--cluster-replicas", "1", "--cluster-yes"]);
        let output = create.output().map_err(|error| format!("redis-cli: {error}"))?;
        if !output.status.success() {
            return Err(format!("redis-cli: {}", String::from_utf8_lossy(&output.stdout)));
        }
        let cluster = Cluster { nodes };
        cluster.wait_until_agreed()?;
        Ok(cluster)
    }

    pub fn nodes(&self) -> &[&'static Server] {
        &self.nodes
    }

    /// From now on a node counts as gone after so much silence.
    pub fn set_silence_max(&self, silence_max: Duration) {
        let silence_ms = silence_max.as_millis().to_string();
        for node in &self.nodes {
            ask(node, &["config", "set", "cluster-node-timeout", &silence_ms]);
        }
    }

    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("redis://{}", node.address())).collect()
    }

    /// Until every node says that the cluster is whole.
    pub fn wait_until_agreed(&self) -> Result<(), String> {
        let deadline = Instant::now() + AGREE_WAIT;
        while !self.nodes.iter().all(|node| is_whole(node)) {
            if Instant::now() > deadline {
                return Err("the nodes of the cluster do not agree".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

/// A node that knows no others.
fn start_node() -> Result<&'static Server, String> {
    let silence_ms = SILENCE_MAX.as_millis().to_string();
    let mut last = String::new();
    for _ in 0..ATTEMPTS_MAX {
        let bus = russet_tests::server::free_port()?.to_string();
        let options = [
            ["--cluster-enabled", "yes"],
            ["--cluster-port", &bus],
            ["--cluster-node-timeout", &silence_ms],
            ["--cluster-replica-validity-factor", "0"],
            ["--appendonly", "yes"],
        ];
        match Server::start(Kind::Redis, &options.concat()) {
            Ok(server) => return server.until_exit(),
            Err(why) => last = why,
        }
    }
    Err(last)
}

/// What a node answers; nothing if it can't be reached.
fn ask(node: &Server, args: &[&str]) -> String {
    let port = node.address().port().to_string();
    let asked = Command::new("redis-cli").args(["-p", &port]).args(args).output();
    asked.map(|it| String::from_utf8_lossy(&it.stdout).into_owned()).unwrap_or_default()
}

/// All nodes are known, all slots served, and every primary has its replica.
fn is_whole(node: &Server) -> bool {
    let nodes = ask(node, &["cluster", "nodes"]);
    ask(node, &["cluster", "info"]).contains("cluster_state:ok")
        && nodes.lines().count() == NODES
        && nodes.lines().filter(|line| line.contains("slave")).count() == NODES / 2
}
