//! OpenAI's chat completions, and the many servers that call themselves compatible.

mod plain;
mod profile;
#[cfg(test)]
mod quirks;
mod request;
mod stream;

use std::sync::{Mutex, PoisonError};

use serde_json::json;

use super::{
    Failure, ModelRequest,
    body::{Read, Reading},
    request::Wire,
};
use crate::{
    config,
    net::client::{Request, Url},
};

pub use request::base;

/// Returns true if the server is OpenAI's own.
pub fn is_own(settings: &config::Provider) -> bool {
    request::is_at(settings, "openai.com")
}

/// Chat completions.
#[derive(Default)]
pub struct Chat {
    learned: Mutex<profile::Learned>,
}

impl Chat {
    fn learned(&self) -> std::sync::MutexGuard<'_, profile::Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wire for Chat {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn base(&self, pasted: &Url) -> Url {
        request::base(pasted)
    }

    fn ask(&self, request: &ModelRequest, settings: &config::Provider) -> Request {
        let body = request::body(request, settings, &self.learned());
        Request::post("chat/completions", body.to_string())
    }

    fn mend(&self, failure: &Failure, request: &mut ModelRequest, _: &config::Provider) -> Option<String> {
        self.learned().from(failure, request)
    }

    fn prints_calls(&self) -> bool {
        true
    }

    fn embed(&self, texts: &[String], settings: &config::Provider) -> Option<Request> {
        let body = json!({ "model": settings.model, "input": texts, "encoding_format": "float" });
        Some(Request::post("embeddings", body.to_string()))
    }

    fn read(&self, _: &ModelRequest, settings: &config::Provider) -> Box<dyn Read> {
        Box::new(Reading::new(stream::Decoder::new(settings.think_tags)))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use chrono::Utc;
    use futures::StreamExt;
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        config::{Connection, Environment, KeySource, Secret},
        models::{EndReason, FailureKind, ModelMessage, Piece, Provider, request::Server},
        net::test_server::{self, STREAM, Socket, page},
        protocol::Progress,
    };

    const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

    fn settings(url: &str) -> config::Provider {
        config::Provider {
            connection: Connection::default().at(url),
            ..config::Provider::default()
        }
    }

    /// A provider that waits as little as a test wants to.
    fn provider(settings: &config::Provider) -> Server {
        let provider = Server::new(Chat::default(), settings, &Environment::default());
        provider.expect("sound settings").hurried()
    }

    fn request() -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            messages: vec![ModelMessage::user("hello")],
            ..ModelRequest::default()
        }
    }

    /// A server that gives the n-th connection to the n-th script, and the last one to all that follow.
    async fn scripted(answers: Vec<String>) -> (String, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let url = test_server::listen(move |mut socket: Socket| {
            let at = counted.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            let answer = answers.get(at).cloned().unwrap_or_default();
            async move {
                socket.request().await;
                socket.send(answer).await;
            }
        })
        .await;
        (url, count)
    }

    /// Pieces in words.
    fn show(pieces: &[Piece]) -> String {
        let word = |it: &Piece| match it {
            Piece::Progress(Progress::Connecting { .. }) => "connecting".to_owned(),
            Piece::Progress(Progress::Waiting { .. }) => "waiting".to_owned(),
            Piece::Progress(Progress::Retrying {
                attempt, of, because, ..
            }) => format!("retry {attempt}/{of} {because}"),
            Piece::Progress(Progress::Stalled { .. }) => "stalled".to_owned(),
            Piece::Text(text) => format!("{text:?}"),
            Piece::End(reason) => format!("{reason:?}"),
            Piece::Error(failure) => {
                let said = failure.said.as_deref().map(|it| format!(" ({it})")).unwrap_or_default();
                format!("{} {}{said}", failure.kind.code(), failure.message)
            }
            other => format!("{other:?}"),
        };
        pieces.iter().map(word).collect::<Vec<_>>().join(" | ")
    }

    async fn answer(settings: &config::Provider) -> String {
        show(&provider(settings).stream(request()).collect::<Vec<_>>().await)
    }

    #[tokio::test]
    async fn a_request_carries_what_is_configured_and_no_more() {
        let (told, mut diary) = test_server::diary();
        let url = test_server::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                told.send(socket.request().await).ok();
                socket.send(format!("{STREAM}{HI}{END}")).await;
            }
        })
        .await;
        let mut settings = settings(&format!("{url}/chat/completions"));
        answer(&settings).await;
        let plain = diary.next().await;
        let (head, body) = plain.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
        let head = head.to_lowercase();
        assert!(head.contains("\r\naccept: text/event-stream"), "{head}");
        assert!(head.contains("\r\ncontent-type: application/json"), "{head}");
        assert!(!head.contains("authorization"), "no key, no header: {head}");
        assert_eq!(
            serde_json::from_str::<Value>(body).expect("JSON"),
            json!({
                "model": "m",
                "stream": true,
                "messages": [{ "role": "user", "content": "hello" }],
                "stream_options": { "include_usage": true },
            })
        );
        settings.key = KeySource::Given(Secret::new("sk-1"));
        settings
            .connection
            .headers
            .insert("x-team".to_owned(), Secret::new("blue"));
        answer(&settings).await;
        let head = diary.next().await.to_lowercase();
        assert!(head.contains("\r\nauthorization: bearer sk-1\r\n"), "{head}");
        assert!(head.contains("\r\nx-team: blue\r\n"), "{head}");
    }

    #[tokio::test]
    async fn answers_of_every_form_are_read() {
        let whole = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;
        let good = r#"connecting | waiting | "hi" | Stop"#;
        let cases = [
            ("a stream", format!("{STREAM}{HI}{END}"), good),
            (
                "a stream labelled as JSON",
                page("200 OK", "application/json", &format!("{HI}{END}")),
                good,
            ),
            ("JSON labelled as a stream", format!("{STREAM}{whole}"), good),
            ("JSON", page("200 OK", "application/json", whole), good),
            (
                "a stream that is cut",
                format!("{STREAM}{HI}"),
                r#"connecting | waiting | "hi" | STREAM_INTERRUPTED the answer broke off before its end"#,
            ),
            (
                "a page",
                page("200 OK", "text/html", "<html>Welcome</html>"),
                "connecting | waiting | LLM_BAD_RESPONSE the server answered with something else than chat completions \
                 (<html>Welcome</html>)",
            ),
            (
                "an empty body",
                page("200 OK", "text/event-stream", ""),
                "connecting | waiting | STREAM_INTERRUPTED the server ended the stream without an answer",
            ),
            (
                "an error in the stream, after text",
                format!("{STREAM}{HI}data: {{\"error\":{{\"message\":\"overloaded\"}}}}\n\n"),
                r#"connecting | waiting | "hi" | LLM_OVERLOADED the server has no capacity at the moment (overloaded)"#,
            ),
        ];
        for (name, body, want) in cases {
            let (url, count) = scripted(vec![body]).await;
            let mut settings = settings(&url);
            settings.connection.retries = 0;
            assert_eq!(answer(&settings).await, want, "{name}");
            assert_eq!(count.load(Ordering::SeqCst), 1, "{name}");
        }
    }

    #[tokio::test]
    async fn what_may_pass_is_tried_again_and_nothing_else() {
        let error = |status: &str, words: &str| {
            page(
                status,
                "application/json",
                &format!("{{\"error\":{{\"message\":\"{words}\"}}}}"),
            )
        };
        let good = format!("{STREAM}{HI}{END}");
        let fine = r#"connecting | waiting | "hi" | Stop"#;
        let cases = [
            (
                "503, then fine",
                vec![error("503 Busy", "Loading model"), good.clone()],
                format!("connecting | retry 1/3 it is overloaded (503) | {fine}"),
                2,
            ),
            (
                "429 with a wish, then fine",
                vec![
                    error("429 Slow", "slow").replace("\r\n\r\n", "\r\nRetry-After-Ms: 5\r\n\r\n"),
                    good.clone(),
                ],
                format!("connecting | retry 1/3 too many requests (429) | {fine}"),
                2,
            ),
            (
                "502 for ever",
                vec![page("502 Bad", "text/html", "<h1>Bad Gateway</h1>")],
                "connecting | retry 1/3 it failed (502) | connecting | retry 2/3 it failed (502) | connecting | \
                 retry 3/3 it failed (502) | connecting | LLM_UNAVAILABLE the server failed (502) (<h1>Bad Gateway</h1>)"
                    .to_owned(),
                4,
            ),
            (
                "an error in the stream before anything, then fine",
                vec![
                    format!("{STREAM}data: {{\"id\":\"c\",\"choices\":[]}}\n\ndata: {{\"error\":{{\"code\":529,\"message\":\"full\"}}}}\n\n"),
                    good,
                ],
                format!("connecting | waiting | retry 1/3 it is overloaded (503) | {fine}"),
                2,
            ),
            (
                "400",
                vec![error("400 Bad", "odd")],
                "connecting | LLM_BAD_RESPONSE the server refused the request (400) (odd)".to_owned(),
                1,
            ),
            (
                "401",
                vec![error("401 No", "wrong")],
                "connecting | LLM_AUTH the server does not accept the key (wrong)".to_owned(),
                1,
            ),
            (
                "an empty account",
                vec![error("429 Slow", "You exceeded your quota, insufficient_quota")],
                "connecting | LLM_RATE_LIMITED the account has no credit left (You exceeded your quota, insufficient_quota)"
                    .to_owned(),
                1,
            ),
            (
                "a redirect",
                vec!["HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/v1\r\nContent-Length: 0\r\n\r\n".to_owned()],
                "connecting | LLM_UNAVAILABLE URL redirects (307) to http://127.0.0.1:1/v1, which is not followed, because \
                 the token is for URL only"
                    .to_owned(),
                1,
            ),
        ];
        for (name, answers, want, tries) in cases {
            let (url, count) = scripted(answers).await;
            // Whether one has to wait is a matter of how busy this machine is.
            let plain = |it: &str| it.replace("waiting | ", "").replace("URL", &url);
            assert_eq!(plain(&answer(&settings(&url)).await), plain(&want), "{name}");
            assert_eq!(count.load(Ordering::SeqCst), tries, "{name}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_asked_for_again_until_a_call_is_complete() {
        let call = |end: &str| {
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"c\",\"function\":{{\"name\":\"f\",\
                 \"arguments\":\"{{}}\"}}}}]}}}}]}}\n\n{end}"
            )
        };
        let next = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"d\",\"function\":{\"name\":\"g\",\"arguments\":\"\"}}]}}]}\n\n";
        let good = format!("{STREAM}{HI}{END}");
        for (name, broken, tries) in [
            ("in a text", format!("{STREAM}{HI}"), 2),
            ("in a call", format!("{STREAM}{}", call("")), 2),
            // Its calls are complete only at its end.
            ("behind a call", format!("{STREAM}{}", call(next)), 2),
            (
                "overloaded in a text",
                format!("{STREAM}{HI}data: {{\"error\":{{\"code\":529,\"message\":\"full\"}}}}\n\n"),
                2,
            ),
        ] {
            let (url, count) = scripted(vec![broken, good.clone()]).await;
            let pieces: Vec<Piece> = provider(&settings(&url)).stream(request()).collect().await;
            assert_eq!(count.load(Ordering::SeqCst), tries, "{name}: {pieces:?}");
            let voids = pieces.iter().filter(|it| **it == Piece::Void).count();
            assert_eq!(voids, tries - 1, "{name}: {pieces:?}");
            assert_eq!(pieces.last(), Some(&Piece::End(EndReason::Stop)), "{name}: {pieces:?}");
        }
    }

    #[tokio::test]
    async fn nobody_listens() {
        let url = test_server::nobody().await;
        let pieces: Vec<Piece> = provider(&settings(&url)).stream(request()).collect().await;
        let Some(Piece::Error(failure)) = pieces.last() else {
            panic!("{pieces:?}")
        };
        assert_eq!(failure.kind, FailureKind::Unreachable);
        assert_eq!(&*failure.message, format!("connection refused: {url}"));
        assert!(
            failure
                .details()
                .ends_with("is the server running, and is its address right?"),
            "{}",
            failure.details()
        );
        let retries = pieces
            .iter()
            .filter(|it| matches!(it, Piece::Progress(Progress::Retrying { .. })))
            .count();
        assert_eq!(retries, 3);
    }

    #[tokio::test]
    async fn a_long_pause_needs_somebody_who_watches() {
        let answer = page("429 Slow", "application/json", "{\"error\":\"slow down\"}");
        let answer = answer.replace("\r\n\r\n", "\r\nRetry-After: 120\r\nX-Request-Id: r-1\r\n\r\n");
        let (url, _) = scripted(vec![answer]).await;
        let provider = provider(&settings(&url));
        let pieces: Vec<Piece> = provider.stream(request()).collect().await;
        let Some(Piece::Error(failure)) = pieces.last() else {
            panic!("{pieces:?}")
        };
        assert_eq!(
            failure.details(),
            "the server says: slow down\nrequest id: r-1\nit asks for a pause of 2 min: send the message again after that"
        );
        let mut pieces = provider.stream(ModelRequest {
            is_attended: true,
            ..request()
        });
        assert!(matches!(
            pieces.next().await,
            Some(Piece::Progress(Progress::Connecting { .. }))
        ));
        let Some(Piece::Progress(Progress::Retrying { at_ms, .. })) = pieces.next().await else {
            panic!("a countdown")
        };
        let now = u64::try_from(Utc::now().timestamp_millis()).expect("after 1970");
        assert!(at_ms > now + 60_000 && at_ms <= now + 120_000, "{at_ms} after {now}");
    }

    #[tokio::test]
    async fn an_answer_that_forgets_its_end_is_over_after_its_finish_reason() {
        let url = test_server::listen(|mut socket: Socket| async move {
            socket.request().await;
            socket
                .send(format!("{STREAM}{HI}{}", END.replace("data: [DONE]\n\n", "")))
                .await;
            socket.hang().await;
        })
        .await;
        assert_eq!(answer(&settings(&url)).await, r#"connecting | waiting | "hi" | Stop"#);
    }

    #[tokio::test]
    async fn a_silent_server_is_reported_and_then_given_up() {
        let url = test_server::listen(|mut socket: Socket| async move {
            socket.request().await;
            socket.send(format!("{STREAM}{HI}")).await;
            socket.hang().await;
        })
        .await;
        let mut settings = settings(&url);
        settings.connection.idle_timeout = Duration::from_millis(200);
        let shown = answer(&settings).await;
        assert!(shown.starts_with(r#"connecting | waiting | "hi" | stalled"#), "{shown}");
        assert!(
            shown.ends_with(&format!("STREAM_INTERRUPTED {url} sent no data for 200 ms")),
            "{shown}"
        );
    }

    #[tokio::test]
    async fn dropping_the_stream_closes_the_connection() {
        let (told, mut diary) = test_server::diary();
        let url = test_server::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                socket.request().await;
                socket.send(format!("{STREAM}{HI}")).await;
                socket.closed().await;
                told.send("closed").ok();
            }
        })
        .await;
        let mut pieces = provider(&settings(&url)).stream(request());
        while !matches!(pieces.next().await, Some(Piece::Text(_))) {}
        assert!(diary.so_far().is_empty());
        drop(pieces);
        assert_eq!(diary.next().await, "closed");
    }

    #[tokio::test]
    async fn without_a_model_the_first_of_the_list_is_taken() {
        let (told, mut diary) = test_server::diary();
        let url = test_server::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                let request = socket.request().await;
                let answer = if request.starts_with("GET /v1/models ") {
                    page(
                        "200 OK",
                        "application/json",
                        "{\"data\":[{\"id\":\"first\"},{\"id\":\"second\"}]}",
                    )
                } else {
                    told.send(request).ok();
                    format!("{STREAM}{HI}{END}")
                };
                socket
                    .send(answer.replacen("\r\n", "\r\nConnection: close\r\n", 1))
                    .await;
            }
        })
        .await;
        let nameless = ModelRequest {
            model: String::new(),
            ..request()
        };
        let pieces: Vec<Piece> = provider(&settings(&url)).stream(nameless).collect().await;
        assert_eq!(pieces.last(), Some(&Piece::End(EndReason::Stop)));
        assert!(diary.next().await.contains("\"model\":\"first\""));
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let environment = Environment::default();
        let cases = [
            (config::Provider::default(), "no address is configured"),
            (
                settings("http://example.org"),
                "`http://example.org` would send the key and the conversation unencrypted",
            ),
        ];
        for (settings, want) in cases {
            let failure = Server::new(Chat::default(), &settings, &environment).err().expect(want);
            assert_eq!(&*failure.message, want);
        }
        let strange = config::Provider {
            kind: "carrier-pigeon".to_owned(),
            ..settings("http://127.0.0.1")
        };
        let failure = crate::models::open(&strange, &environment).err().expect("no such kind");
        let known: Vec<&str> = crate::models::PROVIDERS.iter().map(|it| it.name).collect();
        assert_eq!(failure.details(), format!("known kinds: {}", known.join(", ")));
        let peer = Server::new(Chat::default(), &settings("http://127.0.0.1:8089/v1"), &environment).expect("sound");
        assert_eq!(peer.peer(), "openai at 127.0.0.1:8089");
    }

    #[tokio::test]
    async fn a_key_that_cannot_be_had_is_said_before_anything_is_sent() {
        let (url, count) = scripted(vec![format!("{STREAM}{HI}{END}")]).await;
        let mut settings = settings(&url);
        settings.key = KeySource::Variables(vec!["NO_SUCH_KEY".to_owned()]);
        assert_eq!(
            answer(&settings).await,
            "connecting | LLM_AUTH the environment has no NO_SUCH_KEY"
        );
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
}
