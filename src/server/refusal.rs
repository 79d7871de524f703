//! Error responses: an HTTP status with the protocol's error body.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use serde_json::Value;

use super::reader::CHUNK_BYTES;
use crate::{
    os::long_text::LongText,
    protocol::codec::{Failure, RequestError},
};

/// An error response to a request. `IntoResponse` renders it in both dialects.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    failure: Box<Failure>,
    /// Value of `Retry-After`, in seconds.
    retry_after: Option<u32>,
    /// Name of the wrong member of the request, for OpenAI's clients.
    param: Option<String>,
    /// True if the connection is closed after the response.
    closes: bool,
}

impl Refusal {
    /// Creates a refusal with the protocol's error code for `status`.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let code = match status {
            StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
            StatusCode::FORBIDDEN => "PERMISSION_DENIED",
            StatusCode::SERVICE_UNAVAILABLE => "RATE_LIMITED",
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => "LLM_UNAVAILABLE",
            it if it.is_server_error() => "INTERNAL",
            _ => "STREAM_PROTOCOL",
        };
        Self {
            status,
            failure: Box::new(Failure {
                code: code.to_owned(),
                message: message.into(),
                source: "gateway".to_owned(),
                details: String::new(),
            }),
            retry_after: None,
            param: None,
            closes: false,
        }
    }

    /// Adds a hint for the client's user.
    pub fn details(mut self, details: impl Into<String>) -> Self {
        self.failure.details = details.into();
        self
    }

    /// Replaces the error code that [`Self::new`] took from the status.
    pub fn code(mut self, code: &str) -> Self {
        code.clone_into(&mut self.failure.code);
        self
    }

    /// Names the wrong member of the request.
    pub fn param(mut self, name: &str) -> Self {
        self.param = Some(name.to_owned());
        self
    }

    /// Message and hint in one text, for bodies that have no place for a hint.
    pub fn sentence(&self) -> String {
        let details = self.failure.details.trim();
        if details.is_empty() {
            self.failure.message.clone()
        } else {
            format!("{}: {details}", self.failure.message)
        }
    }

    #[cfg(test)]
    pub fn message(&self) -> &str {
        &self.failure.message
    }

    /// Adds a `Retry-After` header, in seconds.
    pub fn after_seconds(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Closes the connection after the response: the rest of its input is unwanted or cannot be trusted.
    pub fn closing(mut self) -> Self {
        self.closes = true;
        self
    }
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let mut response = json(self.status, self.failure.to_json().to_string());
        response.extensions_mut().insert(OtherForms {
            openai: openai(&self).to_string(),
            anthropic: anthropic(&self).to_string(),
        });
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Response extension: the same refusal as the error bodies of other APIs. The router uses them for paths below `/v1/`.
#[derive(Clone, Debug)]
pub struct OtherForms {
    pub openai: String,
    pub anthropic: String,
}

/// Returns the error body that OpenAI's servers send.
pub fn openai(refusal: &Refusal) -> Value {
    let Refusal {
        status, failure, param, ..
    } = refusal;
    let kind = match *status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        it if it.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let code = match failure.code.as_str() {
        "UNAUTHORIZED" => "invalid_api_key".to_owned(),
        "LLM_CONTEXT_LENGTH" => "context_length_exceeded".to_owned(),
        "LLM_RATE_LIMITED" => "rate_limit_exceeded".to_owned(),
        code => code.to_ascii_lowercase(),
    };
    let message = refusal.sentence();
    serde_json::json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
}

/// Returns the error body that Anthropic's servers send.
pub fn anthropic(refusal: &Refusal) -> Value {
    let kind = match refusal.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        it if it.is_server_error() => "api_error",
        _ => "invalid_request_error",
    };
    serde_json::json!({ "type": "error", "error": { "type": kind, "message": refusal.sentence() }, "request_id": null })
}

/// Returns a response with a JSON body that must not be cached.
pub fn json(status: StatusCode, text: String) -> Response<Body> {
    with_body(status, Body::from(text))
}

/// The same for text that may be in a file.
pub fn long_json(status: StatusCode, text: LongText) -> Response<Body> {
    if text.is_stored() {
        with_body(status, Body::new(TextBody { text, sent: 0 }))
    } else {
        json(status, text.into_string())
    }
}

/// HTTP body of a text in a file, which is read as the client takes it.
struct TextBody {
    text: LongText,
    sent: usize,
}

impl hyper::body::Body for TextBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let bytes = Bytes::copy_from_slice(self.text.bytes_from(self.sent, CHUNK_BYTES));
        self.sent += bytes.len();
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.sent == self.text.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.text.len() - self.sent) as u64)
    }
}

fn with_body(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
