use super::*;

/// Columns of 10 s, each a p95 for each replica; None: too few calls.
fn course(columns: &[&[Option<f32>]]) -> ReplicaCourse {
    let column = |(number, cells): (usize, &&[Option<f32>])| {
        let names = (0..cells.len()).map(|i| ReplicaName::new(&format!("r{i}")).unwrap());
        Arc::new(ReplicaColumn {
            at: at(number + 1),
            span: COLUMN_EACH,
            replicas: Arc::new(names.collect()),
            cells: cells
                .iter()
                .map(|p95_ms| ReplicaCell {
                    calls: 200,
                    p95_ms: *p95_ms,
                    ..ReplicaCell::default()
                })
                .collect(),
        })
    };
    read(columns.iter().enumerate().map(column).collect())
}

fn at(column: usize) -> Moment {
    Moment::from_millis(10_000 * column as u64)
}

const WELL: &[Option<f32>] = &[Some(20.0), Some(21.0), Some(19.0), Some(22.0)];
const ONE_SLOW: &[Option<f32>] = &[Some(20.0), Some(90.0), Some(19.0), Some(22.0)];
const ALL_SLOW: &[Option<f32>] = &[Some(80.0), Some(90.0), Some(85.0), Some(81.0)];

#[test]
fn u06_a_row_is_a_replica_and_a_column_a_shared_cause() {
    for (columns, rows, together) in [
        (vec![WELL; 12], 0, 0),
        ([vec![WELL; 6], vec![ONE_SLOW; 6]].concat(), 1, 0),
        ([vec![WELL; 8], vec![ALL_SLOW; 4]].concat(), 0, 1),
        // A shared cause and, beside it, a replica of its own.
        (
            [vec![ONE_SLOW; 6], vec![ALL_SLOW; 3], vec![ONE_SLOW; 3]].concat(),
            1,
            1,
        ),
        // What is over names nobody.
        ([vec![ONE_SLOW; 6], vec![WELL; 6]].concat(), 0, 0),
    ] {
        let slow = course(&columns).slow.unwrap();
        assert_eq!(slow.rows.len(), rows, "{slow:?}");
        assert_eq!(slow.columns.len(), together, "{slow:?}");
        assert!((slow.limit / slow.usual - 2.0).abs() < 1e-9);
    }
}

#[test]
fn u06_the_bad_replica_is_named_with_its_cells_and_the_time_with_its_ends() {
    let columns = [vec![ONE_SLOW; 5], vec![ALL_SLOW; 2], vec![ONE_SLOW; 5]].concat();
    let slow = course(&columns).slow.unwrap();
    let row = &slow.rows[0];
    assert_eq!((row.replica.as_str(), row.bad, row.known), ("r1", 10, 10));
    let time = slow.columns[0];
    assert_eq!((time.from, time.until, time.lasts), (at(5), at(7), false));
    assert_eq!((time.bad, time.known), (4, 4));
    assert_eq!(slow.lasting(), None);
    let lasting = course(&[vec![WELL; 8], vec![ALL_SLOW; 2]].concat());
    assert!(lasting.slow.unwrap().lasting().is_some());
}

#[test]
fn u06_what_is_not_known_is_neither_good_nor_bad() {
    assert_eq!(course(&[]).slow, None);
    assert_eq!(
        course(&[[None, None].as_slice(); 90]).slow,
        None,
        "no value at all"
    );
    assert_eq!(
        course(&[WELL; 2]).slow,
        None,
        "too little to say what is usual"
    );
    let sparse: &[Option<f32>] = &[Some(20.0), None, Some(90.0), None];
    let slow = course(&[vec![WELL; 6], vec![sparse; 2]].concat())
        .slow
        .unwrap();
    assert!(
        slow.columns.is_empty(),
        "one of two known is no shared cause"
    );
}

#[test]
fn u06_hedges_that_lose_on_one_replica_are_its_own_matter() {
    let column = |number: usize, wins: [u32; 4], hedged: u32| {
        let cell = |won| ReplicaCell {
            hedged,
            won,
            ..ReplicaCell::default()
        };
        let names = (0..4).map(|i| ReplicaName::new(&format!("r{i}")).unwrap());
        Arc::new(ReplicaColumn {
            at: at(number),
            span: COLUMN_EACH,
            replicas: Arc::new(names.collect()),
            cells: wins.map(cell).to_vec(),
        })
    };
    let losing = |hedged, wins| {
        let columns = (1..=12)
            .map(|number| column(number, wins, hedged))
            .collect();
        read(columns).losing
    };
    let found = losing(20, [14, 15, 3, 13]).unwrap();
    assert_eq!(found.rows[0].replica.as_str(), "r2");
    assert!(found.limit < found.usual);
    assert_eq!(losing(5, [4, 4, 0, 4]), None, "five hedges are chance");
}
