//! Records, their fields, indexes and drafts.

mod sets;

use russet::object::{
    Created, Expected, Fault, FieldInfo, Found, Incremented, Json, Loaded, Newer, ObjectSettings,
    Objects, RawFields, Reason, Record, Updated, Upgraded, View,
};
use russet::{Error, Kit, ManualTime, Options, Request, RequestId};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_record_comes_back_as_it_was
    a_view_reads_and_writes_its_fields_only
    an_update_never_creates
    an_update_of_an_old_version_is_refused
    a_request_is_written_once
    increments_keep_to_their_type
    increments_of_many_tasks_all_count
    what_is_not_whole_is_corrupt
    older_schemas_are_read
    a_field_ends_before_its_record
    a_field_that_has_ended_can_be_written_again
    old_names_are_written_while_they_are_read
    every_record_has_a_ttl
    a_slow_copy_does_not_replace_a_newer_one
    a_copy_is_rebuilt
    large_records_are_refused
    reserved_names_are_no_fields
}

#[derive(Record, Clone, Debug, PartialEq)]
#[record(purpose = "profile", schema = 3, migrate = migrate_profile)]
struct Profile {
    display_name: String,
    #[record(was = "mail")]
    email_masked: String,
    #[record(default)]
    login_count: u8,
    #[record(rename = "localeCode")]
    locale: Option<String>,
    tags: Json<Vec<String>>,
    #[record(ttl_ms = 150)]
    challenge: Option<String>,
    is_active: bool,
}

/// Schema 1 had a status in place of `is_active`.
fn migrate_profile(from: u32, fields: &mut RawFields) -> Result<(), Fault> {
    if from < 2 && fields.get("is_active").is_none() {
        fields.set("is_active", "1");
    }
    Ok(())
}

#[derive(Record, Debug, PartialEq)]
#[record(view_of = Profile)]
struct Shown {
    display_name: String,
    locale: Option<String>,
}

#[derive(Record, Debug, PartialEq)]
#[record(view_of = Profile)]
struct Challenged {
    challenge: Option<String>,
}

const FAMILY: russet::key::Family = russet::key::Family { purpose: "object.profile", version: 1 };

fn ann() -> Profile {
    Profile {
        display_name: "Ann".into(),
        email_masked: "a***@example.org".into(),
        login_count: 0,
        locale: None,
        tags: Json(vec!["x".into()]),
        challenge: None,
        is_active: true,
    }
}

fn profiles(kit: &Kit) -> Objects<Profile> {
    let settings = ObjectSettings { ttl: Duration::from_secs(3600), bytes_max: 1024 };
    Objects::new(kit, settings).unwrap()
}

async fn raw(kit: &Kit, id: &str, command: &str, args: &[&str]) -> russet::Reply {
    let key = kit.keys(FAMILY, id).unwrap().key("record");
    let request = Request::new(command).key(&key);
    kit.call(&args.iter().fold(request, |request, arg| request.arg(*arg))).await.unwrap()
}

fn found<V>(loaded: Loaded<V>) -> Found<V> {
    match loaded {
        Loaded::Found(found) => found,
        Loaded::Missing => panic!("missing"),
        Loaded::Corrupt(fault) => panic!("{fault}"),
    }
}

async fn a_record_comes_back_as_it_was(kit: Kit) {
    let profiles = profiles(&kit);
    assert_eq!(profiles.load("ann").await, Ok(Loaded::Missing));
    assert_eq!(profiles.create("ann", &ann(), None).await, Ok(Created::Created));
    assert_eq!(profiles.create("ann", &ann(), None).await, Ok(Created::Exists { version: 1 }));
    let first = found(profiles.load("ann").await.unwrap());
    assert_eq!((&first.value, first.version, first.schema), (&ann(), 1, 3));
    assert!(first.created_at_ms > 1_600_000_000_000);
    assert!(first.expires_in > Duration::from_secs(3000));
    let other = Profile { locale: Some("de".into()), is_active: false, ..ann() };
    assert_eq!(profiles.put("ann", &other, None).await, Ok(2));
    // What the record no longer has is gone.
    assert_eq!(profiles.put("ann", &ann(), None).await, Ok(3));
    let last = found(profiles.load("ann").await.unwrap());
    assert_eq!((last.value, last.created_at_ms), (ann(), first.created_at_ms));
    assert_eq!(profiles.remove("ann").await, Ok(true));
    assert_eq!(profiles.remove("ann").await, Ok(false));
    assert!(!format!("{first:?}").contains("Ann"));
}

/// S4 §12: the hot path reads the whole hash.
async fn a_view_reads_and_writes_its_fields_only(kit: Kit) {
    let names: Vec<&str> =
        <Shown as View<Profile>>::FIELDS.iter().map(|it: &FieldInfo| it.name).collect();
    assert_eq!(names, ["display_name", "localeCode"]);
    let profiles = profiles(&kit);
    profiles.put("ann", &ann(), None).await.unwrap();
    let changed = Shown { display_name: "Ann B.".into(), locale: Some("fr".into()) };
    let updated = profiles.update("ann", Expected::Any, &changed, None).await;
    assert_eq!(updated, Ok(Updated::Updated { version: 2 }));
    let loaded = profiles.load_view::<Shown>("ann").await.unwrap();
    assert_eq!(loaded.into_value(), Some(changed));
    let whole = found(profiles.load("ann").await.unwrap()).value;
    assert_eq!(whole.email_masked, ann().email_masked);
    // None removes the field.
    let changed = Shown { display_name: "Ann".into(), locale: None };
    let _updated = profiles.update("ann", Expected::Any, &changed, None).await.unwrap();
    assert_eq!(raw(&kit, "ann", "HEXISTS", &["localeCode"]).await.as_int(), Some(0));
}

/// S4 §11: an update of an expired record makes one of a single field, without TTL.
async fn an_update_never_creates(kit: Kit) {
    let profiles = profiles(&kit);
    let shown = Shown { display_name: "x".into(), locale: None };
    let updated = profiles.update("nobody", Expected::Any, &shown, None).await;
    assert_eq!(updated, Ok(Updated::Missing));
    let incremented = profiles.increment("nobody", Profile::LOGIN_COUNT, 1, None).await;
    assert_eq!(incremented, Ok(Incremented::Missing));
    assert_eq!(profiles.touch("nobody").await, Ok(false));
    assert_eq!(raw(&kit, "nobody", "EXISTS", &[]).await.as_int(), Some(0));
}

async fn an_update_of_an_old_version_is_refused(kit: Kit) {
    let profiles = std::sync::Arc::new(profiles(&kit));
    profiles.put("ann", &ann(), None).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..32 {
        let profiles = profiles.clone();
        tasks.spawn(async move {
            let shown = Shown { display_name: format!("n{task}"), locale: None };
            profiles.update("ann", Expected::Version(1), &shown, None).await.unwrap()
        });
    }
    let mut done = 0;
    while let Some(ended) = tasks.join_next().await {
        match ended.unwrap() {
            Updated::Updated { version: 2 } => done += 1,
            Updated::Conflict { version: 2 } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(done, 1);
}

async fn a_request_is_written_once(kit: Kit) {
    let profiles = profiles(&kit);
    let (create, update, add) = (RequestId::random(), RequestId::random(), RequestId::random());
    for _ in 0..2 {
        let created = profiles.create("ann", &ann(), Some(&create)).await;
        assert_eq!(created, Ok(Created::Created));
    }
    let shown = Shown { display_name: "x".into(), locale: None };
    for _ in 0..2 {
        let updated = profiles.update("ann", Expected::Version(1), &shown, Some(&update)).await;
        assert_eq!(updated, Ok(Updated::Updated { version: 2 }));
    }
    for _ in 0..2 {
        let done = profiles.increment("ann", Profile::LOGIN_COUNT, 5, Some(&add)).await;
        assert_eq!(done, Ok(Incremented::Done { value: 5, version: 3 }));
    }
}

async fn increments_keep_to_their_type(kit: Kit) {
    let profiles = profiles(&kit);
    profiles.put("ann", &ann(), None).await.unwrap();
    let add = async |by| profiles.increment("ann", Profile::LOGIN_COUNT, by, None).await.unwrap();
    assert_eq!(add(255).await, Incremented::Done { value: 255, version: 2 });
    assert_eq!(add(1).await, Incremented::OutOfBounds { value: 255 });
    assert_eq!(add(-256).await, Incremented::OutOfBounds { value: 255 });
    raw(&kit, "ann", "HSET", &["login_count", "many"]).await;
    assert_eq!(add(1).await, Incremented::Corrupt);
}

async fn increments_of_many_tasks_all_count(kit: Kit) {
    let profiles = std::sync::Arc::new(profiles(&kit));
    profiles.put("ann", &ann(), None).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let profiles = profiles.clone();
        tasks.spawn(async move {
            for _ in 0..5 {
                let add = profiles.increment("ann", Profile::LOGIN_COUNT, 1, None);
                assert!(matches!(add.await, Ok(Incremented::Done { .. })));
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let ann = found(profiles.load("ann").await.unwrap());
    assert_eq!((ann.value.login_count, ann.version), (100, 101));
}

/// S4 §10: an absent creation time becomes 1970, and a bad number throws.
async fn what_is_not_whole_is_corrupt(kit: Kit) {
    let profiles = profiles(&kit);
    for (command, args, field, reason) in [
        ("HDEL", vec!["display_name"], "display_name", Reason::Missing),
        ("HDEL", vec!["created_at_ms"], "created_at_ms", Reason::Missing),
        ("HDEL", vec!["schema_version"], "schema", Reason::Missing),
        ("HSET", vec!["login_count", "many"], "login_count", Reason::Unreadable),
        ("HSET", vec!["is_active", "yes"], "is_active", Reason::Unreadable),
        ("HSET", vec!["tags", "{"], "tags", Reason::Unreadable),
        ("PERSIST", vec![], "ttl_ms", Reason::Missing),
    ] {
        profiles.put("ann", &ann(), None).await.unwrap();
        raw(&kit, "ann", command, &args).await;
        let corrupt = Loaded::Corrupt(Fault { field, reason });
        assert_eq!(profiles.load("ann").await, Ok(corrupt));
        profiles.remove("ann").await.unwrap();
    }
    // What a view does not read does not matter to it.
    profiles.put("ann", &ann(), None).await.unwrap();
    raw(&kit, "ann", "HSET", &["login_count", "many"]).await;
    assert!(matches!(profiles.load_view::<Shown>("ann").await, Ok(Loaded::Found(_))));
}

/// S4 §9: renamed and missing fields of older schemas.
async fn older_schemas_are_read(kit: Kit) {
    let profiles = profiles(&kit);
    profiles.put("ann", &ann(), None).await.unwrap();
    raw(&kit, "ann", "HSET", &["schema_version", "1", "mail", "old@example.org"]).await;
    raw(&kit, "ann", "HDEL", &["email_masked", "is_active", "login_count"]).await;
    let old = found(profiles.load("ann").await.unwrap());
    assert_eq!((old.value.email_masked.as_str(), old.schema), ("old@example.org", 1));
    assert!(old.value.is_active);
    assert_eq!(profiles.upgrade("ann").await, Ok(Upgraded::Upgraded { version: 2 }));
    assert_eq!(profiles.upgrade("ann").await, Ok(Upgraded::Current));
    assert_eq!(profiles.upgrade("nobody").await, Ok(Upgraded::Missing));
    // The old name is given up.
    assert_eq!(raw(&kit, "ann", "HEXISTS", &["mail"]).await.as_int(), Some(0));
    let new = found(profiles.load("ann").await.unwrap());
    assert_eq!((new.value, new.schema), (old.value, 3));
    // A newer program's records are still read.
    raw(&kit, "ann", "HSET", &["schema_version", "9"]).await;
    assert_eq!(found(profiles.load("ann").await.unwrap()).schema, 9);
    let shown = Shown { display_name: "x".into(), locale: None };
    let _updated = profiles.update("ann", Expected::Any, &shown, None).await.unwrap();
    assert_eq!(found(profiles.load("ann").await.unwrap()).schema, 9);
}

/// S4 §6: where the server can't expire fields too. §13: a write clears the field's TTL.
async fn a_field_ends_before_its_record(kit: Kit) {
    let profiles = profiles(&kit);
    profiles.put("ann", &ann(), None).await.unwrap();
    let challenged = Challenged { challenge: Some("c-1".into()) };
    let _updated = profiles.update("ann", Expected::Any, &challenged, None).await.unwrap();
    crate::eventually(async || {
        let ann = found(profiles.load("ann").await.unwrap()).value;
        ann.challenge.is_none() && ann.display_name == "Ann"
    })
    .await;
    // One that someone wrote without its deadline is not trusted.
    raw(&kit, "ann", "HSET", &["challenge", "forged"]).await;
    let loaded = profiles.load_view::<Challenged>("ann").await.unwrap();
    assert_eq!(loaded.into_value(), Some(Challenged { challenge: None }));
    // It can be removed before its time.
    let _updated = profiles.update("ann", Expected::Any, &challenged, None).await.unwrap();
    let none = Challenged { challenge: None };
    let _updated = profiles.update("ann", Expected::Any, &none, None).await.unwrap();
    assert_eq!(raw(&kit, "ann", "HEXISTS", &["challenge.expires_at_ms"]).await.as_int(), Some(0));
}

/// Redisson 4960 and 3078: an entry that is written again after its time was over stays invisible,
/// as its old deadline is still there. Redisson 1977: one ends only if some process sweeps.
async fn a_field_that_has_ended_can_be_written_again(kit: Kit) {
    let profiles = profiles(&kit);
    profiles.put("ann", &ann(), None).await.unwrap();
    for round in 0..2 {
        let challenged = Challenged { challenge: Some(format!("c-{round}")) };
        let _updated = profiles.update("ann", Expected::Any, &challenged, None).await.unwrap();
        let deadline = raw(&kit, "ann", "HGET", &["challenge.expires_at_ms"]).await.as_int();
        let now = kit.call(&Request::new("TIME")).await.unwrap();
        let now_ms = now.as_list().unwrap()[0].as_int().unwrap() * 1000;
        // A slow machine may be past it already.
        assert!(deadline.is_none_or(|deadline| deadline > now_ms - 30_000));
        crate::eventually(async || {
            let loaded = profiles.load_view::<Challenged>("ann").await.unwrap();
            loaded.into_value() == Some(Challenged { challenge: None })
        })
        .await;
    }
}

#[derive(Record, Clone, Debug, PartialEq)]
#[record(purpose = "account", schema = 2)]
struct Account {
    #[record(was = "account_id", write_both)]
    customer_id: String,
}

/// S4 §9.2: while programs that know the old name only are still running, both are written.
async fn old_names_are_written_while_they_are_read(kit: Kit) {
    let settings = ObjectSettings { ttl: Duration::from_secs(60), bytes_max: 100 };
    let accounts = Objects::<Account>::new(&kit, settings).unwrap();
    let account = Account { customer_id: "c-1".into() };
    accounts.put("a", &account, None).await.unwrap();
    let family = russet::key::Family { purpose: "object.account", version: 1 };
    let key = kit.keys(family, "a").unwrap().key("record");
    let hget = Request::new("HGET").key(&key).arg("account_id");
    let old = kit.call(&hget).await.unwrap();
    assert_eq!(old.as_bytes(), Some(b"c-1".as_slice()));
    assert_eq!(accounts.load("a").await.unwrap().into_value(), Some(account));
}

/// S4 §26.5: ephemeral records without TTL.
async fn every_record_has_a_ttl(kit: Kit) {
    let settings = ObjectSettings { ttl: Duration::from_millis(150), bytes_max: 1024 };
    let profiles = Objects::<Profile>::new(&kit, settings).unwrap();
    profiles.put("ann", &ann(), None).await.unwrap();
    crate::eventually(async || profiles.load("ann").await.unwrap() == Loaded::Missing).await;
    let bad = ObjectSettings { ttl: Duration::ZERO, bytes_max: 1 };
    assert!(matches!(Objects::<Profile>::new(&kit, bad), Err(Error::Invalid(_))));
}

/// S4 §15: a loader that was slow overwrites what a faster one has read since.
async fn a_slow_copy_does_not_replace_a_newer_one(kit: Kit) {
    let profiles = profiles(&kit);
    let new = Profile { display_name: "new".into(), ..ann() };
    assert_eq!(profiles.put_newer("ann", &new, 7).await, Ok(Newer::Stored { version: 1 }));
    let stale = Newer::Stale { source_version: 7 };
    assert_eq!(profiles.put_newer("ann", &ann(), 6).await, Ok(stale));
    assert_eq!(profiles.put_newer("ann", &ann(), 7).await, Ok(stale));
    assert_eq!(found(profiles.load("ann").await.unwrap()).value, new);
    assert_eq!(profiles.put_newer("ann", &ann(), 8).await, Ok(Newer::Stored { version: 2 }));
}

async fn a_copy_is_rebuilt(kit: Kit) {
    let profiles = profiles(&kit);
    let built = profiles.load_or_rebuild("ann", || async { Ok((ann(), 1)) }).await;
    assert_eq!(built, Ok(ann()));
    let kept = profiles.load_or_rebuild("ann", || async { Err(Error::Invalid("".into())) }).await;
    assert_eq!(kept, Ok(ann()));
    raw(&kit, "ann", "HDEL", &["tags"]).await;
    let other = Profile { display_name: "again".into(), ..ann() };
    let rebuilt = profiles.load_or_rebuild("ann", || async { Ok((other.clone(), 2)) }).await;
    assert_eq!(rebuilt.as_ref(), Ok(&other));
    assert_eq!(found(profiles.load("ann").await.unwrap()).value, other);
}

/// S4 §20: no bound on what a hash holds.
async fn large_records_are_refused(kit: Kit) {
    let profiles = profiles(&kit);
    let large = Profile { display_name: "x".repeat(2000), ..ann() };
    assert!(matches!(profiles.put("ann", &large, None).await, Err(Error::Invalid(_))));
    assert_eq!(profiles.load("ann").await, Ok(Loaded::Missing));
}

/// The same without a server's help, exactly to the millisecond.
#[tokio::test]
async fn a_field_ends_at_its_deadline() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let profiles = profiles(&kit);
    profiles.put("ann", &ann(), None).await.unwrap();
    let is_there = async || {
        let loaded = profiles.load_view::<Challenged>("ann").await.unwrap();
        loaded.into_value().unwrap().challenge.is_some()
    };
    let challenged = Challenged { challenge: Some("c".into()) };
    for _ in 0..2 {
        let _updated = profiles.update("ann", Expected::Any, &challenged, None).await.unwrap();
        time.advance(Duration::from_millis(149));
        assert!(is_there().await);
        time.advance(Duration::from_millis(1));
        assert!(!is_there().await);
    }
}

/// S4 §14.2: a write for every request; below a quarter is enough.
#[tokio::test]
async fn updates_keep_the_deadline_and_touches_move_it() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let profiles = profiles(&kit);
    profiles.put("ann", &ann(), None).await.unwrap();
    let left = async || found(profiles.load("ann").await.unwrap()).expires_in.as_secs();
    time.advance(Duration::from_secs(2000));
    let shown = Shown { display_name: "x".into(), locale: None };
    let _updated = profiles.update("ann", Expected::Any, &shown, None).await.unwrap();
    assert_eq!(profiles.touch("ann").await, Ok(true));
    assert_eq!(left().await, 1600);
    time.advance(Duration::from_secs(800));
    assert_eq!(profiles.touch("ann").await, Ok(true));
    assert_eq!(left().await, 3600);
}

/// Whoever wrote, removed or added to a field `version` defeated the check of versions.
async fn reserved_names_are_no_fields(kit: Kit) {
    let family = russet::key::Family { purpose: "object.raw", version: 1 };
    let keys = kit.keys(family, "a").unwrap();
    let keys = [keys.key("request"), keys.key("record")];
    let write = ["0", "PUT", "", "60000", "RENEW", "1"];
    let first = [&write[..], &["1", "a", "1", "0"]].concat();
    assert!(crate::raw_step(&kit, "object_write", &keys, &first).await.is_ok());
    let reserved =
        ["version", "schema_version", "created_at_ms", "updated_at_ms", "source_version", ""];
    for name in reserved.into_iter().chain(["a.expires_at_ms"]) {
        let set = [&write[..], &["1", name, "7", "0"]].concat();
        let removed = [&write[..], &["1", "a", "1", "0", name]].concat();
        let added = vec!["0", name, "1", "0", "10"];
        for (step, args) in
            [("object_write", set), ("object_write", removed), ("object_increment", added)]
        {
            let refused = crate::raw_step(&kit, step, &keys, &args).await;
            assert!(matches!(refused, Err(Error::Invalid(_))), "{step} {name:?}: {refused:?}");
        }
    }
    let version = Request::new("HGET").key(&keys[1]).arg("version");
    assert_eq!(kit.call(&version).await.unwrap().into_bytes().unwrap(), Some(b"1".to_vec()));
}
