//! Each rule has a stream, an object or a head that breaks it, beside one that keeps it.

use std::collections::BTreeSet;

use pretty_assertions::assert_eq;

use super::*;
use crate::protocol::Severity;

const START: &str = r#"event: response_start
data: {"id":"chat_1","conversationId":"conv_1","model":"m","mode":"agent","created":"2026-03-02T08:15:00Z","status":"streaming"}

"#;
const DONE: &str = r#"event: done
data: {"usage":{"promptTokens":1,"completionTokens":2,"totalTokens":3},"status":"completed","metadata":{"duration_ms":1,"turnCount":1,"finishReason":"stop"}}

"#;

/// A stream in dialect A: `name {json}` in each line.
fn named(events: &str) -> String {
    let events = events.lines().map(str::trim).filter(|it| !it.is_empty()).map(|line| {
        let (name, data) = line.split_once(' ').expect("a name and data");
        format!("event: {name}\ndata: {data}\n\n")
    });
    events.collect()
}

/// The same with its beginning and its end.
fn whole(events: &str) -> String {
    format!("{START}{}{DONE}", named(events))
}

/// One document: its type, members beside, events in the middle, members of the end.
fn document(kind: &str, metadata: &str, content: Option<&str>) -> String {
    let delta = content.map_or(String::new(), |it| {
        format!("content_delta {{\"documentId\":\"doc_001\",\"delta\":{it}}}\n")
    });
    whole(&format!(
        "document_start {{\"id\":\"doc_001\",\"type\":\"{kind}\",\"sequence\":1,\"metadata\":{metadata}}}\n\
         {delta}document_end {{\"documentId\":\"doc_001\",\"metadata\":{metadata}}}"
    ))
}

fn data(lines: &[&str]) -> String {
    lines.iter().map(|it| format!("data: {it}\n\n")).collect()
}

fn broken(bytes: &[u8]) -> Vec<&'static str> {
    recording("x", bytes).expect("it can be judged").findings.rules()
}

const TEXT: &str = r#"
    document_start {"id":"doc_001","type":"text","sequence":1,"metadata":{"format":"markdown"}}
    content_delta {"documentId":"doc_001","delta":"Hi."}
    document_end {"documentId":"doc_001","finalContent":"Hi.","metadata":{"format":"markdown"}}"#;

const CALL: &str = r#"
    document_start {"id":"doc_001","type":"tool_call","sequence":1,"metadata":{"toolName":"grep","toolCallId":"c1"}}
    tool_call_start {"documentId":"doc_001","toolName":"grep","toolCallId":"c1"}
    tool_call_arguments {"documentId":"doc_001","arguments":{"pattern":"x"}}
    tool_result {"documentId":"doc_001","result":{"status":"success","data":"y"},"duration_ms":3}
    document_end {"documentId":"doc_001","metadata":{"toolName":"grep","toolCallId":"c1","arguments":{"pattern":"x"},"result":{"status":"success","data":"y"},"duration_ms":3}}"#;

const EDIT: &str = r#"{"filePath":"a.rs","operation":"edit","language":"rust","diff":{"oldString":"a\nb","newString":"c","startLine":4,"endLine":5},"applied":"applied","hunk":{"index":1,"count":1}}"#;
const COMMAND: &str =
    r#"{"command":"ls","exitCode":0,"output":"a","duration_ms":1,"permissions":["network"],"state":"completed"}"#;
const PLAN: &str = r#"{"title":"T","overview":"","format":"markdown","todos":[{"id":"one-a","content":"A","status":"pending","dependencies":[]},{"id":"two","content":"B","status":"pending","dependencies":["one-a"]}]}"#;
const QUESTION: &str = r#"{"questions":[{"id":"q1","text":"Which?","options":[{"id":"a","label":"A"},{"id":"b","label":"B"}]}],"outcome":"answered","answers":[{"questionId":"q1","selectedOptionIds":["a"]}]}"#;
const APPROVAL: &str = r#"{"kind":"approval","outcome":"answered","subject":{"type":"terminal_command","content":null,"metadata":{"command":"ls"}},"questions":[{"id":"q","text":"Run?","options":[{"id":"allow_once","label":"A"},{"id":"reject_once","label":"R"}]}]}"#;
const CITED: &str = r#"{"filePath":"src/a.rs","startLine":3,"endLine":4,"language":"rust"}"#;
const FAILURE: &str = r#"{"errorCode":"TOOL_FAILED","source":"llm","details":""}"#;

const OBJECT: &str = r#"{"id":"chat_1","conversationId":"conv_1","model":"m","mode":"agent","created":"2026-03-02T08:15:00Z","status":"completed",
    "documents":[{"id":"doc_001","type":"text","sequence":1,"content":"Hi.","metadata":{"format":"markdown"}},
                 {"id":"doc_002","type":"todo_update","sequence":2,"content":null,"metadata":{"todos":[{"id":"a","status":"completed"}],"merge":true}}],
    "usage":{"promptTokens":1,"completionTokens":2,"totalTokens":3},
    "metadata":{"duration_ms":1,"toolCallCount":0,"turnCount":1,"finishReason":"stop"}}"#;

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n";
const REFUSED: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nWWW-Authenticate: Bearer\r\n\r\n\
    {\"error\":{\"code\":\"UNAUTHORIZED\",\"message\":\"no\",\"source\":\"gateway\",\"details\":\"\"}}";

/// Bytes that keep the rule, and a replacement of a part that breaks it.
struct Case {
    rule: &'static str,
    good: String,
    bad: Vec<u8>,
}

fn case(rule: &'static str, good: impl Into<String>, from: &str, to: &str) -> Case {
    let good = good.into();
    assert!(good.contains(from), "{rule}: there is no {from} in {good}");
    let bad = good.replacen(from, to, 1).into_bytes();
    Case { rule, good, bad }
}

fn cases() -> Vec<Case> {
    let text = || whole(TEXT);
    let call = || whole(CALL);
    let edit = || document("file_edit", EDIT, Some("\"c\""));
    let command = || document("terminal_command", COMMAND, None);
    let plan = || document("plan", PLAN, Some("\"# T\""));
    let question = || document("clarification", QUESTION, Some("\"?\""));
    let approval = || document("clarification", APPROVAL, Some("\"?\""));
    let cited = || document("code_reference", CITED, Some("\"fn\""));
    let renamed = || {
        let metadata = r#"{"filePath":"a.rs","operation":"rename","language":"rust","diff":null,"newFilePath":"b.rs"}"#;
        document("file_edit", metadata, None)
    };
    let failure = || document("error", FAILURE, Some("\"no\""));
    let concept = || {
        data(&[
            r#"{"type":"document_start","document":{"id":"d1","type":"text"}}"#,
            r#"{"type":"content_delta","documentId":"d1","delta":"Hi."}"#,
            r#"{"type":"document_end","documentId":"d1"}"#,
            r#"{"type":"done","usage":{"promptTokens":1,"completionTokens":2}}"#,
            "[DONE]",
        ])
    };
    let both_texts = || {
        let second = TEXT
            .replace("doc_001", "doc_002")
            .replace("\"sequence\":1", "\"sequence\":2");
        whole(&format!("{TEXT}{second}"))
    };
    let overlapping = r#"
        document_start {"id":"doc_001","type":"text","sequence":1,"metadata":{"format":"markdown"}}
        document_start {"id":"doc_002","type":"text","sequence":2,"metadata":{"format":"markdown"}}
        content_delta {"documentId":"doc_001","delta":"a"}
        content_delta {"documentId":"doc_002","delta":"a"}
        document_end {"documentId":"doc_001","metadata":{"format":"markdown"}}
        document_end {"documentId":"doc_002","metadata":{"format":"markdown"}}"#;
    let of = |rule, good: String, bad: Vec<u8>| Case { rule, good, bad };
    let long = |length: usize| {
        let text = "x".repeat(length);
        whole(&TEXT.replace("Hi.", &text))
    };
    let failed_edit = || {
        let edit = EDIT.replace("\"applied\":\"applied\"", "\"applied\":\"failed\"");
        let error = FAILURE;
        whole(&format!(
            "document_start {{\"id\":\"doc_001\",\"type\":\"file_edit\",\"sequence\":1,\"metadata\":{edit}}}\n\
             content_delta {{\"documentId\":\"doc_001\",\"delta\":\"c\"}}\n\
             document_end {{\"documentId\":\"doc_001\",\"metadata\":{edit}}}\n\
             document_start {{\"id\":\"doc_002\",\"type\":\"error\",\"sequence\":2,\"metadata\":{error}}}\n\
             content_delta {{\"documentId\":\"doc_002\",\"delta\":\"no\"}}\n\
             document_end {{\"documentId\":\"doc_002\",\"metadata\":{error}}}"
        ))
    };
    vec![
        // 2
        case("content-type", format!("{HEAD}{}", text()), "text/event-stream; charset=utf-8", "text/plain"),
        case("charset", format!("{HEAD}{}", text()), "utf-8", "iso-8859-1"),
        case("compressed-stream", format!("{HEAD}{}", text()), "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n"),
        case("error-body", REFUSED, "\"message\"", "\"text\""),
        case("error-body-form", REFUSED, "{\"code\":\"UNAUTHORIZED\",\"message\":\"no\",\"source\":\"gateway\",\"details\":\"\"}", "\"no\""),
        case("challenge", REFUSED, "WWW-Authenticate: Bearer\r\n", ""),
        // 4
        case("not-an-answer", OBJECT, OBJECT, "[1]"),
        case("response-member", OBJECT, "\"model\":\"m\",", ""),
        case("response-type", OBJECT, "\"model\":\"m\"", "\"model\":7"),
        case("response-id", OBJECT, "chat_1", "answer-1"),
        case("created", OBJECT, "08:15:00Z", "08:15:00+01:00"),
        case("status", OBJECT, "\"completed\",\n", "\"streaming\",\n"),
        case("finish-reason", text(), "\"finishReason\":\"stop\"", "\"finishReason\":\"bored\""),
        case("usage", text(), "\"promptTokens\":1", "\"promptTokens\":\"1\""),
        case("usage-total", text(), "\"totalTokens\":3", "\"totalTokens\":4"),
        case("tool-call-count", OBJECT, "\"toolCallCount\":0", "\"toolCallCount\":1"),
        // 5
        case("id-form", text(), "\"id\":\"doc_001\"", "\"id\":\"doc\\u202e\""),
        case("duplicate-id", both_texts(), "\"id\":\"doc_002\"", "\"id\":\"doc_001\""),
        case("unknown-type", text(), "\"type\":\"text\"", "\"type\":\"song\""),
        case("sequence", text(), "\"sequence\":1", "\"sequence\":2"),
        case("sequence-missing", text(), ",\"sequence\":1", ""),
        case("sequence-mixed", both_texts(), ",\"sequence\":2", ""),
        case("untimed", call(), "\"duration_ms\":3}\n", "\"x\":3}\n").both(",\"duration_ms\":3", ""),
        case("content", OBJECT, "\"content\":\"Hi.\"", "\"content\":7"),
        case("metadata", OBJECT, "{\"format\":\"markdown\"}", "[]"),
        case("flat-members", text(), ",\"metadata\":{\"format\":\"markdown\"}}", ",\"format\":\"markdown\"}"),
        case("alias", cited(), "\"filePath\"", "\"path\""),
        case("member-missing", cited(), "\"startLine\":3,", "").both("\"startLine\":3,", ""),
        case("member-left-out", OBJECT, "{\"format\":\"markdown\"}", "{}"),
        case("member-type", OBJECT, "\"merge\":true", "\"merge\":\"yes\""),
        case("member-word", OBJECT, "\"format\":\"markdown\"", "\"format\":\"rtf\""),
        case("empty-text", OBJECT, "\"content\":\"Hi.\"", "\"content\":\"\\n \""),
        case("lines", cited(), "\"endLine\":4", "\"endLine\":2").both("\"endLine\":4", "\"endLine\":2"),
        case("path", edit(), "\"a.rs\"", "\"/b/a.rs\"").both("\"a.rs\"", "\"/b/a.rs\""),
        case("diff", edit(), "\"edit\"", "\"create\"").both("\"edit\"", "\"create\""),
        case("diff-lines", edit(), "\"endLine\":5", "\"endLine\":6").both("\"endLine\":5", "\"endLine\":6"),
        case("edit-content", edit(), "\"delta\":\"c\"", "\"delta\":\"d\""),
        case("rename-target", renamed(), ",\"newFilePath\":\"b.rs\"", "").both(",\"newFilePath\":\"b.rs\"", ""),
        case("hunk", edit(), "\"index\":1", "\"index\":2").both("\"index\":1", "\"index\":2"),
        case("failed-edit", failed_edit(), "\"type\":\"error\"", "\"type\":\"text\""),
        case("no-result", call(), "\"result\":{\"status\":\"success\",\"data\":\"y\"},\"duration_ms\":3}}", "\"result\":null,\"duration_ms\":3}}"),
        case("result-form", call(), "\"result\":{\"status\":\"success\",\"data\":\"y\"},\"duration_ms\":3}}", "\"result\":{\"answer\":\"y\",\"status\":null},\"duration_ms\":3}}"),
        case("edit-as-call", call(), "\"metadata\":{\"toolName\":\"grep\",\"toolCallId\":\"c1\",\"arguments\"", "\"metadata\":{\"toolName\":\"edit_file\",\"toolCallId\":\"c1\",\"arguments\""),
        case("exit-code", command(), "\"exitCode\":0", "\"exitCode\":null").both("\"exitCode\":0", "\"exitCode\":null"),
        case("todo-ids", plan(), "\"id\":\"two\"", "\"id\":\"one-a\"").both("\"id\":\"two\"", "\"id\":\"one-a\""),
        case("todo-slug", plan(), "\"id\":\"two\"", "\"id\":\"Two!\"").both("\"id\":\"two\"", "\"id\":\"Two!\""),
        case("dependencies", plan(), "\"dependencies\":[]", "\"dependencies\":[\"two\"]").both("\"dependencies\":[]", "\"dependencies\":[\"two\"]"),
        case("questions", question(), "\"questions\":[{\"id\":\"q1\",\"text\":\"Which?\",\"options\":[{\"id\":\"a\",\"label\":\"A\"},{\"id\":\"b\",\"label\":\"B\"}]}]", "\"questions\":[]")
            .both("\"questions\":[{\"id\":\"q1\",\"text\":\"Which?\",\"options\":[{\"id\":\"a\",\"label\":\"A\"},{\"id\":\"b\",\"label\":\"B\"}]}]", "\"questions\":[]"),
        case("options", question(), "{\"id\":\"b\",\"label\":\"B\"}", "\"b\"").both("{\"id\":\"b\",\"label\":\"B\"}", "\"b\""),
        case("answers", question(), "[\"a\"]", "[\"c\"]").both("[\"a\"]", "[\"c\"]"),
        case("approval", approval(), "\"subject\":{", "\"subject\":{\"id\":\"doc_9\",").both("\"subject\":{", "\"subject\":{\"id\":\"doc_9\","),
        case("error-code-form", failure(), "TOOL_FAILED", "tool failed").both("TOOL_FAILED", "tool failed"),
        case("error-code", failure(), "TOOL_FAILED", "TOOL_TIRED").both("TOOL_FAILED", "TOOL_TIRED"),
        // 6.1
        of("utf-8", text(), text().into_bytes().into_iter().map(|it| if it == b'!' || it == b'.' { 0xff } else { it }).collect()),
        of("bom", format!("\u{feff}{}", text()), format!("\u{feff}\u{feff}{}", text()).into_bytes()),
        of("line-limit", long(1 << 20), long(17 << 20).into_bytes()),
        case("field", text(), "event: done", "evnt: x\nevent: done"),
        case("no-data", text(), "event: done", "event: lonely\n\nevent: done"),
        of("unended-event", text(), text().trim_end().as_bytes().to_vec()),
        of(
            "event-id",
            text().replace("event: content", "id: 1\nevent: content").replace("event: done", "id: 5\nevent: done"),
            text().replace("event: content", "id: 5\nevent: content").replace("event: done", "id: 5\nevent: done").into_bytes(),
        ),
        case("event-id", text().replace("event: done", "id: 7\nevent: done"), "id: 7", "id: 7.2"),
        case("event-id", text().replace("event: done", "id: 7\nevent: done"), "id: 7", "id: seven"),
        // 6.2 to 6.4
        case("bad-json", text(), "{\"documentId\":\"doc_001\",\"delta\"", "{'documentId':\"doc_001\",\"delta\""),
        case("not-an-object", text(), "event: done", "event: content_delta\ndata: [1]\n\nevent: done"),
        case("duplicate-member", text(), "\"delta\":\"Hi.\"", "\"delta\":\"Ho.\",\"delta\":\"Hi.\""),
        of("foreign-protocol", text(), data(&[r#"{"object":"chat.completion.chunk","choices":[]}"#]).into_bytes()),
        case("nameless-event", concept(), "{\"type\":\"content_delta\",", "{"),
        case("two-names", text(), "{\"documentId\":\"doc_001\",\"delta\"", "{\"type\":\"done\",\"documentId\":\"doc_001\",\"delta\""),
        case("mixed-dialects", text(), "event: content_delta\ndata: {", "data: {\"type\":\"content_delta\","),
        case("envelope", text(), "{\"documentId\":\"doc_001\",\"delta\":\"Hi.\"}", "{\"documentId\":\"doc_001\",\"data\":{\"delta\":\"Hi.\"}}"),
        case("document-member", concept(), "\"document\":{\"id\":\"d1\",\"type\":\"text\"}", "\"id\":\"d1\""),
        of("done-marker", concept(), concept().replace("data: [DONE]\n\n", "").into_bytes()),
        of("done-marker", text(), format!("{}data: [DONE]\n\n", text()).into_bytes()),
        // 6.5
        case("unknown-event", text(), "event: done", "event: later\ndata: {}\n\nevent: done"),
        of("error-event", text(), format!("{START}event: error\ndata: {{\"message\":\"no\"}}\n\n").into_bytes()),
        case("event-member", text(), "\"delta\":\"Hi.\"", "\"delta\":null"),
        case("no-response-start", text(), START, ""),
        case("late-response-start", text(), "event: done", &format!("{START}event: done")),
        case("start-member", text(), "\"model\":\"m\",", ""),
        case("arguments-once", call(), "\"arguments\":{\"pattern\":\"x\"}}\n", "\"arguments\":\"{\\\"pattern\\\"\"}\n"),
        case("user-message", text(), "event: done", "event: user_message\ndata: {\"message\":{}}\n\nevent: done"),
        case("final-content", text(), "\"finalContent\":\"Hi.\"", "\"finalContent\":\"Ho.\""),
        case("end-metadata", call(), ",\"duration_ms\":3}}", "}}"),
        case("append", text(), "event: content", "event: metadata_delta\ndata: {\"documentId\":\"doc_001\",\"append\":{\"n\":1}}\n\nevent: content"),
        // 6.6
        case("unknown-document", text(), "{\"documentId\":\"doc_001\",\"delta\"", "{\"documentId\":\"doc_009\",\"delta\""),
        case("after-end", text(), "event: done", "event: content_delta\ndata: {\"documentId\":\"doc_001\",\"delta\":\"x\"}\n\nevent: done"),
        case("update-early", text(), "event: content", "event: document_update\ndata: {\"documentId\":\"doc_001\",\"metadata\":{}}\n\nevent: content"),
        of(
            "tool-order",
            call(),
            whole(&{
                let mut lines: Vec<_> = CALL.lines().collect();
                lines.swap(3, 4);
                lines.join("\n")
            })
            .into_bytes(),
        ),
        case("tool-event", text(), "event: content", "event: tool_call_start\ndata: {\"documentId\":\"doc_001\",\"toolName\":\"x\"}\n\nevent: content"),
        of("texts-overlap", both_texts(), whole(overlapping).into_bytes()),
        of("open-at-done", text(), text().replace("event: document_end", "event: x").into_bytes()),
        of("no-done", text(), text().replace("event: done", "event: x").into_bytes()),
        of("after-done", text(), format!("{}event: done\ndata: {{}}\n\n", text()).into_bytes()),
        // 8, 9
        case("mode", edit(), "\"mode\":\"agent\"", "\"mode\":\"plan\""),
        case("awaits", document("clarification", QUESTION, Some("\"?\"")), "\"finishReason\":\"stop\"", "\"finishReason\":\"awaiting_input\""),
        case("cancelled", text().replace("\"stop\"", "\"cancelled\""), "\"status\":\"completed\"", "\"status\":\"error\""),
        case(
            "error-end",
            failure().replace("\"completed\"", "\"error\"").replace("\"stop\"", "\"error\""),
            "\"type\":\"error\"",
            "\"type\":\"song\"",
        ),
    ]
}

impl Case {
    /// Replaces everywhere, where a part is said twice.
    fn both(self, from: &str, to: &str) -> Self {
        Self {
            bad: self.good.replace(from, to).into_bytes(),
            ..self
        }
    }
}

/// Rules that only a live gateway can break; `tests/it/conform.rs` has a gateway that does.
const LIVE: [&str; 14] = [
    "stream-as-asked",
    "error-status",
    "bad-request",
    "no-token",
    "plan-path",
    "same-object",
    "unreadable",
    "silence",
    "dialect-wish",
    "limits",
    "live-input",
    "cancel",
    "come-back",
    "openai-facade",
];

#[test]
fn each_rule_is_broken_by_a_stream_and_kept_by_one() {
    let mut wrong = Vec::new();
    for Case { rule, good, bad } in cases() {
        if broken(good.as_bytes()).contains(&rule) {
            wrong.push(format!(
                "{rule} is said of what keeps it: {}",
                good.chars().take(2000).collect::<String>()
            ));
        }
        let found = broken(&bad);
        if !found.contains(&rule) {
            let bad = String::from_utf8_lossy(&bad[..bad.len().min(2000)]).into_owned();
            wrong.push(format!("{rule} is not among {found:?} of {bad}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn no_rule_is_without_a_case() {
    let tested: BTreeSet<_> = cases().iter().map(|it| it.rule).chain(LIVE).collect();
    let all: BTreeSet<_> = RULES.iter().map(|it| it.id).collect();
    assert_eq!(tested, all);
}

#[test]
fn what_is_right_has_no_findings_at_all() {
    for (name, bytes) in [
        ("a text", whole(TEXT)),
        ("a call", whole(CALL)),
        ("an edit", document("file_edit", EDIT, Some("\"c\""))),
        ("a command", document("terminal_command", COMMAND, None)),
        ("a plan", document("plan", PLAN, Some("\"# T\""))),
        ("a question", document("clarification", QUESTION, Some("\"?\""))),
        ("an approval", document("clarification", APPROVAL, Some("\"?\""))),
        ("a citation", document("code_reference", CITED, Some("\"fn\""))),
        ("an object", OBJECT.to_owned()),
        ("a stream with its head", format!("{HEAD}{}", whole(TEXT))),
        ("a refusal", REFUSED.to_owned()),
    ] {
        let judged = recording(name, bytes.as_bytes()).expect("it can be judged");
        assert_eq!(judged.findings.list, [], "{name}");
    }
}

#[test]
fn the_examples_of_the_protocol_have_no_errors() {
    let read = |name: &str| {
        let path = format!("{}/tests/fixtures/documents/{name}", env!("CARGO_MANIFEST_DIR"));
        recording(name, &std::fs::read(path).expect("a fixture")).expect("it can be judged")
    };
    for name in [
        "named.sse",
        "data.sse",
        "flat.sse",
        "questions.sse",
        "concept.json",
        "structure.json",
    ] {
        let judged = read(name);
        let errors: Vec<_> = judged
            .findings
            .list
            .iter()
            .filter(|it| it.rule.severity == Severity::Error)
            .collect();
        assert_eq!(errors, Vec::<&report::Finding>::new(), "{name}");
    }
    // The third envelope, which no writer sends.
    assert!(read("envelope.sse").findings.rules().contains(&"envelope"));
}

#[test]
fn a_finding_has_its_bytes_and_its_document() {
    let stream = whole(TEXT).replace("\"sequence\":1", "\"sequence\":\"one\u{202e}\"");
    let judged = recording("x", stream.as_bytes()).expect("it can be judged");
    let [finding] = judged.findings.list.as_slice() else {
        panic!("{:?}", judged.findings.list)
    };
    let place = finding.place.expect("a place");
    let at = place.offset as usize;
    assert_eq!(stream.get(at..at + place.length as usize), Some("\"one\u{202e}\""));
    assert_eq!(finding.document.as_deref(), Some("doc_001"));
    assert_eq!(finding.excerpt.as_str(), "\"one‹U+202E›\"");
}

#[test]
fn a_rule_that_is_broken_everywhere_is_counted() {
    let bad = "event: content_delta\ndata: 7\n\n".repeat(1000);
    let judged = recording("x", format!("{START}{bad}{DONE}").as_bytes()).expect("it can be judged");
    assert_eq!(judged.findings.count(Severity::Error), 1000);
    assert_eq!(judged.findings.list.len(), 20);
    assert_eq!(judged.findings.left_out(), [("not-an-object", 980)]);
}

#[test]
fn a_silence_of_more_than_a_ping_is_seen() {
    for (gap, found) in [(15_000, false), (30_000, true)] {
        let mut stream = Stream::new(RequestFacts::default());
        stream.push(START.as_bytes(), Some(0));
        stream.push(b": ping\n\n", Some(gap));
        stream.push(named(TEXT).as_bytes(), Some(gap));
        stream.push(DONE.as_bytes(), Some(gap));
        let (judged, _) = stream.finish("x");
        assert_eq!(judged.findings.rules().contains(&"silence"), found, "{gap}");
    }
}

#[test]
fn the_other_dialect_than_the_one_wished_for_is_a_note() {
    for (dialect, found) in [(Dialect::Named, false), (Dialect::Data, true)] {
        let mut stream = Stream::new(RequestFacts {
            dialect: Some(dialect),
            ..RequestFacts::default()
        });
        stream.push(whole(TEXT).as_bytes(), None);
        assert_eq!(stream.finish("x").0.findings.rules().contains(&"dialect-wish"), found);
    }
}

#[test]
fn the_fold_of_a_stream_is_held_against_the_object() {
    let whole_of = |text: &str| {
        let mut stream = Stream::new(RequestFacts::default());
        stream.push(text.as_bytes(), None);
        stream.finish("x").1
    };
    let object = OBJECT.replacen("                 {", "{", 1);
    let one = object.replace(",\n{\"id\":\"doc_002\",\"type\":\"todo_update\",\"sequence\":2,\"content\":null,\"metadata\":{\"todos\":[{\"id\":\"a\",\"status\":\"completed\"}],\"merge\":true}}", "");
    for (object, is_same) in [(one.clone(), true), (one.replace("Hi.", "Ho."), false), (object, false)] {
        let (_, whole_object) = super::object("x", object.as_bytes(), &RequestFacts::default());
        let mut found = Findings::default();
        compare(&whole_of(&whole(TEXT)), &whole_object, &mut found);
        assert_eq!(found.rules().is_empty(), is_same, "{object}");
    }
}

#[test]
fn more_documents_than_there_may_be_are_said_once() {
    let documents: String = (1..=50_001)
        .map(|at| {
            format!("event: document_start\ndata: {{\"id\":\"d{at}\",\"type\":\"todo_update\",\"sequence\":{at},\"metadata\":{{\"todos\":[]}}}}\n\nevent: document_end\ndata: {{\"documentId\":\"d{at}\",\"metadata\":{{\"todos\":[]}}}}\n\n")
        })
        .collect();
    assert_eq!(broken(format!("{START}{documents}{DONE}").as_bytes()), ["limits"]);
}

#[test]
fn what_cannot_be_judged_is_named() {
    assert_eq!(recording("x", b" \n").unwrap_err(), NotJudged::Empty("x".to_owned()));
    let session = include_bytes!("../../assets/tour/tour.jsonl");
    assert_eq!(recording("x", session).unwrap_err(), NotJudged::Session("x".to_owned()));
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever is broken, nothing panics, and what is found has its place inside of the bytes.
        #[test]
        fn bytes_that_are_damaged_are_judged(at in 0_usize..4000, byte in any::<u8>(), cut in 0_usize..6000) {
            let mut bytes = [whole(CALL), document("clarification", APPROVAL, None), OBJECT.to_owned()].concat().into_bytes();
            let length = bytes.len();
            bytes[at % length] = byte;
            bytes.truncate(cut);
            if let Ok(judged) = recording("x", &bytes) {
                for finding in judged.findings.list {
                    let place = finding.place.unwrap_or_default();
                    prop_assert!(place.offset + place.length <= bytes.len() as u64 + 3, "{finding:?}");
                }
            }
        }

        /// The pieces in which a stream comes change nothing.
        #[test]
        fn the_pieces_do_not_matter(at in 0_usize..3000) {
            let bytes = whole(CALL).replace("\"sequence\":1", "\"sequence\":9").into_bytes();
            let (one, two) = bytes.split_at(at.min(bytes.len()));
            let mut stream = Stream::new(RequestFacts::default());
            stream.push(one, None);
            stream.push(two, None);
            let parts = stream.finish("x").0.findings.list;
            prop_assert_eq!(parts, recording("x", &bytes).expect("it can be judged").findings.list);
        }
    }
}
