//! Versions of values, and declarations.

use super::*;
use crate::state::error::TableOpenError;

#[test]
fn tables_are_used_as_they_were_declared_or_not_at_all() {
    let mut fixture = Fixture::new().declare(&ORDERS);
    let wrong_key: Table<u32, Order> = Table::new("orders");
    let wrong_codec: Table<u64, Order> = Table::new("orders").bincode();
    let what = |result: Result<(), TableError>| match result {
        Err(TableError::DeclaredOtherwise { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let tx = fixture.tx();
    assert_eq!(what(tx.table(&wrong_key).map(drop)), "key type");
    assert_eq!(what(tx.table(&wrong_codec).map(drop)), "codec");
    assert_eq!(what(tx.table(&ORDERS_V2).map(drop)), "version");
    assert!(tx.into_writes().is_err(), "asking for a wrong table is sticky too");
    assert!(matches!(fixture.tx().table(&STOCK), Err(TableError::NotDeclared { .. })));
    let id = fixture.engine.catalog().id("orders").unwrap();
    let twice = Arc::get_mut(&mut fixture.declared).unwrap().add(&ORDERS, id);
    assert!(matches!(twice, Err(TableOpenError::DeclaredTwice { .. })));
}

#[test]
fn rows_of_an_old_version_are_upgraded_as_they_are_read() {
    let mut old = Fixture::new().declare(&ORDERS_V1);
    old.run(|tx| tx.table(&ORDERS_V1).unwrap().put(1, &OrderV1 { item: "tea".to_owned() }).unwrap());
    let mut new = old.reopened().declare(&ORDERS_V2);
    assert_eq!(new.read(&ORDERS_V2).get(1).unwrap(), Some(order("tea", 1)));
    assert_eq!(new.read(&ORDERS_V2).range(..).unwrap().next().unwrap().unwrap(), (1, order("tea", 1)));
    new.run(|tx| {
        tx.table(&ORDERS_V2).unwrap().update(1, |order| order.count = 5).unwrap();
    });
    assert_eq!(new.read(&ORDERS_V2).get(1).unwrap(), Some(order("tea", 5)));
    let rolled_back = new.reopened().declare(&ORDERS_V1);
    let error = rolled_back.read(&ORDERS_V1).get(1).unwrap_err();
    assert!(error.to_string().contains("it has version 2, the table 1"), "{error}");
}

#[test]
fn upgrades_chain_through_from_in_any_codec() {
    #[derive(Serialize, Deserialize)]
    struct V1(u8);
    #[derive(Serialize, Deserialize)]
    struct V2(u8, u8);
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct V3(u8, u8, u8);
    impl From<V1> for V2 {
        fn from(old: V1) -> Self {
            Self(old.0, 2)
        }
    }
    impl From<V2> for V3 {
        fn from(old: V2) -> Self {
            Self(old.0, old.1, 3)
        }
    }
    impl From<V1> for V3 {
        fn from(old: V1) -> Self {
            V2::from(old).into()
        }
    }
    const ONE: Table<u8, V1> = Table::new("t").bincode();
    const TWO: Table<u8, V2> = Table::new("t").bincode().version(2);
    const THREE: Table<u8, V3> = Table::new("t").bincode().version(3).upgrade_from::<V1>(1).upgrade_from::<V2>(2);
    const RETIRED: Table<u8, V3> = Table::new("t").bincode().version(3).retire(1).upgrade_from::<V2>(2);
    let mut fixture = Fixture::new().declare(&ONE);
    fixture.run(|tx| tx.table(&ONE).unwrap().put(1, &V1(1)).unwrap());
    let mut fixture = fixture.reopened().declare(&TWO);
    fixture.run(|tx| tx.table(&TWO).unwrap().put(2, &V2(7, 7)).unwrap());
    let fixture = fixture.reopened().declare(&THREE);
    assert_eq!(fixture.read(&THREE).get(1).unwrap(), Some(V3(1, 2, 3)));
    assert_eq!(fixture.read(&THREE).get(2).unwrap(), Some(V3(7, 7, 3)));
    let fixture = fixture.reopened().declare(&RETIRED);
    let error = fixture.read(&RETIRED).get(1).unwrap_err();
    assert!(error.to_string().contains("at version 1: this version was declared as retired"), "{error}");
    assert_eq!(fixture.read(&RETIRED).get(2).unwrap(), Some(V3(7, 7, 3)));
}

#[test]
fn declarations_say_whether_a_stored_table_can_be_used() {
    let check = |stored: &TableDeclaration, declared: &TableDeclaration| TableDeclaration::check(stored, declared);
    let stored = ORDERS.declaration();
    assert_eq!(check(&stored, &ORDERS.declaration()), Ok(Compat::Same));
    let other_key: Table<i64, Order> = Table::new("orders");
    assert!(matches!(check(&stored, &other_key.declaration()), Err(TableOpenError::KeyType { .. })));
    assert!(matches!(check(&stored, &ORDERS.bincode().declaration()), Err(TableOpenError::Codec { .. })));
    let no_upgrade = ORDERS.version(2).declaration();
    assert!(matches!(check(&stored, &no_upgrade), Err(TableOpenError::NoUpgrade { stored: 1, .. })));

    let Ok(Compat::Redeclare(second)) = check(&stored, &ORDERS_V2.declaration()) else { panic!("an upgrade is fine") };
    assert_eq!((second.version, second.rows_of.as_slice()), (2, [1, 2].as_slice()));
    assert_eq!(check(&second, &ORDERS_V2.declaration()), Ok(Compat::Same));
    assert!(matches!(check(&second, &stored), Err(TableOpenError::Newer { stored: 2, declared: 1, .. })));
    assert!(
        matches!(check(&second, &ORDERS.version(2).declaration()), Err(TableOpenError::NoUpgrade { stored: 1, .. })),
        "rows of version 1 may still be there, whatever the last declaration was"
    );
    let only_from_two = ORDERS.version(3).upgrade_from::<Order>(2);
    assert!(matches!(check(&second, &only_from_two.declaration()), Err(TableOpenError::NoUpgrade { stored: 1, .. })));
    let Ok(Compat::Redeclare(third)) = check(&second, &only_from_two.retire(1).declaration()) else {
        panic!("a version that was retired needs no upgrade")
    };
    assert_eq!(third.rows_of, [2, 3]);
    assert_eq!(check(&third, &only_from_two.declaration()), Ok(Compat::Same), "what was retired is forgotten");
    let retired_now = only_from_two.retire(1).declaration();
    assert_eq!(check(&third, &retired_now), Ok(Compat::Same), "retiring it again changes nothing");
}

#[test]
fn declarations_are_stored_as_any_serde_value() {
    let declaration = ORDERS_V2.declaration();
    let json = serde_json::to_string(&declaration).unwrap();
    assert_eq!(serde_json::from_str::<TableDeclaration>(&json).unwrap(), declaration);
    let bytes = crate::base::encoding::encode(&declaration).unwrap();
    assert_eq!(crate::base::encoding::decode::<TableDeclaration>(&bytes).unwrap(), declaration);
}
