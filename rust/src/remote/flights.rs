//! Requests for the same thing, by several readers at once, are one request.
//!
//! A reader that comes while a request is being prepared gets its answer. An answer to a request that was sent before is not good
//! enough: the value may have been changed in between, by the reader itself. So for each key one request is on its way,
//! and all later readers share the next one, which is sent when that one is answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{Notify, watch};

use crate::error::{Error, Result};
use crate::remote::failures::Reason;
use crate::threads::locked;

/// Requests for one key that are on their way at a time.
const MOST_SENT: usize = 1;

/// All that is on its way, and about to be.
#[derive(Debug)]
pub struct Flights<T> {
    keys: Mutex<HashMap<String, Flight<T>>>,
}

#[derive(Debug)]
struct Flight<T> {
    sent: usize,
    /// What is being prepared: others may still join.
    next: Option<Next<T>>,
}

#[derive(Debug)]
struct Next<T> {
    answer: watch::Receiver<Option<T>>,
    turn: Arc<Notify>,
}

/// What a reader that needs a value gets.
pub enum Seat<'a, T: Clone> {
    /// The answer to another reader's request.
    Passenger(T),
    /// He has to ask, and to tell the others.
    Pilot(Pilot<'a, T>),
}

/// The reader that sends the request for the others too. If it gives up, one of them sends it.
pub struct Pilot<'a, T: Clone> {
    flights: &'a Flights<T>,
    key: String,
    answer: watch::Sender<Option<T>>,
    turn: Arc<Notify>,
    is_sent: bool,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self { keys: Mutex::default() }
    }
}

impl<T: Clone> Flights<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Flight<T>>> {
        locked(&self.keys)
    }

    /// Wait for the answer to another reader's request, if one is under way, or for the turn to send one.
    pub async fn board(&self, key: &str) -> Seat<'_, T> {
        loop {
            let mut pilot = match self.join(key) {
                Ok(pilot) => pilot,
                Err(mut answer) => {
                    if let Ok(answer) = answer.wait_for(Option::is_some).await
                        && let Some(value) = &*answer
                    {
                        return Seat::Passenger(value.clone());
                    }
                    continue;
                }
            };
            while !pilot.may_send() {
                let turn = Arc::clone(&pilot.turn);
                turn.notified().await;
            }
            return Seat::Pilot(pilot);
        }
    }

    fn join(&self, key: &str) -> Result<Pilot<'_, T>, watch::Receiver<Option<T>>> {
        let mut keys = self.lock();
        if let Some(next) = keys.get(key).and_then(|flight| flight.next.as_ref()) {
            return Err(next.answer.clone());
        }
        let (answer, receiver) = watch::channel(None);
        let turn = Arc::new(Notify::new());
        let flight = keys.entry(key.to_owned()).or_insert(Flight { sent: 0, next: None });
        flight.next = Some(Next { answer: receiver, turn: Arc::clone(&turn) });
        Ok(Pilot { flights: self, key: key.to_owned(), answer, turn, is_sent: false })
    }
}

impl<T: Clone> Pilot<'_, T> {
    fn may_send(&mut self) -> bool {
        self.flights.lock().get(&self.key).is_none_or(|flight| flight.sent < MOST_SENT)
    }

    /// Take no more readers, as the request is sent now; return whether others wait for its answer.
    pub fn depart(&mut self) -> bool {
        let mut keys = self.flights.lock();
        if let Some(flight) = keys.get_mut(&self.key) {
            flight.next = None;
            flight.sent += 1;
        }
        self.is_sent = true;
        self.answer.receiver_count() > 0
    }

    /// Hand the answer to the others.
    pub fn land(self, answer: T) {
        self.answer.send_replace(Some(answer));
    }
}

impl<T: Clone> Drop for Pilot<'_, T> {
    fn drop(&mut self) {
        let mut keys = self.flights.lock();
        let Some(flight) = keys.get_mut(&self.key) else { return };
        if self.is_sent {
            flight.sent -= 1;
        } else {
            flight.next = None;
        }
        match &flight.next {
            Some(next) => next.turn.notify_one(),
            None if flight.sent == 0 => {
                keys.remove(&self.key);
            }
            None => {}
        }
    }
}

/// Requests whose answers others may have even if they come after one was sent: readers for whom an answer is as good as one
/// to a request of their own.
#[derive(Debug)]
pub struct Shuttles<T>(Mutex<HashMap<String, watch::Receiver<Option<T>>>>);

/// The reader that sends a request. If it gives up, the others send theirs.
pub struct Driver<'a, T> {
    shuttles: &'a Shuttles<T>,
    key: String,
    answer: watch::Sender<Option<T>>,
}

impl<T> Default for Shuttles<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Shuttles<T> {
    /// Wait for the answer to a request that is under way; None if there is none, or if it was given up.
    pub async fn ride(&self, key: &str) -> Option<T> {
        let mut answer = locked(&self.0).get(key)?.clone();
        answer.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// Let others have the answer to a request that is sent now; None if another one is under way.
    pub fn drive(&self, key: &str) -> Option<Driver<'_, T>> {
        let mut keys = locked(&self.0);
        if keys.contains_key(key) {
            return None;
        }
        let (answer, receiver) = watch::channel(None);
        keys.insert(key.to_owned(), receiver);
        Some(Driver { shuttles: self, key: key.to_owned(), answer })
    }
}

impl<T> Driver<'_, T> {
    /// Hand the answer to the others.
    pub fn arrive(self, answer: T) {
        self.answer.send_replace(Some(answer));
    }
}

impl<T> Drop for Driver<'_, T> {
    fn drop(&mut self) {
        locked(&self.shuttles.0).remove(&self.key);
    }
}

/// Send a request; or if another reader is about to send the same request, wait for the answer to that one.
///
/// # Errors
/// Those of the request.
pub async fn shared<T: Clone>(
    flights: &Flights<Result<T, Reason>>,
    name: &str,
    request: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut pilot = match flights.board(name).await {
        Seat::Passenger(answer) => return answer.map_err(Error::from),
        Seat::Pilot(pilot) => pilot,
    };
    pilot.depart();
    let answer = request.await;
    pilot.land(match &answer {
        Ok(answer) => Ok(answer.clone()),
        Err(error) => Err(Reason::of(error)),
    });
    answer
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_request_under_way_is_joined_and_one_that_was_given_up_is_not() {
        let shuttles: Shuttles<u8> = Shuttles::default();
        assert_eq!(shuttles.ride("a").now_or_never(), Some(None));
        let driver = shuttles.drive("a").unwrap();
        assert!(shuttles.drive("a").is_none());
        let mut rider = pin!(shuttles.ride("a"));
        assert_eq!(rider.as_mut().now_or_never(), None);
        driver.arrive(7);
        assert_eq!(rider.now_or_never(), Some(Some(7)));
        let driver = shuttles.drive("a").unwrap();
        let mut rider = pin!(shuttles.ride("a"));
        assert_eq!(rider.as_mut().now_or_never(), None);
        drop(driver);
        assert_eq!(rider.now_or_never(), Some(None));
        assert!(shuttles.drive("a").is_some());
    }
}
