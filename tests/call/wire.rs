//! What travels, both ways.

use std::time::Duration;

use counterfoil::call::propagate::{self, Inbound, MalformedFault, Onward};
use counterfoil::call::{Answer, Attempt, AttemptError, Call, DeadlinePolicy};
use http::{HeaderMap, HeaderValue};
use tonic::metadata::{MetadataMap, MetadataValue};

use super::support::{World, ms};

/// What the second attempt of a call with a second to live sends along.
fn second_attempt() -> Onward {
    let world = World::new();
    let caller = world.builder().deadline(DeadlinePolicy::within(ms(1000))).backoff(ms(1), ms(1)).build().unwrap();
    let finished = caller.call_blocking(Call::mutation("create", caller.mint()), |attempt: Attempt| {
        let cut = counterfoil::call::Verdict::maybe_applied(counterfoil::call::Kind::Transient);
        match attempt.number() {
            1 => Err(AttemptError::new(cut, ())),
            _ => Ok(Answer::new(attempt.onward().unwrap())),
        }
    });
    finished.success().unwrap()
}

const NOW: Duration = Duration::from_secs(77);

fn assert_is(inbound: &Inbound, onward: &Onward) {
    assert_eq!(inbound.deadline.remaining(NOW), ms(999));
    assert_eq!((inbound.previous_attempts, inbound.owned, inbound.trace), (1, true, Some(onward.trace)));
}

#[test]
fn what_an_attempt_sends_in_headers_is_read_on_the_other_side() {
    let onward = second_attempt();
    let mut headers = HeaderMap::new();
    propagate::http::write(&onward, &mut headers).unwrap();
    assert_eq!(headers["x-deadline-remaining-ms"], "999");
    assert_is(&propagate::http::inbound(&headers, NOW).unwrap(), &onward);
    assert_eq!(propagate::http::inbound(&HeaderMap::new(), NOW), Ok(Inbound::NONE));
}

#[test]
fn what_an_attempt_sends_in_metadata_is_read_on_the_other_side() {
    let onward = second_attempt();
    let mut metadata = MetadataMap::new();
    propagate::grpc::write(&onward, &mut metadata).unwrap();
    assert_eq!(metadata.get("grpc-timeout").unwrap(), "999000u");
    assert_eq!(metadata.get("grpc-previous-rpc-attempts").unwrap(), "1");
    assert_is(&propagate::grpc::inbound(&metadata, NOW).unwrap(), &onward);
    assert_eq!(propagate::grpc::inbound(&MetadataMap::new(), NOW), Ok(Inbound::NONE));
}

#[test]
fn what_came_in_does_not_go_out_again_beside_what_is_said_here() {
    let onward = second_attempt();
    let mut headers = HeaderMap::new();
    headers.append("x-deadline-remaining-ms", HeaderValue::from_static("60000"));
    headers.append("x-deadline-remaining-ms", HeaderValue::from_static("50000"));
    propagate::http::write(&onward, &mut headers).unwrap();
    assert_eq!(headers.get_all("x-deadline-remaining-ms").iter().count(), 1);
}

#[test]
fn malformed_headers_are_named_and_never_guessed() {
    for (header, values, fault) in [
        ("x-deadline-remaining-ms", vec!["-5"], MalformedFault::NotANumber),
        ("x-deadline-remaining-ms", vec![""], MalformedFault::Empty),
        ("x-deadline-remaining-ms", vec!["5", "5"], MalformedFault::Repeated),
        ("x-previous-attempts", vec!["many"], MalformedFault::NotANumber),
        ("x-previous-attempts", vec!["4294967296"], MalformedFault::TooLong),
    ] {
        let mut headers = HeaderMap::new();
        for value in &values {
            headers.append(header, HeaderValue::from_static(value));
        }
        let error = propagate::http::inbound(&headers, NOW).unwrap_err();
        assert_eq!((error.header, error.fault), (header, fault), "{values:?}");
    }
    let mut metadata = MetadataMap::new();
    metadata.append("grpc-timeout", MetadataValue::from_static("100"));
    assert_eq!(propagate::grpc::inbound(&metadata, NOW).unwrap_err().fault, MalformedFault::Unit);
    metadata.append("grpc-timeout", MetadataValue::from_static("1S"));
    assert_eq!(propagate::grpc::inbound(&metadata, NOW).unwrap_err().fault, MalformedFault::Repeated);
}

#[test]
fn time_that_is_up_is_seen_at_once_by_the_receiver() {
    let mut headers = HeaderMap::new();
    headers.append("x-deadline-remaining-ms", HeaderValue::from_static("0"));
    assert!(propagate::http::inbound(&headers, NOW).unwrap().deadline.has_passed(NOW));
}

#[test]
fn a_call_on_behalf_of_one_that_came_in_makes_one_attempt_within_its_deadline() {
    let world = World::new();
    let caller = world.builder().deadline(DeadlinePolicy::within(ms(5000)).margin(ms(40))).build().unwrap();
    let mut metadata = MetadataMap::new();
    propagate::grpc::write(&second_attempt(), &mut metadata).unwrap();
    let inbound = propagate::grpc::inbound(&metadata, world.now()).unwrap();
    let mut remaining = Vec::new();
    let finished = caller.call_blocking(Call::read("get").inherit(&inbound), |attempt| {
        remaining.push(attempt.remaining());
        let cut = counterfoil::call::Verdict::maybe_applied(counterfoil::call::Kind::Transient);
        Err::<Answer<()>, _>(AttemptError::new(cut, ()))
    });
    assert_eq!(remaining, [ms(999 - 40)]);
    assert_eq!(finished.report.attempts, 1);
}
