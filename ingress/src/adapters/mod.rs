//! The adapters, one folder each.

pub(crate) mod api;
pub(crate) mod discord;
pub(crate) mod slack;
pub(crate) mod telegram;
pub(crate) mod web;
pub(crate) mod webhook;
