//! Waits for a server on a thread that may block.

use std::{
    sync::mpsc::{RecvTimeoutError, sync_channel},
    time::{Duration, Instant},
};

use tokio::runtime::Handle;

use crate::index::IsOver;

/// Time between two looks at whether somebody still waits.
const PACE: Duration = Duration::from_millis(50);

/// The result of `work`, which runs on the runtime of this thread. `None`: there is no runtime, it took longer than `most`, or
/// `is_over` says that nobody waits; the work is then dropped.
pub fn wait<T, F>(work: F, most: Duration, is_over: IsOver<'_>) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let runtime = Handle::try_current().ok()?;
    let (send, receive) = sync_channel(1);
    let task = runtime.spawn(async move { send.send(work.await).ok() });
    let end = Instant::now() + most;
    loop {
        match receive.recv_timeout(PACE) {
            Ok(result) => return Some(result),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if is_over() || Instant::now() >= end => {
                task.abort();
                return None;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
