//! Waiting for several at once.

use std::future::Future;

/// Waits for all, at the same time and in one task.
pub async fn join_all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(move |context| {
        let mut all = true;
        for (future, result) in &mut waiting {
            if result.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *result = Some(value),
                    std::task::Poll::Pending => all = false,
                }
            }
        }
        if all {
            std::task::Poll::Ready(waiting.iter_mut().filter_map(|(_, result)| result.take()).collect())
        } else {
            std::task::Poll::Pending
        }
    })
    .await
}
