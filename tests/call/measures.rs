//! What can be seen of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterfoil::call::{
    Answer, AttemptError, Call, Connection, DeadlinePolicy, Event, Kind, Measures, Observer, Outcome, Verdict,
};

use super::support::{World, ms, play};

const CUT: Verdict = Verdict::maybe_applied(Kind::Transient);

fn watched() -> (Arc<World>, counterfoil::call::Caller, Arc<Measures>) {
    let world = World::new();
    let measures = Arc::new(Measures::default());
    let policy = DeadlinePolicy::within(ms(1000));
    let caller = world.builder().deadline(policy).observer(measures.clone()).build().unwrap();
    (world, caller, measures)
}

#[test]
fn operations_attempts_and_amplification_are_counted_apart() {
    let (world, caller, measures) = watched();
    drop(play(&world, &caller, Call::read("get"), &[(1, Err(CUT)), (1, Err(CUT)), (1, Ok("third"))]));
    drop(play(&world, &caller, Call::read("get"), &[(1, Ok("first"))]));
    let seen = measures.of("get");
    assert_eq!((seen.started, seen.succeeded(), seen.attempts), (2, 2, 4));
    assert!((seen.amplification() - 2.0).abs() < 1e-9);
    assert!(seen.waited["backoff"] >= ms(2));
}

#[test]
fn outcomes_are_counted_with_their_phase_cause_and_reason() {
    let (world, caller, measures) = watched();
    let overloaded = Verdict::not_applied(Kind::Overloaded);
    drop(play(&world, &caller, Call::read("get"), &[(1, Err(overloaded))]));
    drop(play(&world, &caller, Call::read("get").within(Duration::ZERO), &[(1, Ok("unused"))]));
    drop(play(&world, &caller, Call::unkeyed("get"), &[(1, Err(Verdict::maybe_applied(Kind::Timeout)))]));
    let failing = |_| Err::<Answer<()>, _>(AttemptError::new(CUT, ()));
    drop(caller.call_with_fallback_blocking(Call::read("get"), failing, || ()));
    let seen = measures.of("get");
    let counted = |outcome| seen.outcomes.get(outcome).copied().unwrap_or(0);
    assert_eq!(["overloaded", "deadline_exceeded", "uncertain", "degraded", "success"].map(counted), [1, 1, 1, 1, 0]);
    assert_eq!((seen.deadline_exhausted["start"], seen.uncertain["timeout"]), (1, 1));
    assert_eq!((seen.suppressed["overloaded"], seen.suppressed["no_identity"]), (1, 1));
}

#[test]
fn a_timeout_is_suggested_from_what_was_measured_of_warm_connections() {
    let (world, caller, measures) = watched();
    for takes in 1..=200 {
        let finished = caller.call_blocking(Call::read("get"), |attempt| {
            world.advance(ms(takes));
            attempt.connection(Connection::Warm);
            Ok::<_, AttemptError<()>>(Answer::new(()))
        });
        assert!(finished.success().is_some());
    }
    let suggested = measures.suggest_timeout("get", Connection::Warm, 0.05).unwrap();
    assert!(ms(190) <= suggested && suggested <= ms(203), "{suggested:?}");
    assert!(measures.suggest_timeout("get", Connection::Cold, 0.05).is_err());
}

#[test]
fn work_that_comes_to_its_end_after_its_caller_left_is_counted_with_its_cost() {
    let (world, caller, measures) = watched();
    let mut elsewhere = None;
    let finished = caller.call_blocking(Call::read("get"), |attempt| {
        elsewhere = Some(attempt);
        world.advance(ms(1000));
        Err::<Answer<()>, _>(AttemptError::new(Verdict::maybe_applied(Kind::Timeout), ()))
    });
    assert!(matches!(finished.outcome, Outcome::DeadlineExceeded { .. }));
    let elsewhere = elsewhere.unwrap();
    assert!(elsewhere.caller_left());
    elsewhere.finished_elsewhere(12);
    let seen = measures.of("get");
    assert_eq!((seen.abandoned, seen.abandoned_cost), (1, 12));
}

#[test]
fn a_call_that_is_dropped_is_seen_as_cancelled_or_uncertain() {
    let (world, caller, measures) = watched();
    for call in [Call::mutation("create", caller.mint()), Call::mutation("create", caller.mint())] {
        let mut flow = caller.begin(call);
        if measures.of("create").started == 2 {
            drop(flow.step(world.now()));
        }
    }
    let seen = measures.of("create");
    assert_eq!((seen.outcomes["cancelled"], seen.outcomes["uncertain"]), (1, 1));
}

/// Keeps the text of everything that it sees.
#[derive(Debug, Default)]
struct Texts(Mutex<String>);

impl Observer for Texts {
    fn observe(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push_str(&format!("{event:?}\n"));
    }
}

#[test]
fn neither_the_key_nor_the_tenant_is_shown_to_observers() {
    let world = World::new();
    let texts = Arc::new(Texts::default());
    let caller = world.builder().observer(texts.clone()).build().unwrap();
    let identity = counterfoil::call::Identity::from_key("secret-key").unwrap();
    let call = Call::mutation("create", identity).tenant(counterfoil::Tenant::new("secret-tenant").unwrap());
    drop(play(&world, &caller, call, &[(1, Err(CUT)), (1, Ok("done"))]));
    let texts = texts.0.lock().unwrap();
    assert!(texts.contains("identity_hash: Some(") && !texts.contains("secret"), "{texts}");
}

#[cfg(feature = "metrics")]
#[test]
fn the_metrics_observer_records_under_the_documented_names() {
    use std::collections::BTreeSet;

    use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

    #[derive(Default)]
    struct Names(Mutex<BTreeSet<String>>);

    impl Names {
        fn add(&self, key: &Key) {
            let labels = key.labels().map(|label| label.key()).collect::<Vec<_>>().join(",");
            self.0.lock().unwrap().insert(format!("{}{{{labels}}}", key.name()));
        }
    }

    impl Recorder for Names {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            self.add(key);
            Counter::noop()
        }
        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            self.add(key);
            Gauge::noop()
        }
        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            self.add(key);
            Histogram::noop()
        }
    }

    let world = World::new();
    let caller = world.builder().observer(Arc::new(counterfoil::call::MetricsObserver)).build().unwrap();
    let names = Names::default();
    metrics::with_local_recorder(&names, || {
        let call = Call::mutation("create", caller.mint());
        drop(play(&world, &caller, call, &[(1, Err(CUT))]));
        drop(play(&world, &caller, Call::read("get").within(Duration::ZERO), &[(1, Ok("unused"))]));
    });
    let names: Vec<_> = names.0.into_inner().unwrap().into_iter().collect();
    assert_eq!(
        names,
        [
            "caller.admission.wait.duration{dependency,operation,source}",
            "caller.attempt.duration{dependency,operation,result}",
            "caller.budget.balance{dependency,operation}",
            "caller.deadline.exhausted{dependency,operation,phase}",
            "caller.operation.attempts{dependency,operation}",
            "caller.operation.cost{dependency,operation}",
            "caller.operation.duration{dependency,operation,outcome}",
            "caller.operation.uncertain{dependency,operation,cause}",
            "caller.retry.suppressed{dependency,operation,reason}",
        ]
    );
}

#[cfg(feature = "tracing")]
#[test]
fn there_is_one_span_for_the_operation_and_one_below_it_for_each_attempt() {
    use tracing::span::{Attributes, Id};
    use tracing::subscriber::with_default;
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
    use tracing_subscriber::registry::LookupSpan;

    /// The name of a span, and of the one above it.
    type Named = (String, Option<String>);

    #[derive(Clone, Default)]
    struct Spans(Arc<Mutex<Vec<Named>>>);

    impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
        fn on_new_span(&self, _: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
            let span = ctx.span(id).unwrap();
            let parent = span.parent().map(|parent| parent.name().to_owned());
            self.0.lock().unwrap().push((span.name().to_owned(), parent));
        }
    }

    let world = World::new();
    let caller = world.builder().build().unwrap();
    let spans = Spans::default();
    with_default(tracing_subscriber::registry().with(spans.clone()), || {
        drop(play(&world, &caller, Call::read("get"), &[(1, Err(CUT)), (1, Ok("done"))]));
    });
    let operation = ("caller.operation".to_owned(), None);
    let attempt = ("caller.attempt".to_owned(), Some("caller.operation".to_owned()));
    assert_eq!(*spans.0.lock().unwrap(), [operation, attempt.clone(), attempt]);
}
