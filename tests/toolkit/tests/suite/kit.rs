//! What holds for every call.

use russet::{Kit, Request};

russet_toolkit_tests::on_every_backend! {
    answers
    connections_of_ones_own_block_nobody
}

async fn answers(kit: Kit) {
    kit.ping().await.unwrap();
    let keys = kit.keys(russet::key::Family { purpose: "test", version: 1 }, "a").unwrap();
    let key = keys.key("x");
    kit.call(&Request::new("SET").key(&key).arg("1").arg("PX").arg(60_000)).await.unwrap();
    let reply = kit.call(&Request::new("GET").key(&key)).await.unwrap();
    assert_eq!(reply.as_int(), Some(1));
    let refused = kit.call(&Request::new("LPUSH").key(&key).arg("1")).await.unwrap_err();
    assert_eq!(refused.code(), Some("WRONGTYPE"));
}

async fn connections_of_ones_own_block_nobody(kit: Kit) {
    let keys = kit.keys(russet::key::Family { purpose: "test", version: 1 }, "b").unwrap();
    let key = keys.key("list");
    let mut own = kit.connection(key.slot()).await.unwrap();
    let waiting = tokio::spawn({
        let request = Request::new("BLPOP").key(&key).arg(30);
        let wait = std::time::Duration::from_secs(35);
        async move { own.call(&request, wait).await }
    });
    kit.call(&Request::new("RPUSH").key(&key).arg("job")).await.unwrap();
    let popped = waiting.await.unwrap().unwrap().into_list().unwrap();
    assert_eq!(popped[1].as_bytes(), Some(b"job".as_slice()));
}
