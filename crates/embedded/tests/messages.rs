//! Subscriptions.

use russet_embedded::{Engine, Error, Message, MessageKind, Options};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(std::sync::Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn message(channel: &str, payload: &str, kind: MessageKind) -> Message {
    Message { channel: channel.into(), payload: payload.into(), kind }
}

/// A message that a client publishes to itself, or the invalidation of a key that it changes, is no
/// reply: it comes with the other messages.
#[test]
fn what_a_client_causes_itself_comes_as_a_message() {
    let engine = Engine::open(Options::new()).unwrap();
    let mut client = engine.client();
    client.call(["SUBSCRIBE", "own"]).unwrap();
    client.call(["CLIENT", "TRACKING", "ON"]).unwrap();
    assert_eq!(client.query::<i64>(["PUBLISH", "own", "1"]).unwrap(), 1);
    assert_eq!(client.query::<Option<String>>(["GET", "k"]).unwrap(), None);
    assert_eq!(client.query::<String>(["SET", "k", "v"]).unwrap(), "OK");
    assert_eq!(client.query::<String>(["GET", "k"]).unwrap(), "v");
    let mut subscription = client.into_subscription();
    let got = subscription.next_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(got, Some(message("own", "1", MessageKind::Channel)));
}

#[test]
fn messages_come_by_channel_pattern_and_shard_channel() {
    let engine = Engine::open(Options::new()).unwrap();
    let mut client = engine.client();
    let mut subscription = client.subscribe(["a", "b"]).unwrap();
    subscription.psubscribe(["a*"]).unwrap();
    subscription.ssubscribe(["a"]).unwrap();
    assert_eq!(subscription.len(), 4);
    assert_eq!(subscription.try_next().unwrap(), None, "confirmations are no messages");
    assert_eq!(client.query::<i64>(["PUBLISH", "a", "1"]).unwrap(), 2);
    assert_eq!(client.query::<i64>(["SPUBLISH", "a", "2"]).unwrap(), 1);
    assert_eq!(client.query::<i64>(["PUBLISH", "b", "3"]).unwrap(), 1);
    let got: Vec<Message> = subscription.by_ref().take(4).collect();
    let wanted = [
        message("a", "1", MessageKind::Channel),
        message("a", "1", MessageKind::Pattern(b"a*".to_vec())),
        message("a", "2", MessageKind::ShardChannel),
        message("b", "3", MessageKind::Channel),
    ];
    assert_eq!(got, wanted);
    subscription.unsubscribe(["b"]).unwrap();
    assert_eq!(client.query::<i64>(["PUBLISH", "b", "4"]).unwrap(), 0);
    assert_eq!(subscription.next_timeout(Duration::from_millis(10)).unwrap(), None);
    drop(subscription);
    assert_eq!(client.query::<i64>(["PUBLISH", "a", "5"]).unwrap(), 0);
}

#[test]
fn a_thread_and_a_future_wait_for_messages() {
    const MESSAGES: usize = 1000;
    let engine = Engine::open(Options::new()).unwrap();
    let mut client = engine.client();
    let mut by_thread = client.subscribe(["ch"]).unwrap();
    let mut by_future = client.psubscribe(["c?"]).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            for (at, message) in by_thread.by_ref().take(MESSAGES).enumerate() {
                assert_eq!(message.payload, at.to_string().into_bytes());
            }
        });
        scope.spawn(move || {
            block_on(async {
                for at in 0..MESSAGES {
                    let message = by_future.next_async().await.unwrap();
                    assert_eq!(message.payload, at.to_string().into_bytes());
                }
            });
        });
        for at in 0..MESSAGES {
            client.call(["PUBLISH", "ch", &at.to_string()]).unwrap();
        }
    });
}

/// A subscription that is never read is cut off, and takes no more memory.
#[test]
fn unread_messages_are_bounded() {
    let options = Options::new().set("client-output-buffer-limit", "pubsub 100kb 0 0").unwrap();
    let engine = Engine::open(options).unwrap();
    let mut client = engine.client();
    let mut slow = client.subscribe(["ch"]).unwrap();
    let mut quick = client.subscribe(["ch"]).unwrap();
    let payload = "x".repeat(1000);
    for _ in 0..200 {
        client.call(["PUBLISH", "ch", &payload]).unwrap();
        assert_eq!(quick.next().unwrap().payload.len(), 1000);
    }
    assert_eq!(slow.try_next(), Err(Error::Disconnected));
    assert_eq!(client.query::<i64>(["PUBLISH", "ch", "x"]).unwrap(), 1);
    assert_eq!(slow.next(), None);
}

/// A client that has too many unread messages and blocks is told so, and does not turn in circles.
#[test]
fn a_client_that_is_cut_off_can_make_no_call() {
    let options = Options::new().set("client-output-buffer-limit", "pubsub 1kb 0 0").unwrap();
    let engine = Engine::open(options).unwrap();
    let (mut publisher, mut client) = (engine.client(), engine.client());
    client.call(["SUBSCRIBE", "ch"]).unwrap();
    publisher.call(["PUBLISH", "ch", &"x".repeat(2000)]).unwrap();
    assert_eq!(client.call(["BLPOP", "k", "0"]), Err(Error::Disconnected));
}

#[test]
fn keyspace_events_are_messages() {
    let options = Options::new().set("notify-keyspace-events", "KEA").unwrap();
    let engine = Engine::open(options).unwrap();
    let mut client = engine.client();
    let events = client.psubscribe(["__keyevent@0__:*"]).unwrap();
    client.call(["SET", "k", "v", "PX", "1"]).unwrap();
    let names: Vec<Vec<u8>> = events.take(3).map(|event| event.channel).collect();
    assert_eq!(names.last().unwrap(), b"__keyevent@0__:expired");
}

/// A client that subscribed by commands still has its messages.
#[test]
fn a_client_becomes_a_subscription_and_comes_back() {
    let engine = Engine::open(Options::new()).unwrap();
    let mut client = engine.client();
    client.call(["SUBSCRIBE", "one", "two"]).unwrap();
    client.call(["PUBLISH", "two", "x"]).unwrap();
    let mut subscription = client.into_subscription();
    assert_eq!(subscription.next(), Some(message("two", "x", MessageKind::Channel)));
    subscription.unsubscribe([""; 0]).unwrap();
    assert!(subscription.is_empty());
    let mut client = subscription.into_client();
    assert_eq!(client.query::<String>(["PING"]).unwrap(), "PONG");
}

/// Messages that a subscription had not read were nobody's memory.
#[test]
fn unread_messages_are_used_memory() {
    const BYTES: u64 = 1 << 20;
    let engine = Engine::open(Options::new()).unwrap();
    let mut client = engine.client();
    let used = |client: &mut russet_embedded::Client| -> u64 {
        let info: String = client.query(["INFO", "memory"]).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        line.unwrap().trim().parse().unwrap()
    };
    let mut subscription = client.subscribe(["a"]).unwrap();
    let payload = "x".repeat(BYTES as usize);
    let before = used(&mut client);
    for _ in 0..10 {
        client.call(["PUBLISH", "a", &payload]).unwrap();
    }
    let unread = used(&mut client) - before;
    assert!((10 * BYTES..10 * BYTES + BYTES / 10).contains(&unread), "{unread}");
    assert_eq!(subscription.by_ref().take(9).count(), 9);
    let unread = used(&mut client) - before;
    assert!((BYTES..BYTES + BYTES / 10).contains(&unread), "{unread}");
    drop(subscription);
    assert!(used(&mut client) < before + BYTES / 10);
}

/// Only messages came as futures, not the changes to what is listened to.
#[test]
fn subscriptions_change_as_futures() {
    let engine = Engine::open(Options::new()).unwrap();
    let mut client = engine.client();
    block_on(async {
        let mut subscription = client.psubscribe_async(["a*"]).await.unwrap();
        subscription.subscribe_async(["a", "b"]).await.unwrap();
        subscription.ssubscribe_async(["s"]).await.unwrap();
        assert_eq!(subscription.len(), 4);
        subscription.punsubscribe_async(["a*"]).await.unwrap();
        subscription.unsubscribe_async(["b"]).await.unwrap();
        subscription.sunsubscribe_async(["s"]).await.unwrap();
        assert_eq!(subscription.len(), 1);
        client.call_async(["PUBLISH", "a", "1"]).await.unwrap();
        let next = subscription.next_async().await.unwrap();
        assert_eq!(next, message("a", "1", MessageKind::Channel));
        let others = [client.subscribe_async(["c"]).await, client.ssubscribe_async(["c"]).await];
        others.into_iter().for_each(|other| assert_eq!(other.unwrap().len(), 1));
    });
}
