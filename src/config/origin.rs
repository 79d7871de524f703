//! The origin of a value: its layer and location.

use super::Location;

/// Layer of a setting. A later variant overrides an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    Default,
    /// The user's own settings file.
    User,
    /// The settings file of a trusted workspace.
    Project,
    /// Environment variables.
    Environment,
    /// Command-line flags.
    Flag,
}

/// Layer and location of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub layer: Layer,
    /// `None` for a default.
    pub place: Option<Location>,
}

impl Origin {
    pub(super) const DEFAULT: Self = Self {
        layer: Layer::Default,
        place: None,
    };
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            None => f.write_str("default"),
            Some(place) => place.fmt(f),
        }
    }
}
