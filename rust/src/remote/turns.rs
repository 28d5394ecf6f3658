//! One writer of this process at a time for each key: others would only get in its way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use crate::threads::locked;

/// So many keys are noted before those that are free are forgotten.
const FEW: usize = 1000;

/// One writer of this process at a time for each key: others would only get in its way.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<String, Weak<Turn<()>>>>);

impl Turns {
    /// Wait for the turn to change the value of a key. It lasts until what is returned is dropped.
    pub async fn take(&self, key: &str) -> OwnedMutexGuard<()> {
        self.turn(key).lock_owned().await
    }

    fn turn(&self, key: &str) -> Arc<Turn<()>> {
        let mut turns = locked(&self.0);
        if let Some(turn) = turns.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        if turns.len() >= FEW && turns.len() == turns.capacity() {
            turns.retain(|_, turn| turn.strong_count() > 0);
        }
        let turn = Arc::default();
        turns.insert(key.to_owned(), Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_turn_as_long_as_somebody_waits_for_it() {
        let turns = Turns::default();
        let first = turns.turn("a");
        assert!(Arc::ptr_eq(&first, &turns.turn("a")));
        assert!(!Arc::ptr_eq(&first, &turns.turn("b")));
    }

    #[test]
    fn turns_of_free_keys_are_forgotten() {
        let turns = Turns::default();
        let held = turns.turn("held");
        for number in 0..10 * FEW {
            turns.turn(&number.to_string());
        }
        assert!(turns.0.lock().unwrap().len() < 5 * FEW);
        assert!(Arc::ptr_eq(&held, &turns.turn("held")));
    }
}
