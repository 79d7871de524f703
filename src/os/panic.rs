//! Panics that somebody waits for: what is caught where it happens is no end of the program.
//!
//! A hook hears of a panic before it is known whether anybody catches it, and would give the terminal back in the middle
//! of a conversation. Here it can ask.

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Poll,
};

thread_local! {
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `future` to its end. Error: the payload of its panic.
pub fn contained<F: Future>(future: F) -> impl Future<Output = Result<F::Output, Box<dyn Any + Send>>> {
    let mut future = Box::pin(future);
    std::future::poll_fn(move |cx| {
        let before = IS_CONTAINED.replace(true);
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        IS_CONTAINED.set(before);
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
}

/// Returns true if a panic on this thread would be caught by [`contained`].
pub fn is_contained() -> bool {
    IS_CONTAINED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_result_and_contained_for_as_long_as_it_may_happen() {
        assert!(!is_contained());
        let fine = contained(async {
            tokio::task::yield_now().await;
            is_contained()
        });
        assert!(fine.await.expect("no panic"));
        assert!(!is_contained());
        let broken = contained(async {
            tokio::task::yield_now().await;
            panic!("planted");
        });
        let broken: Result<(), _> = broken.await;
        let panic = broken.expect_err("a panic");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"planted"));
        assert!(!is_contained());
    }
}
