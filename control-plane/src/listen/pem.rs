//! Certificates and keys from PEM files.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::zeroize::Zeroizing;

use crate::config::TlsFiles;

/// A certificate with its key, read and found to fit.
#[derive(Clone)]
pub struct PemPair {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Zeroizing<Vec<u8>>,
    config: Arc<ServerConfig>,
}

impl std::fmt::Debug for PemPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PemPair").finish_non_exhaustive()
    }
}

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// The file cannot be read.
    #[error("{} cannot be read: expected a PEM file", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error("{} holds no {what}: expected PEM with BEGIN {marker}", .path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// Its marker.
        marker: &'static str,
    },
    /// They do not fit each other, or are of a kind that cannot be used.
    #[error(
        "the certificate {} and the key {} cannot be used together: expected the key that the first certificate was made for",
        .certificate.display(), .key.display()
    )]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
}

impl PemPair {
    /// Reads both files and tries them, so that a mistake shows at the start and not with the first
    /// connection.
    pub fn read(files: &TlsFiles) -> Result<Self, PemError> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|source| PemError::Read {
                path: path.clone(),
                source,
            })
        };
        let certificate = read(&files.certificate)?;
        let key = Zeroizing::new(read(&files.key)?);
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&certificate)
            .collect::<Result<_, _>>()
            .ok()
            .filter(|chain: &Vec<_>| !chain.is_empty())
            .ok_or_else(|| PemError::Content {
                path: files.certificate.clone(),
                what: "certificate",
                marker: "CERTIFICATE",
            })?;
        let parsed = PrivateKeyDer::from_pem_slice(&key).map_err(|_| PemError::Content {
            path: files.key.clone(),
            what: "private key",
            marker: "PRIVATE KEY",
        })?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(chain, parsed)
            })
            .map_err(|source| PemError::Pair {
                certificate: files.certificate.clone(),
                key: files.key.clone(),
                source,
            })?;
        Ok(Self {
            certificate,
            key,
            config: Arc::new(config),
        })
    }

    /// For a listener that speaks `protocols`, best first.
    pub(crate) fn server_config(&self, protocols: &[&str]) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}
