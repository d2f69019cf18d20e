//! Set indexes and drafts.

use russet::object::{
    Added, Combine, Created, Draft, DraftChange, DraftSettings, Drafts, Index, IndexSettings,
    LineItem, Loaded, Moved,
};
use russet::{Error, Kit, Member, RequestId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    sets_are_bounded
    a_member_moves_in_one_piece
    sets_are_combined
    a_scan_sees_all
    a_set_ends_with_its_ttl
    the_sums_of_a_draft_agree
    a_draft_is_for_its_version
    a_draft_of_many_tasks
    a_draft_is_bounded
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn index(kit: &Kit, members_max: u32) -> Index {
    Index::new(kit, "acme", IndexSettings { members_max, ttl: DAY }).unwrap()
}

/// S2 §7, §8: sets without bound, read whole.
async fn sets_are_bounded(kit: Kit) {
    let orders = index(&kit, 2);
    assert_eq!(orders.add("open", "a").await, Ok(Added::New));
    assert_eq!(orders.add("open", "a").await, Ok(Added::Already));
    assert_eq!(orders.add("open", "b").await, Ok(Added::New));
    assert_eq!(orders.add("open", "c").await, Ok(Added::Full));
    assert!(orders.contains("open", "a").await.unwrap());
    assert!(!orders.contains("open", "c").await.unwrap());
    assert_eq!(orders.remove("open", "a").await, Ok(true));
    assert_eq!(orders.remove("open", "a").await, Ok(false));
    assert_eq!(orders.len("open").await, Ok(1));
    assert!(matches!(orders.scan("open", None, 1001).await, Err(Error::Invalid(_))));
    let bad = IndexSettings { members_max: 0, ttl: DAY };
    assert!(matches!(Index::new(&kit, "acme", bad), Err(Error::Invalid(_))));
}

/// S1 §4, S2 §7: the index of the old status is never removed.
async fn a_member_moves_in_one_piece(kit: Kit) {
    let orders = Arc::new(index(&kit, 100));
    for order in 0..20_u64 {
        let _added = orders.add("open", order).await.unwrap();
    }
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..16 {
        let orders = orders.clone();
        tasks.spawn(async move {
            let mut moved = 0;
            for order in 0..20_u64 {
                let to = if task % 2 == 0 { "closed" } else { "paid" };
                let outcome = orders.move_to("open", to, order).await.unwrap();
                moved += u32::from(outcome == Moved::Moved);
            }
            moved
        });
    }
    let mut moved = 0;
    while let Some(ended) = tasks.join_next().await {
        moved += ended.unwrap();
    }
    assert_eq!(moved, 20);
    assert!(orders.is_empty("open").await.unwrap());
    assert_eq!(orders.count(Combine::All, &["closed", "paid"]).await, Ok(0));
    assert_eq!(orders.count(Combine::Any, &["closed", "paid"]).await, Ok(20));
    assert_eq!(orders.move_to("open", "closed", "none").await, Ok(Moved::Missing));
}

async fn sets_are_combined(kit: Kit) {
    let roles = index(&kit, 100);
    for (set, members) in [("a", "abcd"), ("b", "cdef"), ("c", "dx")] {
        for member in members.chars() {
            let _added = roles.add(set, member.to_string()).await.unwrap();
        }
    }
    let combined = async |how, sets: &[&str]| {
        let found: BTreeSet<Member> =
            roles.combine(how, sets, 100).await.unwrap().into_iter().collect();
        found.iter().map(|it| it.as_str().unwrap()).collect::<String>()
    };
    assert_eq!(combined(Combine::All, &["a", "b"]).await, "cd");
    assert_eq!(combined(Combine::All, &["a", "b", "c"]).await, "d");
    assert_eq!(combined(Combine::Any, &["a", "c"]).await, "abcdx");
    assert_eq!(combined(Combine::First, &["a", "b"]).await, "ab");
    assert_eq!(combined(Combine::All, &["a", "none"]).await, "");
    assert_eq!(roles.combine(Combine::Any, &["a", "b"], 2).await.unwrap().len(), 2);
    assert!(matches!(roles.combine(Combine::Any, &[], 2).await, Err(Error::Invalid(_))));
}

async fn a_scan_sees_all(kit: Kit) {
    let orders = index(&kit, 2000);
    for order in 0..600_u64 {
        let _added = orders.add("open", order).await.unwrap();
    }
    let (mut seen, mut cursor) = (BTreeSet::new(), None);
    loop {
        let page = orders.scan("open", cursor, 50).await.unwrap();
        seen.extend(page.members);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 600);
}

async fn a_set_ends_with_its_ttl(kit: Kit) {
    let settings = IndexSettings { members_max: 5, ttl: Duration::from_millis(100) };
    let orders = Index::new(&kit, "acme", settings).unwrap();
    let _added = orders.add("open", "a").await.unwrap();
    crate::eventually(async || orders.is_empty("open").await.unwrap()).await;
}

fn drafts(kit: &Kit) -> Drafts {
    Drafts::new(kit, DraftSettings { ttl: DAY, items_max: 50 }).unwrap()
}

fn item(sku: &str, quantity: u32, unit_minor: i64) -> LineItem {
    LineItem { sku: sku.into(), quantity, unit_minor }
}

async fn draft(drafts: &Drafts, id: &str) -> Draft {
    match drafts.load(id).await.unwrap() {
        Loaded::Found(found) => found.value,
        other => panic!("{other:?}"),
    }
}

async fn the_sums_of_a_draft_agree(kit: Kit) {
    let carts = drafts(&kit);
    assert_eq!(carts.create("c", "ann", "EUR", None).await, Ok(Created::Created));
    let _done = carts.set_item("c", &item("book", 2, 1250), None, None).await.unwrap();
    let _done = carts.set_item("c", &item("pen", 1, 99), None, None).await.unwrap();
    let _done = carts.set_tax("c", 190, None, None).await.unwrap();
    let large = carts.apply_discount("c", 2600, None, None).await;
    assert_eq!(large, Ok(DraftChange::TooLarge { subtotal_minor: 2599 }));
    let done = carts.apply_discount("c", 600, None, None).await;
    let wanted = DraftChange::Done { version: 5, subtotal_minor: 2599, total_minor: 2189 };
    assert_eq!(done, Ok(wanted));
    // Replaced and removed items; the discount is never more than the subtotal.
    let _done = carts.set_item("c", &item("book", 0, 0), None, None).await.unwrap();
    let cart = draft(&carts, "c").await;
    let sums = (cart.subtotal_minor, cart.discount_minor, cart.tax_minor, cart.total_minor);
    assert_eq!((sums, cart.item_count), ((99, 99, 190, 190), 1));
    assert_eq!(carts.items("c").await, Ok(vec![item("pen", 1, 99)]));
    assert_eq!(carts.remove("c").await, Ok(true));
    assert_eq!(carts.items("c").await, Ok(Vec::new()));
}

async fn a_draft_is_for_its_version(kit: Kit) {
    let carts = drafts(&kit);
    let missing = carts.set_item("c", &item("a", 1, 1), None, None).await;
    assert_eq!(missing, Ok(DraftChange::Missing));
    let _created = carts.create("c", "ann", "EUR", None).await.unwrap();
    let request = RequestId::random();
    for _ in 0..2 {
        let done = carts.set_item("c", &item("a", 1, 100), Some(1), Some(&request)).await;
        assert!(matches!(done, Ok(DraftChange::Done { version: 2, .. })));
    }
    let late = carts.apply_discount("c", 1, Some(1), None).await;
    assert_eq!(late, Ok(DraftChange::Conflict { version: 2 }));
}

async fn a_draft_of_many_tasks(kit: Kit) {
    let carts = Arc::new(drafts(&kit));
    let _created = carts.create("c", "ann", "EUR", None).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..32_u32 {
        let carts = carts.clone();
        tasks.spawn(async move {
            for round in 0..5_u32 {
                let sku = format!("sku-{}", (task + round) % 7);
                let item = item(&sku, 1 + task % 3, i64::from(100 + round));
                let _done = carts.set_item("c", &item, None, None).await.unwrap();
                let _done = carts.apply_discount("c", 50, None, None).await.unwrap();
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let (cart, items) = (draft(&carts, "c").await, carts.items("c").await.unwrap());
    let sum: i64 = items.iter().map(|it| i64::from(it.quantity) * it.unit_minor).sum();
    assert_eq!(cart.subtotal_minor, sum);
    assert_eq!(cart.total_minor, sum - cart.discount_minor + cart.tax_minor);
    assert_eq!(cart.item_count as usize, items.len());
}

/// S4 §17: items as unbounded fields.
async fn a_draft_is_bounded(kit: Kit) {
    let carts = Drafts::new(&kit, DraftSettings { ttl: DAY, items_max: 1 }).unwrap();
    let _created = carts.create("c", "ann", "EUR", None).await.unwrap();
    let _done = carts.set_item("c", &item("a", 1, 1), None, None).await.unwrap();
    let full = carts.set_item("c", &item("b", 1, 1), None, None).await;
    assert_eq!(full, Ok(DraftChange::Full));
    assert!(matches!(
        carts.set_item("c", &item("a", 1, -1), None, None).await,
        Err(Error::Invalid(_))
    ));
    assert_eq!(draft(&carts, "c").await.total_minor, 1);
}
