//! What happens to the dependency. In each, all is well for 20 s, then not for 10 s, then well again.

use std::time::Duration;

use super::seconds;

/// When the trouble begins.
pub(crate) const BEGINS: Duration = seconds(20);
/// When the dependency is healthy again.
pub(crate) const HEALTHY: Duration = seconds(30);
/// When the run ends.
pub(crate) const ENDS: Duration = seconds(65);

/// What a connection that has to be set up costs the dependency, beside the request.
const HANDSHAKE: Duration = Duration::from_millis(100);

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Four times as many requests as usual.
    Overload,
    /// Something in between closes each connection after its request.
    ColdConnections,
    /// Connections are refused for four seconds, then caches are cold for six.
    Deployment,
    /// Everything takes six times as long.
    SlowDown,
}

impl Scenario {
    pub(crate) const ALL: [Self; 4] = [Self::Overload, Self::ColdConnections, Self::Deployment, Self::SlowDown];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Overload => "overload",
            Self::ColdConnections => "cold connections",
            Self::Deployment => "deployment",
            Self::SlowDown => "slow-down",
        }
    }

    fn in_trouble(at: Duration) -> bool {
        BEGINS <= at && at < HEALTHY
    }

    /// How many times as many requests as usual arrive.
    pub(crate) fn load(self, at: Duration) -> u32 {
        if self == Self::Overload && Self::in_trouble(at) { 4 } else { 1 }
    }

    /// How many times as long as usual a request takes.
    pub(crate) fn slowness(self, at: Duration) -> u32 {
        match self {
            Self::SlowDown if Self::in_trouble(at) => 6,
            Self::Deployment if Self::in_trouble(at) => 5,
            Self::Overload | Self::ColdConnections | Self::Deployment | Self::SlowDown => 1,
        }
    }

    /// Nobody is there.
    pub(crate) fn refuses(self, at: Duration) -> bool {
        self == Self::Deployment && BEGINS <= at && at < BEGINS + seconds(4)
    }

    /// Connections do not outlive their request.
    pub(crate) fn closes_connections(self, at: Duration) -> bool {
        self == Self::ColdConnections && Self::in_trouble(at)
    }

    /// What a new connection costs. Only this scenario is about that.
    pub(crate) fn handshake(self) -> Duration {
        if self == Self::ColdConnections { HANDSHAKE } else { Duration::ZERO }
    }
}
