//! Typed settings from layers: defaults, user, project, environment, flags.
