//! The lines of a history in an order that could have been.
//!
//! Each process writes the time beside what it tells, in milliseconds, and much happens within one. So times alone would
//! show an answer that arrives before it left. Within a process the order is known, and between two a message is sent
//! before it is received.

use std::collections::{BTreeMap, VecDeque};

use crate::history::{HistoryEvent, Line};
use crate::rules::{fault::Direction, ids::Endpoint, message::MessageKind};

/// What a process told, with the place at which the supervisor heard it.
type Told = BTreeMap<Endpoint, VecDeque<(usize, Line)>>;

/// Merges what the processes told, by time, and never an effect before its cause.
pub(super) fn in_order(lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
    let mut told = Told::new();
    for (place, line) in lines.into_iter().enumerate() {
        told.entry(line.by).or_default().push_back((place, line));
    }
    for own in told.values_mut() {
        // What the supervisor tells of a replica comes another way than what the replica tells itself.
        own.make_contiguous().sort_by_key(|(_, line)| line.at);
    }
    let mut ordered = Vec::new();
    while let Some(next) = next(&told) {
        ordered.extend(told.get_mut(&next).and_then(VecDeque::pop_front).map(|(_, line)| line));
    }
    ordered
}

/// Whose turn it is: the earliest whose cause has been told. Among equals the client is last, for it is the one that
/// hears of things.
fn next(told: &Told) -> Option<Endpoint> {
    let fronts = || told.values().filter_map(VecDeque::front);
    let key = |(place, line): &&(usize, Line)| (line.at, line.by == Endpoint::Client, *place);
    let left = |line: &Line| told.values().flatten().any(|(_, other)| causes(other, line));
    let free = fronts().filter(|(_, line)| !left(line)).min_by_key(key);
    free.or_else(|| fronts().min_by_key(key)).map(|(_, line)| line.by)
}

/// Whether the one is the sending of what the other received. A client tells of its requests when it starts an attempt.
fn causes(cause: &Line, effect: &Line) -> bool {
    let HistoryEvent::Received(received) = &effect.event else { return false };
    if cause.at > effect.at {
        return false;
    }
    let is_request = received.kind == MessageKind::Request && received.direction == Direction::Request;
    if let HistoryEvent::AttemptStarted { key, attempt, .. } = &cause.event {
        return is_request && received.key.as_ref() == Some(key) && received.attempt == Some(*attempt);
    }
    matches!(&cause.event, HistoryEvent::Sent(sent) if sent == received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::event::Message;
    use crate::rules::ids::{Attempt, Millis, ReplicaId};

    #[test]
    fn within_one_millisecond_an_answer_leaves_before_it_arrives() {
        let a = Endpoint::Replica(ReplicaId::FIRST);
        let (kind, key, attempt) = (MessageKind::Request, "k".parse().ok(), Some(Attempt(1)));
        let answer = Message { from: Endpoint::Client, to: a, direction: Direction::Reply, kind, key, attempt };
        let line = |at, by, event| Line { at: Millis(at), by, event };
        let told = [
            line(7, Endpoint::Client, HistoryEvent::Received(answer.clone())),
            line(6, a, HistoryEvent::Paused),
            line(7, a, HistoryEvent::Resumed),
            line(7, a, HistoryEvent::Sent(answer.clone())),
            line(7, Endpoint::Client, HistoryEvent::RunEnded),
        ];
        let ordered: Vec<HistoryEvent> = in_order(told).into_iter().map(|line| line.event).collect();
        let expected = [
            HistoryEvent::Paused,
            HistoryEvent::Resumed,
            HistoryEvent::Sent(answer.clone()),
            HistoryEvent::Received(answer),
            HistoryEvent::RunEnded,
        ];
        assert_eq!(ordered, expected);
    }
}
