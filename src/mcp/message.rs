//! JSON-RPC 2.0: the messages of both directions, and nothing of what they mean.

use serde_json::{Map, Value, json};

use super::content::capped;

/// Bytes of the id of a server's request; one with a longer id is not answered.
const ID_BYTES: usize = 1024;
/// Bytes of an error's message that are kept.
const ERROR_BYTES: usize = 2 << 10;
/// Lists and objects inside each other that are kept of a list of tools; the reader gives up at 128.
const DEEPEST: usize = 120;

/// A message that a server sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The answer to a request of ours.
    Response {
        id: u64,
        result: Result<Value, RpcError>,
    },
    /// A request of the server's, which must be answered.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to nobody: its id is none of ours.
    Stray,
}

/// An error that a server answered with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

impl RpcError {
    /// The method is not known.
    pub const METHOD: i64 = -32601;
    /// The version of the protocol is not spoken; `data.supported` lists those that are.
    pub const VERSION: i64 = -32022;
}

/// Reads one message. Error: what is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Message, String> {
    let value = serde_json::from_slice(bytes).or_else(|error| tools_cut(bytes).ok_or_else(|| error.to_string()))?;
    let Value::Object(mut members) = value else {
        return Err("it is no JSON object".to_owned());
    };
    let id = members.remove("id").filter(|it| !it.is_null());
    if let Some(Value::String(method)) = members.remove("method") {
        let params = members.remove("params").unwrap_or_default();
        return Ok(match id {
            Some(id @ Value::Number(_)) => Message::Request { id, method, params },
            Some(Value::String(id)) if id.len() <= ID_BYTES => Message::Request {
                id: id.into(),
                method,
                params,
            },
            Some(_) => Message::Stray,
            None => Message::Notification { method, params },
        });
    }
    let result = match (members.remove("error"), members.remove("result")) {
        (Some(error), _) => Err(rpc_error(error)),
        (None, Some(result)) => Ok(result),
        (None, None) => return Err("it has neither a method nor a result nor an error".to_owned()),
    };
    // Some servers give the number back as text.
    let id = id.and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok()));
    Ok(id.map_or(Message::Stray, |id| Message::Response { id, result }))
}

/// A list of tools that is nested too deeply, without what is: one tool must not cost the others. `None`: it is something else.
fn tools_cut(bytes: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(&cut(bytes)?).ok()?;
    value.pointer("/result/tools")?.is_array().then_some(value)
}

/// JSON in which `null` stands for what is nested deeper than [`DEEPEST`]; `None` if nothing is.
fn cut(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut kept, mut is_cut) = (Vec::with_capacity(bytes.len()), false);
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in bytes {
        let was_deep = depth > DEEPEST;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => depth += 1,
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !was_deep && depth <= DEEPEST {
            kept.push(*byte);
        } else if !was_deep {
            kept.extend(b"null");
            is_cut = true;
        }
    }
    is_cut.then_some(kept)
}

fn rpc_error(error: Value) -> RpcError {
    let Value::Object(mut members) = error else {
        return RpcError {
            message: capped(&error.to_string(), ERROR_BYTES),
            ..RpcError::default()
        };
    };
    let message = match members.remove("message") {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => "no message".to_owned(),
    };
    let message = capped(&message, ERROR_BYTES);
    RpcError {
        code: members.get("code").and_then(Value::as_i64).unwrap_or_default(),
        message,
        data: members.remove("data").unwrap_or_default(),
    }
}

/// A request of ours.
pub fn request(id: u64, method: &str, params: Map<String, Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A notification of ours.
pub fn notification(method: &str, params: Map<String, Value>) -> Value {
    if params.is_empty() {
        return json!({ "jsonrpc": "2.0", "method": method });
    }
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Our answer to a request of the server's.
pub fn response(id: &Value, result: Result<Value, (i64, &str)>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, message)) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_message_is_told_from_the_others() {
        let error = |code, message: &str| RpcError {
            code,
            message: message.to_owned(),
            data: Value::Null,
        };
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#,
                Ok(Message::Response {
                    id: 7,
                    result: Ok(json!({ "a": 1 })),
                }),
            ),
            (
                r#"{"id":"7","error":{"code":-32601,"message":"no"}}"#,
                Ok(Message::Response {
                    id: 7,
                    result: Err(error(-32601, "no")),
                }),
            ),
            (
                r#"{"id":7,"error":"broken"}"#,
                Ok(Message::Response {
                    id: 7,
                    result: Err(error(0, "\"broken\"")),
                }),
            ),
            (r#"{"id":"x","result":1}"#, Ok(Message::Stray)),
            (r#"{"id":null,"result":1}"#, Ok(Message::Stray)),
            (r#"{"id":[],"method":"ping"}"#, Ok(Message::Stray)),
            (
                r#"{"id":"s1","method":"ping"}"#,
                Ok(Message::Request {
                    id: json!("s1"),
                    method: "ping".to_owned(),
                    params: Value::Null,
                }),
            ),
            (
                r#"{"method":"n","params":{"x":1}}"#,
                Ok(Message::Notification {
                    method: "n".to_owned(),
                    params: json!({ "x": 1 }),
                }),
            ),
            (r#"{"id":1}"#, Err(())),
            ("[]", Err(())),
            ("Listening on stdio", Err(())),
            ("", Err(())),
        ] {
            assert_eq!(parse(text.as_bytes()).map_err(drop), expected, "{text}");
        }
        let deep = format!("{{\"id\":1,\"result\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
        assert!(parse(deep.as_bytes()).is_err(), "nesting is bounded");
    }

    #[test]
    fn of_a_list_of_tools_only_what_is_nested_too_deeply_is_lost() {
        let deep = "[".repeat(3000) + "]}\\\"" + &"]".repeat(3000);
        let deep = deep.replace("]}\\\"", r#""]}\"[{""#);
        let list = format!(r#"{{"id":1,"result":{{"tools":[{{"name":"a","deep":{deep}}},{{"name":"b"}}]}}}}"#);
        let Ok(Message::Response {
            id: 1,
            result: Ok(result),
        }) = parse(list.as_bytes())
        else {
            panic!("it is not read");
        };
        assert_eq!(
            (&result["tools"][0]["name"], &result["tools"][1]["name"]),
            (&json!("a"), &json!("b"))
        );
        // Broken otherwise, it stays so.
        assert!(parse(list.trim_end_matches('}').as_bytes()).is_err());
        assert!(parse(list.replace("tools", "content").as_bytes()).is_err());
    }
}
