//! The gateway from outside.
