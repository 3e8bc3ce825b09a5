//! A policy file that changes while calls go on.
