//! The HTTP client, SSE frames and retries.
//!
//! Nothing here knows what the frames mean. Peers are hostile until shown otherwise: every wait has an end, every
//! buffer a limit, and a token goes to the one server it was meant for.

pub mod assertion;
pub mod client;
pub mod fetch;
pub mod retry;
pub mod sse;
#[cfg(test)]
pub mod test_server;
