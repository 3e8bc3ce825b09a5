//! Flags before environment before file before default, then every check.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hedgerow_protocol::policy::{Policy, PolicyDraft};
use tracing_subscriber::EnvFilter;

use super::file::{self, File, TlsTable};
use super::{
    AgentLimits, ConfigError, GRPC_DEFAULT, HTTP_DEFAULT, Listen, Receiver, STORE_DEFAULT,
    ServeArgs, Settings, Telemetry, TlsFiles, tokens,
};
use crate::store::AgentToken;

impl Settings {
    /// Reads the file that the flags name, if any, and puts everything together.
    pub fn resolve(args: ServeArgs) -> Result<Self, ConfigError> {
        let mut file = args
            .config
            .as_deref()
            .map(file::read)
            .transpose()?
            .unwrap_or_default();
        let folder = args
            .config
            .as_deref()
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let (http, grpc) = listeners(&args, &mut file, folder)?;
        let mut agent_tokens = check_tokens(file.agent_token, folder)?;
        if let Some(path) = &args.agent_token_file {
            agent_tokens.extend(tokens::from_file(path)?);
        }
        let in_file = |path: PathBuf| file::beside(folder, &path);
        let public_url = check_url(args.public_url.or(file.public_url))?;
        let oidc = file
            .oidc
            .map(|table| {
                table.check(
                    folder,
                    public_url.is_some() || http.address.ip().is_loopback(),
                )
            })
            .transpose()?;
        Ok(Self {
            name: check_name(args.name.or(file.name))?,
            http,
            grpc,
            public_url,
            store: args
                .store
                .or(file.store.map(in_file))
                .unwrap_or_else(|| STORE_DEFAULT.into()),
            agent_tokens,
            policies: check_policies(file.policy)?,
            oidc,
            receivers: check_receivers(file.receiver, folder)?,
            agents: check_agents(&file.agents)?,
            telemetry: Telemetry {
                log_format: args.log_format.or(file.log.format).unwrap_or_default(),
                log_filter: check_filter(args.log.or(file.log.filter))?,
                otlp_endpoint: args
                    .otlp_endpoint
                    .or(file.telemetry.otlp_endpoint)
                    .filter(|endpoint| !endpoint.is_empty()),
                metrics_public: args
                    .metrics_public
                    .or(file.telemetry.metrics_public)
                    .unwrap_or(false),
            },
        })
    }
}

/// Both listeners, each with TLS or on loopback, or plaintext by express wish.
fn listeners(
    args: &ServeArgs,
    file: &mut File,
    folder: &Path,
) -> Result<(Listen, Listen), ConfigError> {
    let plaintext = args
        .allow_plaintext_beyond_loopback
        .or(file.allow_plaintext_beyond_loopback)
        .unwrap_or(false);
    let flags = (&args.http_tls_certificate, &args.http_tls_key);
    let http = listen(
        "http",
        args.http
            .or(file.http)
            .unwrap_or_else(|| loopback(HTTP_DEFAULT)),
        tls("http", flags, file.http_tls.take(), folder)?,
        plaintext,
    )?;
    let flags = (&args.grpc_tls_certificate, &args.grpc_tls_key);
    let grpc = listen(
        "grpc",
        args.grpc
            .or(file.grpc)
            .unwrap_or_else(|| loopback(GRPC_DEFAULT)),
        tls("grpc", flags, file.grpc_tls.take(), folder)?,
        plaintext,
    )?;
    Ok((http, grpc))
}

fn loopback(text: &str) -> SocketAddr {
    text.parse().expect("the default addresses are addresses")
}

/// Flags replace the file's table as a whole: a certificate with another's key helps nobody.
fn tls(
    listener: &str,
    flags: (&Option<PathBuf>, &Option<PathBuf>),
    table: Option<TlsTable>,
    folder: &Path,
) -> Result<Option<TlsFiles>, ConfigError> {
    match flags {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        })),
        (None, None) => Ok(table.map(|table| TlsFiles {
            certificate: file::beside(folder, &table.certificate),
            key: file::beside(folder, &table.key),
        })),
        _ => Err(ConfigError::value(
            format!("--{listener}-tls-certificate, --{listener}-tls-key"),
            "one without the other: expected both, or neither",
        )),
    }
}

fn listen(
    listener: &'static str,
    address: SocketAddr,
    tls: Option<TlsFiles>,
    plaintext: bool,
) -> Result<Listen, ConfigError> {
    if tls.is_none() && !plaintext && !address.ip().is_loopback() {
        return Err(ConfigError::Plaintext { listener, address });
    }
    Ok(Listen { address, tls })
}

fn check_name(name: Option<String>) -> Result<String, ConfigError> {
    let Some(name) = name else {
        return Ok("hedgerow".into());
    };
    hedgerow_protocol::ids::ServiceName::new(&name)
        .map(String::from)
        .map_err(|e| ConfigError::value("name", e))
}

fn check_url(url: Option<String>) -> Result<Option<reqwest::Url>, ConfigError> {
    let expected = "expected an address such as https://hedgerow.example.com/";
    url.map(|url| {
        let parsed = reqwest::Url::parse(&url)
            .map_err(|e| ConfigError::value("public_url", format!("{e}; {expected}")))?;
        if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() {
            Ok(parsed)
        } else {
            Err(ConfigError::value(
                "public_url",
                format!("{url:?}: {expected}"),
            ))
        }
    })
    .transpose()
}

fn check_filter(filter: Option<String>) -> Result<String, ConfigError> {
    let filter = filter.unwrap_or_else(|| "info".into());
    EnvFilter::try_new(&filter).map_err(|e| {
        ConfigError::value(
            "log.filter",
            format!("{e}; expected such as info or hedgerow=debug"),
        )
    })?;
    Ok(filter)
}

fn check_agents(table: &file::AgentsTable) -> Result<AgentLimits, ConfigError> {
    let defaults = AgentLimits::default();
    let positive = |key: &str, value: Option<u32>, default: u32| match value {
        Some(0) => Err(ConfigError::value(
            key,
            "0 would admit nobody: expected 1 or more",
        )),
        value => Ok(value.unwrap_or(default)),
    };
    Ok(AgentLimits {
        streams_max: positive(
            "agents.streams_max",
            table.streams_max,
            defaults.streams_max,
        )?,
        admitted_per_s: positive(
            "agents.admitted_per_s",
            table.admitted_per_s,
            defaults.admitted_per_s,
        )?,
        silence_max: defaults.silence_max,
    })
}

fn check_tokens(
    entries: Vec<tokens::AgentTokenEntry>,
    folder: &Path,
) -> Result<Vec<AgentToken>, ConfigError> {
    entries
        .into_iter()
        .enumerate()
        .map(|(i, entry)| entry.check(i + 1, folder))
        .collect()
}

fn check_policies(drafts: Vec<PolicyDraft>) -> Result<Vec<Policy>, ConfigError> {
    let mut seen = BTreeSet::new();
    drafts
        .into_iter()
        .enumerate()
        .map(|(i, draft)| {
            let (entry, dependency) = (i + 1, draft.dependency.clone());
            let policy = Policy::try_from(draft).map_err(|errors| ConfigError::Policy {
                entry,
                dependency,
                errors,
            })?;
            if seen.insert(policy.scope().clone()) {
                Ok(policy)
            } else {
                Err(ConfigError::value(
                    format!(
                        "[[policy]] number {entry} ({:?})",
                        policy.scope().to_string()
                    ),
                    "is there twice: expected one for each dependency, operation or pattern",
                ))
            }
        })
        .collect()
}

fn check_receivers(
    entries: Vec<super::receiver::ReceiverEntry>,
    folder: &Path,
) -> Result<Vec<Receiver>, ConfigError> {
    let mut seen = BTreeSet::new();
    entries
        .into_iter()
        .enumerate()
        .map(|(i, entry)| {
            let receiver = entry.check(i + 1, folder)?;
            if seen.insert(receiver.name.clone()) {
                Ok(receiver)
            } else {
                Err(ConfigError::value(
                    format!("[[receiver]] number {} name", i + 1),
                    format!(
                        "{:?} is there twice: expected each name once",
                        receiver.name
                    ),
                ))
            }
        })
        .collect()
}
