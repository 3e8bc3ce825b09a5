//! The agents' page.

use hedgerow_core::event::ConnectionId;
use hedgerow_core::view::{AgentView, FleetSnapshot, QuarantineView};
use hedgerow_protocol::ids::InstanceId;

use crate::ask::{Answer, fleet_pages, get, get_part, pages};
use crate::fleet;
use crate::stage::VIEWER;

/// The random ends of the instances on a page, in their order.
fn rows(page: &Answer) -> Vec<String> {
    let codes = page.body.split("<code class=\"instance\" title=\"").skip(1);
    codes
        .map(|it| {
            let text = it.split('>').nth(1).unwrap();
            text.split('<').next().unwrap().to_owned()
        })
        .collect()
}

#[tokio::test]
async fn u09_a_row_says_what_is_held_against_what_is_wanted() {
    let mut snapshot = fleet::snapshot(0);
    snapshot.agents[3].routes[0].quarantine = Some(QuarantineView {
        since: fleet::START,
        held: false,
        words: "calls crossed 95 % of 120, others' 5 %".into(),
        evidence: Vec::new(),
        reports: 17,
        calls: 4_000,
    });
    snapshot.agents[2].skew_ms = None;
    let (_, router) = pages(snapshot);
    let page = get(&router, "/agents", VIEWER).await;
    let text = page.text();
    for words in [
        "12 in all",
        "10 live",
        "1 stale",
        "1 lost",
        "1 refuse",
        "1 in quarantine",
        "1 with another time",
        // Applied, pending on one that is stale, refused with the reason.
        "2.3.7 applied",
        "2.3.6 wanted 2.3.7 stale; last known: pending",
        "refused: lease: 2s is out of range",
        // Thresholds over its routes, skew, reports.
        "1.49–221",
        "+1201",
        "no value: the agent has not told its time",
        "report refused: routes[0].totals: hedged is 9, more than crossed (3)",
        "in quarantine for 0 s: calls crossed 95 % of 120, others' 5 %; 17 reports of 4000 calls",
        "from 10.0.1.14:51104, heard 0 s ago",
    ] {
        assert!(
            text.contains(&words.replace('\'', "&#39;")),
            "{words}: {text}"
        );
    }
    assert!(page.body.contains("title=\"0 refused, 17 left out\">17<"));
}

#[tokio::test]
async fn u09_filter_and_order_stand_in_the_address() {
    let (_, router) = fleet_pages();
    let ask = async |query: &str| rows(&get(&router, &format!("/agents?{query}"), VIEWER).await);
    for (query, first, count) in [
        // Those in trouble first: lost, stale, refusing.
        ("", "00000000bbbb", 12),
        ("sort=skew", "000000005555", 12),
        ("sort=dropped", "000000004444", 12),
        ("sort=connected", "000000000000", 12),
        ("sort=service", "000000001111", 12),
        ("state=refused", "000000004444", 1),
        ("state=stale", "00000000aaaa", 1),
        ("q=CART+eu-1b", "00000000aaaa", 4),
        ("q=refused", "000000004444", 1),
        ("q=cart&state=live&sort=sync", "000000004444", 3),
        ("sort=nonsense&state=%3Cb%3E", "00000000bbbb", 12),
    ] {
        let found = ask(query).await;
        assert_eq!(found.len(), count, "{query}: {found:?}");
        assert_eq!(found[0], first, "{query}: {found:?}");
    }
    // A link to another order keeps the rest; the stream has all of it.
    let page = get(&router, "/agents?q=cart&state=live", VIEWER).await.body;
    assert!(
        page.contains("href=\"/agents?q=cart&#38;state=live&#38;sort=skew\""),
        "{page}"
    );
    assert!(page.contains("/live?page=agents&#38;q=cart&#38;state=live\""));
    let none = get(&router, "/agents?q=nobody", VIEWER).await.text();
    assert!(none.contains("No agent matches nobody"), "{none}");
}

fn crowd(count: u64) -> FleetSnapshot {
    let mut snapshot = fleet::snapshot(0);
    let like = snapshot.agents[0].clone();
    snapshot.agents = (0..count)
        .map(|i| AgentView {
            connection: ConnectionId(i),
            instance: InstanceId::from_u128(
                0x0194_c0de_7000_8000_0000_0000_0000_0000 + u128::from(i),
            ),
            ..like.clone()
        })
        .collect();
    snapshot
}

#[tokio::test]
async fn u09_ten_thousand_agents_come_a_hundred_at_a_time() {
    let (_, router) = pages(crowd(10_000));
    let page = get(&router, "/agents", VIEWER).await;
    assert_eq!(rows(&page).len(), 100);
    assert!(
        page.text().contains("1 to 100 of 10 000 shown"),
        "{}",
        page.text()
    );
    assert!(page.body.len() < 1_500_000, "{}", page.body.len());
    let second = get(&router, "/agents?n=2", VIEWER).await;
    assert_eq!(rows(&second)[0], format!("{:012x}", 100));
    assert!(second.body.contains("href=\"/agents\">First</a>"));
    assert!(second.body.contains("href=\"/agents?n=100\">Last</a>"));
    // Beyond the end is the end; each agent is on one page.
    let last = get(&router, "/agents?n=4711", VIEWER).await;
    assert_eq!(rows(&last).last().unwrap(), &format!("{:012x}", 9_999));
    assert!(!last.body.contains(">Next</a>"));
    let whole = get(&router, "/agents?n=2", VIEWER).await.body;
    assert!(whole.contains(&get_part(&router, "/agents?n=2", VIEWER).await.body));
}
