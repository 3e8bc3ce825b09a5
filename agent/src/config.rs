//! The agent's settings, and the one place that reads them from the environment.

use std::io;
use std::path::PathBuf;

use hedgerow_protocol::ids::{NameError, ServiceName, ZoneName};
use hedgerow_protocol::session::Text;
use secrecy::SecretString;
use tokio::io::AsyncReadExt;

use crate::agent::Agent;
use crate::error::ConfigError;
use crate::link::LinkSettings;
use crate::standalone;

/// Environment variables read by [`AgentBuilder::from_env`].
pub mod env {
    /// The controller's address.
    pub const CONTROLLER: &str = "HEDGEROW_CONTROLLER";
    /// The token itself.
    pub const TOKEN: &str = "HEDGEROW_TOKEN";
    /// A file with the token.
    pub const TOKEN_FILE: &str = "HEDGEROW_TOKEN_FILE";
    /// A file with the certificates, in PEM, that controllers are believed by.
    pub const CA_CERTIFICATE_FILE: &str = "HEDGEROW_CA_CERTIFICATE_FILE";
    /// The failure domain this process runs in.
    pub const ZONE: &str = "HEDGEROW_ZONE";
    /// A file with policies, for an agent without a controller.
    pub const POLICY_FILE: &str = "HEDGEROW_POLICY_FILE";
}

/// Settings of an agent: see [`Agent::builder`]. Nothing is checked before
/// [`connect`](Self::connect), so that settings can be given in any order.
#[derive(Debug, Clone, Default)]
#[must_use = "settings do nothing until `connect`"]
#[non_exhaustive]
pub struct AgentBuilder {
    service: Option<String>,
    zone: Option<String>,
    build: String,
    controller: Option<String>,
    token: Option<SecretString>,
    token_file: Option<PathBuf>,
    ca_certificate_file: Option<PathBuf>,
    allow_plaintext: bool,
    registry: Option<prometheus::Registry>,
    #[cfg(feature = "opentelemetry")]
    meter: Option<opentelemetry::metrics::Meter>,
    policy_file: Option<PathBuf>,
}

/// Checked settings.
pub(crate) struct Settings {
    pub(crate) service: Option<ServiceName>,
    pub(crate) zone: Option<ZoneName>,
    pub(crate) build: Text,
    pub(crate) controller: Option<String>,
    pub(crate) link: Option<LinkSettings>,
    pub(crate) registry: Option<prometheus::Registry>,
    #[cfg(feature = "opentelemetry")]
    pub(crate) meter: Option<opentelemetry::metrics::Meter>,
    pub(crate) policy_file: Option<standalone::Opened>,
}

impl AgentBuilder {
    /// The service's name, for its own logs: 1 to 128 ASCII letters, digits and `. _ - / : @`. Who it
    /// is to the controller is decided by the token.
    pub fn service(mut self, name: impl Into<String>) -> Self {
        self.service = Some(name.into());
        self
    }

    /// The failure domain this process runs in, shown beside the agent; a name as the service's.
    /// (Hedges look at the zones of replicas only.)
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = Some(zone.into());
        self
    }

    /// The service's own build, shown beside the agent: which deploy misbehaves. Any text; 512 bytes
    /// of printable ASCII are kept of it.
    pub fn build_label(mut self, build: impl Into<String>) -> Self {
        self.build = build.into();
        self
    }

    /// The controller's address: `https://host:port`, or `http://` to this machine. Without one the
    /// agent observes, and hedges only where [`RouteBuilder::hedge_standalone`] or a
    /// [`policy_file`](Self::policy_file) says so.
    ///
    /// [`RouteBuilder::hedge_standalone`]: crate::RouteBuilder::hedge_standalone
    pub fn controller(mut self, address: impl Into<String>) -> Self {
        self.controller = Some(address.into());
        self
    }

    /// The token that says which service this is: printable ASCII without spaces. Takes the place of
    /// a [`token_file`](Self::token_file) set before. Needed where there is a controller.
    pub fn token(mut self, token: SecretString) -> Self {
        self.token = Some(token);
        self.token_file = None;
        self
    }

    /// A file with the token, read once, by [`connect`](Self::connect); white space around it is not
    /// part of it. Takes the place of a [`token`](Self::token) set before.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token_file = Some(path.into());
        self.token = None;
        self
    }

    /// A file with the certificates, in PEM, of the authorities whose controllers are believed.
    /// Needed for `https`.
    pub fn ca_certificate_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_certificate_file = Some(path.into());
        self
    }

    /// Lets the token cross a network in the clear, to an `http` controller that is not on this
    /// machine.
    pub fn allow_plaintext(mut self, allow: bool) -> Self {
        self.allow_plaintext = allow;
        self
    }

    /// A file with the policies to hedge by, for an agent without a controller: TOML, a `[[policy]]`
    /// for each dependency, with the fields of [`PolicyDraft`](crate::PolicyDraft). Beside its word
    /// [`RouteBuilder::hedge_standalone`] does not count; a dependency it does not name is hedged as
    /// the code says, or observed.
    ///
    /// ```toml
    /// [[policy]]
    /// dependency = "catalog"
    /// intent = "hedge"         # off, observe or hedge
    /// percentile = 0.95        # 0.92 to 0.999: a call slower than this may be hedged
    /// budget = 0.08            # above 0, at most 0.25: hedges as a share of calls
    /// threshold_max_ms = 250.0 # never wait longer
    /// ```
    ///
    /// [`connect`](Self::connect) refuses a file that cannot be read or is not good. From then on it
    /// is looked at every two seconds, and taken again, whole, when its content is another one and
    /// half a second later still the same. A change loses nothing that was learned. A file that is
    /// not good, or gone, is logged and counted (`hedgerow_policy_file_refused_total`), and the last
    /// good one holds.
    ///
    /// [`RouteBuilder::hedge_standalone`]: crate::RouteBuilder::hedge_standalone
    pub fn policy_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.policy_file = Some(path.into());
        self
    }

    /// The host's registry, for the agent's metrics, which are taken out of it when the agent ends.
    /// Agents that work at the same time need one each.
    pub fn registry(mut self, registry: prometheus::Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// The host's OpenTelemetry meter, for the same metrics under the same names, beside the registry
    /// or in its place. Each carries the attribute `hedgerow.agent.instance`, so that agents of one
    /// process can share a meter. They are observed whenever the host collects, until the agent ends.
    ///
    /// OpenTelemetry has no histogram that can be observed, so `hedgerow_call_seconds` becomes two
    /// counters: `hedgerow_call_seconds_bucket_total` with the attribute `le` (seconds; cumulative;
    /// bounds an octave apart from 128 us to 67 s, and `+Inf` for all), and
    /// `hedgerow_call_seconds_sum_total`. PromQL's `histogram_quantile` reads the former as it is.
    /// It has 42 sets of attributes a route: from 48 routes on, all agents of the meter together, raise
    /// the instrument's cardinality limit, 2,000 by default, with a view.
    ///
    /// ```
    /// use opentelemetry::metrics::MeterProvider;
    /// use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let exporter = InMemoryMetricExporter::default(); // yours sends them somewhere
    /// let provider = SdkMeterProvider::builder()
    ///     .with_reader(PeriodicReader::builder(exporter.clone()).build())
    ///     .build();
    ///
    /// let agent = hedgerow_agent::Agent::builder()
    ///     .service("checkout")
    ///     .meter(provider.meter("hedgerow"))
    ///     .connect()
    ///     .await?;
    /// let _route = agent.route("catalog", "get").build()?;
    ///
    /// provider.force_flush()?;
    /// let seen = exporter.get_finished_metrics()?;
    /// let mut names = seen[0].scope_metrics().flat_map(|scope| scope.metrics());
    /// assert!(names.any(|metric| metric.name() == "hedgerow_calls_total"));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "opentelemetry")]
    pub fn meter(mut self, meter: opentelemetry::metrics::Meter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Takes what the environment says (see [`mod@env`]) for everything that was not set before. Blank
    /// variables count as absent.
    pub fn from_env(self) -> Self {
        self.filled_from(|name| std::env::var(name).ok())
    }

    fn filled_from(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name| variable(name).filter(|value| !value.trim().is_empty());
        self.controller = self.controller.or_else(|| variable(env::CONTROLLER));
        self.zone = self.zone.or_else(|| variable(env::ZONE));
        self.ca_certificate_file = self
            .ca_certificate_file
            .or_else(|| variable(env::CA_CERTIFICATE_FILE).map(PathBuf::from));
        self.policy_file = self
            .policy_file
            .or_else(|| variable(env::POLICY_FILE).map(PathBuf::from));
        if self.token.is_none() && self.token_file.is_none() {
            self.token = variable(env::TOKEN).map(SecretString::from);
            if self.token.is_none() {
                self.token_file = variable(env::TOKEN_FILE).map(PathBuf::from);
            }
        }
        self
    }

    /// Checks the settings and starts the agent. A controller that is away is no error: nothing
    /// here waits for it.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting and what was expected: a name that is no name, a controller
    /// without a token, a file that cannot be read, an address, token or certificate that makes no
    /// link, a registry that has an agent's metrics already. [`ConfigError::NoRuntime`] outside of a
    /// tokio runtime.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use hedgerow_agent::Agent;
    ///
    /// let refused = Agent::builder().service("check out").connect().await.unwrap_err();
    /// assert!(refused.to_string().starts_with("service: \"check out\" has the character ' '"));
    /// # }
    /// ```
    pub async fn connect(self) -> Result<Agent, ConfigError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(ConfigError::NoRuntime);
        }
        Agent::start(self.check().await?)
    }

    async fn check(self) -> Result<Settings, ConfigError> {
        let service = self
            .service
            .map(|text| name("service", text, ServiceName::new))
            .transpose()?;
        let zone = self
            .zone
            .map(|text| name("zone", text, ZoneName::new))
            .transpose()?;
        if self.controller.is_some() && self.policy_file.is_some() {
            return Err(ConfigError::Conflict {
                field: "policy_file",
                conflict: "the agent has a controller, whose policies it follows: set them there, \
                           or leave the controller out",
            });
        }
        let policy_file = match self.policy_file {
            None => None,
            Some(path) => Some(standalone::open(path).await?),
        };
        let link = match &self.controller {
            None => None,
            Some(endpoint) => {
                let token = match (self.token, &self.token_file) {
                    (Some(token), _) => token,
                    (None, Some(path)) => {
                        let text = read("token_file", path).await?;
                        SecretString::from(String::from_utf8_lossy(&text).trim().to_owned())
                    }
                    (None, None) => {
                        return Err(ConfigError::Missing {
                            field: "token",
                            expected: "a controller needs one: set the token, a token file, \
                                       HEDGEROW_TOKEN or HEDGEROW_TOKEN_FILE",
                        });
                    }
                };
                let ca_pem = match &self.ca_certificate_file {
                    Some(path) => Some(read("ca_certificate_file", path).await?),
                    None => None,
                };
                Some(LinkSettings {
                    endpoint: endpoint.clone(),
                    token,
                    ca_pem,
                    allow_plaintext: self.allow_plaintext,
                })
            }
        };
        Ok(Settings {
            service,
            zone,
            build: Text::lossy(self.build),
            controller: self.controller,
            link,
            registry: self.registry,
            #[cfg(feature = "opentelemetry")]
            meter: self.meter,
            policy_file,
        })
    }
}

fn name<T>(
    field: &'static str,
    value: String,
    check: impl Fn(&str) -> Result<T, NameError>,
) -> Result<T, ConfigError> {
    check(&value).map_err(|error| ConfigError::Name {
        field,
        value,
        error,
    })
}

async fn read(field: &'static str, path: &PathBuf) -> Result<Vec<u8>, ConfigError> {
    let refused = |source| ConfigError::File {
        field,
        path: path.clone(),
        source,
    };
    let mut bytes = Vec::new();
    let file = tokio::fs::File::open(path).await.map_err(refused)?;
    // Not to the end, whatever it is: some devices have none.
    let mut file = file.take(FILE_BYTES_MAX + 1);
    file.read_to_end(&mut bytes).await.map_err(refused)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let expected = "larger than a megabyte; expected a token or certificates";
        return Err(refused(io::Error::new(
            io::ErrorKind::InvalidInput,
            expected,
        )));
    }
    Ok(bytes)
}

/// Most bytes of a file with a token or certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    async fn refused(builder: AgentBuilder) -> String {
        builder.check().await.err().unwrap().to_string()
    }

    #[tokio::test]
    async fn what_cannot_stand_is_named_with_what_was_expected() {
        assert_eq!(
            refused(Agent::builder().service(" ")).await,
            "service: \" \" must not be blank"
        );
        let no_token = refused(Agent::builder().controller("http://127.0.0.1:1")).await;
        assert!(no_token.starts_with("token: missing;"), "{no_token}");
        let no_file = Agent::builder()
            .controller("http://127.0.0.1:1")
            .token_file("/nowhere/t");
        assert_eq!(refused(no_file).await, "token_file: cannot read /nowhere/t");
    }

    #[tokio::test]
    async fn the_environment_fills_in_what_was_not_set() {
        let variables = |name: &str| match name {
            env::CONTROLLER => Some("http://127.0.0.1:7420".to_owned()),
            env::TOKEN => Some("from-environment".to_owned()),
            env::ZONE => Some("eu-2".to_owned()),
            _ => None,
        };
        let settings = Agent::builder().zone("eu-1").filled_from(variables);
        let settings = settings.check().await.unwrap();
        assert_eq!(settings.zone.unwrap().as_str(), "eu-1");
        let link = settings.link.unwrap();
        assert_eq!(link.endpoint, "http://127.0.0.1:7420");
        assert_eq!(link.token.expose_secret(), "from-environment");
    }

    #[tokio::test]
    async fn the_environment_names_the_policy_file_too() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "policy = []").unwrap();
        let path = file.path().to_str().unwrap();
        let variables = |name: &str| (name == env::POLICY_FILE).then(|| path.to_owned());
        let settings = Agent::builder().filled_from(variables).check().await;
        assert!(settings.unwrap().policy_file.is_some());
        let given = Agent::builder()
            .policy_file("/nowhere")
            .filled_from(variables);
        assert_eq!(refused(given).await, "policy_file: cannot read /nowhere");
    }

    #[test]
    fn no_runtime_is_an_error_and_no_panic() {
        let built = futures::executor::block_on(Agent::builder().connect());
        assert!(matches!(built, Err(ConfigError::NoRuntime)));
    }

    #[test]
    fn s09_settings_print_no_token() {
        let builder = Agent::builder().token(SecretString::from("canary-7f3a"));
        assert!(!format!("{builder:?}").contains("canary"));
    }
}
