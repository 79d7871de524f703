//! Why a request gets no answer: a status and the protocol's error body.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};

use crate::protocol::codec::{Failure, RequestError};

#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    failure: Failure,
    /// Seconds after which it may be better.
    retry_after: Option<u32>,
    /// What follows on the connection cannot be trusted, or is not wanted.
    closes: bool,
}

impl Refusal {
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
            failure: Failure {
                code: code.to_owned(),
                message: message.into(),
                source: "gateway".to_owned(),
                details: String::new(),
            },
            retry_after: None,
            closes: false,
        }
    }

    pub fn details(mut self, details: impl Into<String>) -> Self {
        self.failure.details = details.into();
        self
    }

    pub fn after_seconds(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

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

/// A body of JSON text.
pub fn json(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
