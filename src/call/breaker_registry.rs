//! One breaker for each population, and a bound on how many there are.
//!
//! A population is one dependency, one operation and one tenant: one tenant's failures do not close the door to others, and
//! an operation that is broken does not take the others with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::base::name::Tenant;

use super::breaker::{Breaker, BreakerConfig, BreakerState};
use super::config_error::ConfigError;
use super::fold::Folding;

/// Most breakers that one caller may keep.
pub const BREAKERS_MAX: usize = 1 << 16;
/// Without a bound of one's own. A breaker has some 400 bytes.
const BREAKERS_DEFAULT: usize = 1024;

/// Whose attempts are counted together. The dependency is the caller's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Population {
    pub(crate) operation: &'static str,
    pub(crate) tenant: Option<Tenant>,
}

#[derive(Debug)]
struct Entry {
    breaker: Arc<Breaker>,
    used: Duration,
}

/// Breakers by population.
#[derive(Debug)]
pub(crate) struct BreakerRegistry {
    config: BreakerConfig,
    max: usize,
    entries: Mutex<HashMap<Population, Entry, Folding>>,
}

impl BreakerRegistry {
    pub(crate) const DEFAULT_MAX: usize = BREAKERS_DEFAULT;

    pub(crate) fn new(config: BreakerConfig, max: usize) -> Result<Self, ConfigError> {
        config.check()?;
        if max == 0 {
            return Err(ConfigError::Zero { what: "the number of breakers" });
        }
        if max > BREAKERS_MAX {
            let (value, most) = (max as u64, BREAKERS_MAX as u64);
            return Err(ConfigError::TooLarge { what: "the number of breakers", value, most });
        }
        Ok(Self { config, max, entries: Mutex::default() })
    }

    /// The population's breaker. `None` if there is no room for a new one: open breakers, half-open ones and those with
    /// recent samples or attempts under way are never forgotten, so what comes after them goes without.
    pub(crate) fn get(&self, population: &Population, now: Duration) -> Option<Arc<Breaker>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get_mut(population) {
            entry.used = entry.used.max(now);
            return Some(Arc::clone(&entry.breaker));
        }
        if entries.len() >= self.max {
            let idle = |entry: &Entry| Arc::strong_count(&entry.breaker) == 1 && entry.breaker.is_idle(now);
            let idle = entries.iter().filter(|(_, entry)| idle(entry));
            let oldest = idle.min_by_key(|(_, entry)| entry.used).map(|(population, _)| population.clone())?;
            entries.remove(&oldest);
        }
        let breaker = Arc::new(Breaker::new(self.config));
        entries.insert(population.clone(), Entry { breaker: Arc::clone(&breaker), used: now });
        Some(breaker)
    }

    /// What a population's breaker does, if there is one.
    pub(crate) fn state(&self, population: &Population) -> Option<BreakerState> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(population).map(|entry| entry.breaker.state())
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Health;
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn of(tenant: &str) -> Population {
        Population { operation: "charge", tenant: Some(Tenant::new(tenant).unwrap()) }
    }

    fn registry(max: usize) -> BreakerRegistry {
        BreakerRegistry::new(BreakerConfig::new(1, 0.5), max).unwrap()
    }

    fn fail(registry: &BreakerRegistry, population: &Population, now: Duration) {
        registry.get(population, now).unwrap().take(now).unwrap().record(now, Health::Bad, 0);
    }

    #[test]
    fn one_tenant_does_not_open_the_breaker_of_another_and_one_operation_not_that_of_others() {
        let registry = registry(10);
        fail(&registry, &of("a"), seconds(0));
        let other = Population { operation: "refund", ..of("a") };
        assert!(registry.get(&of("a"), seconds(0)).unwrap().look(seconds(0)).is_err());
        assert!(registry.get(&of("b"), seconds(0)).unwrap().look(seconds(0)).is_ok());
        assert!(registry.get(&other, seconds(0)).unwrap().look(seconds(0)).is_ok());
    }

    #[test]
    fn the_registry_is_bounded_and_forgets_the_closed_and_idle_only() {
        let registry = registry(2);
        fail(&registry, &of("open"), seconds(0));
        drop(registry.get(&of("idle"), seconds(0)));
        assert!(registry.get(&of("new"), seconds(1)).is_some());
        assert_eq!(registry.state(&of("open")), Some(BreakerState::Open));
        assert_eq!(registry.state(&of("idle")), None);
        fail(&registry, &of("new"), seconds(1));
        assert!(registry.get(&of("one too many"), seconds(100_000)).is_none(), "both are open");
    }

    #[test]
    fn a_breaker_with_an_attempt_under_way_or_samples_is_not_forgotten() {
        let registry = registry(1);
        let token = registry.get(&of("busy"), seconds(0)).unwrap().take(seconds(0)).unwrap();
        assert!(registry.get(&of("other"), seconds(60)).is_none());
        token.record(seconds(60), Health::Good, 0);
        assert!(registry.get(&of("other"), seconds(65)).is_none(), "it has a sample");
        assert!(registry.get(&of("other"), seconds(90)).is_some());
    }

    #[test]
    fn ten_thousand_tenants_leave_no_more_breakers_than_the_bound() {
        let registry = registry(8);
        for tenant in 0..10_000_u64 {
            drop(registry.get(&of(&format!("tenant {tenant}")), seconds(tenant)));
        }
        assert_eq!(registry.entries.lock().unwrap().len(), 8);
    }

    #[test]
    fn a_registry_of_nothing_is_refused() {
        let config = BreakerConfig::new(1, 0.5);
        assert!(matches!(BreakerRegistry::new(config, 0), Err(ConfigError::Zero { .. })));
        assert!(matches!(BreakerRegistry::new(config, BREAKERS_MAX + 1), Err(ConfigError::TooLarge { .. })));
    }
}
