//! Processes and atomic files for our own use; nothing that a model or a repository asked for runs here.
