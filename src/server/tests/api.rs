//! The description of the API, and what it describes.

use std::collections::BTreeSet;

use super::*;
use crate::{protocol::schema, server::route};

fn described() -> Value {
    serde_json::from_str(include_str!("../../../assets/openapi.json")).expect("JSON")
}

#[test]
fn every_path_is_described_and_nothing_else() {
    let described = described();
    let paths = described["paths"].as_object().expect("paths");
    let there: BTreeSet<_> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods").keys();
            methods
                .filter(|it| *it != "parameters")
                .map(move |it| (path.clone(), it.clone()))
        })
        .collect();
    let here = route::paths().into_iter();
    let here: BTreeSet<_> = here
        .map(|(path, method, _)| (path.replace("{*", "{"), method.to_owned()))
        .collect();
    assert_eq!(there, here);
}

#[tokio::test]
async fn every_reference_in_the_description_leads_somewhere() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|it| references(it, found));
            }
            Value::Array(items) => items.iter().for_each(|it| references(it, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let gateway = Gateway::new();
    let described = json_of(&gateway.get("/openapi.json", "").await.end().await);
    let mut found = Vec::new();
    references(&described, &mut found);
    assert!(found.len() > 20);
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("in this very file");
        assert!(described.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn the_description_is_served_to_those_who_have_the_token() {
    let gateway = Gateway::new();
    let said = gateway.get("/openapi.json", "").await.end().await;
    let said = json_of(&said);
    assert_eq!(said["paths"], described()["paths"]);
    let schemas = said["components"]["schemas"].as_object().expect("schemas");
    let own = described()["components"]["schemas"].as_object().expect("schemas").len();
    assert_eq!(
        schemas.len(),
        own + schema::definitions().len(),
        "no name is taken twice"
    );
    let mut client = gateway.client().await;
    let host = gateway.address;
    client
        .send(&format!(
            "GET /openapi.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ))
        .await;
    assert!(client.end().await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn every_path_refuses_other_methods_and_says_which_it_takes() {
    let gateway = Gateway::new();
    let host = gateway.address;
    for (path, method, _) in route::paths() {
        let path = path.replace("{*", "{").replace("{id}", "x").replace("{name}", "x");
        let mut client = gateway.client().await;
        let other = format!(
            "DELETE {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer secret\r\nConnection: close\r\n\r\n"
        );
        client.send(&other).await;
        let said = client.end().await.to_lowercase();
        assert!(said.starts_with("http/1.1 405"), "{path}: {said}");
        let allowed = said
            .lines()
            .find_map(|it| it.strip_prefix("allow: "))
            .expect("it is said");
        assert!(allowed.contains(method), "{path}: {allowed}");
    }
}

/// Whatever a client does, its place is free again afterwards.
#[tokio::test]
async fn a_client_may_go_away_at_every_moment() {
    let mut gateway = Gateway::with(quick(), 1);
    let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    for path in [
        "/api/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
    ] {
        let mut body = body.clone();
        body["input"] = "hi".into();
        let whole = post(gateway.address, path, "secret", &body.to_string());
        for at in (0..whole.len()).step_by(9) {
            let mut client = gateway.client().await;
            client.send(whole.get(..at).expect("ASCII")).await;
        }
        for is_said in [false, true] {
            let asked = async {
                loop {
                    let mut client = gateway.client().await;
                    client.send(&whole).await;
                    // A place may be taken for a moment by one that has left.
                    tokio::select! {
                        biased;
                        turn = gateway.turns.recv() => return (client, turn.expect("the server is there")),
                        said = client.until("\r\n") => assert!(said.contains("503") || said.contains("529"), "{said}"),
                    }
                }
            };
            let (client, mut turn) = tokio::time::timeout(PATIENCE, asked).await.expect("a place");
            turn.message().await;
            if is_said {
                turn.say([start("a", "text", json!({})), delta("a", "so")]);
            }
            drop(client);
            assert_eq!(turn.told().await, Command::Cancel, "{path} {is_said}");
        }
    }
}
