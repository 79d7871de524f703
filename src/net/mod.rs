//! The HTTP client, SSE frames and retries.
