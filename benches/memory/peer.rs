//! A model server and documents gateway whose answers are as long as a bench wants.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;

/// Interval at which an answer that is held open looks whether it may end.
const LOOK: Duration = Duration::from_millis(10);

/// Pieces that a paced answer sends at a time, and the pause after them: 400 in a second, as a fast model writes. With more, 300
/// streams on two cores measure what waits in sockets.
const BURST: usize = 4;
const PAUSE: Duration = Duration::from_millis(10);

/// Length and form of the answers.
#[derive(Clone, Debug)]
pub struct Script {
    /// Text documents of a gateway's answer. A model's answer is one text.
    pub documents: usize,
    /// Pieces of each document.
    pub pieces: usize,
    pub piece: String,
    /// True if pieces come a few at a time, as a model writes them; false for all at once.
    pub is_paced: bool,
    /// True if a model thinks the pieces, and then says one.
    pub is_thought: bool,
    /// True if an answer stays open after its last piece until [`Peer::release`].
    pub is_held: bool,
}

/// A server on a port of its own, as long as the program lives.
pub struct Peer {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    script: Script,
    /// Answers whose last piece has been sent.
    said: AtomicUsize,
    is_released: AtomicBool,
}

impl Peer {
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(State {
            script,
            said: AtomicUsize::new(0),
            is_released: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // A client that leaves in mid-answer is no failure of the bench.
                std::thread::spawn(move || state.serve(&socket));
            }
        });
        Self { address, state }
    }

    /// Number of answers whose last piece has been sent.
    pub fn said(&self) -> usize {
        self.state.said.load(Ordering::Relaxed)
    }

    /// Ends the answers that are held open.
    pub fn release(&self) {
        self.state.is_released.store(true, Ordering::Relaxed);
    }
}

impl State {
    /// Answers the requests of one connection; each answer closes it.
    fn serve(&self, socket: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(socket);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut length = 0;
        loop {
            line.clear();
            reader.read_line(&mut line).ok()?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let mut out = std::io::BufWriter::with_capacity(64 << 10, socket);
        if path == "/v1/chat/completions" {
            self.model(&body, &mut out)
        } else if path == "/api/v1/chat/completions" {
            self.gateway(&mut out)
        } else {
            let head = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            out.write_all(head.as_bytes()).ok()
        }
    }

    fn model(&self, request: &[u8], out: &mut impl std::io::Write) -> Option<()> {
        begin(out)?;
        let chunk = |delta: &serde_json::Value, reason: Option<&str>| {
            let chunk = json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
            });
            format!("data: {chunk}\n\n")
        };
        let wants_summary = request.windows(27).any(|it| it == b"summary of this conversatio");
        let (piece, pieces) = if wants_summary {
            ("We talked about carts.", 1)
        } else {
            (self.script.piece.as_str(), self.script.pieces)
        };
        let text = chunk(&json!({ "content": piece }), None);
        let thought = chunk(&json!({ "reasoning_content": piece }), None);
        for nth in 1..=pieces {
            let is_thought = self.script.is_thought && nth < pieces;
            out.write_all(if is_thought { &thought } else { &text }.as_bytes())
                .ok()?;
            self.pace(nth, out)?;
        }
        self.hold(out)?;
        // As a server counts that knows no better.
        let (prompt, completion) = (request.len() / 4, pieces * piece.len() / 4);
        let usage = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": [],
            "usage": { "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion },
        });
        let end = format!("{}data: {usage}\n\ndata: [DONE]\n\n", chunk(&json!({}), Some("stop")));
        out.write_all(end.as_bytes()).ok()?;
        out.flush().ok()
    }

    fn gateway(&self, out: &mut impl std::io::Write) -> Option<()> {
        begin(out)?;
        say(
            out,
            "response_start",
            json!({ "type": "response_start", "id": "r1", "model": "scripted" }),
        )?;
        for at in 0..self.script.documents {
            let id = format!("d{at}");
            let start = json!({ "id": id, "type": "text", "sequence": at + 1 });
            say(
                out,
                "document_start",
                json!({ "type": "document_start", "document": start }),
            )?;
            for nth in 1..=self.script.pieces {
                say(
                    out,
                    "content_delta",
                    json!({ "type": "content_delta", "documentId": id, "delta": self.script.piece }),
                )?;
                self.pace(nth, out)?;
            }
            say(out, "document_end", json!({ "type": "document_end", "documentId": id }))?;
        }
        self.hold(out)?;
        out.write_all(b"event: done\ndata: {\"type\":\"done\",\"status\":\"completed\"}\n\n")
            .ok()?;
        out.flush().ok()
    }

    /// Waits after each [`BURST`] of a paced answer.
    fn pace(&self, nth: usize, out: &mut impl std::io::Write) -> Option<()> {
        if self.script.is_paced && nth.is_multiple_of(BURST) {
            out.flush().ok()?;
            std::thread::sleep(PAUSE);
        }
        Some(())
    }

    /// Counts an answer as said, and waits where it is held open.
    fn hold(&self, out: &mut impl std::io::Write) -> Option<()> {
        out.flush().ok()?;
        self.said.fetch_add(1, Ordering::Relaxed);
        while self.script.is_held && !self.is_released.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        Some(())
    }
}

/// Sends an event of a gateway.
fn say(out: &mut impl std::io::Write, event: &str, data: serde_json::Value) -> Option<()> {
    out.write_all(format!("event: {event}\ndata: {data}\n\n").as_bytes())
        .ok()
}

fn begin(out: &mut impl std::io::Write) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    out.write_all(head.as_bytes()).ok()
}
