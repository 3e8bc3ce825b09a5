//! Log lines to standard error, spans by OTLP.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::config::{LogFormat, Telemetry};

/// The name traces are filed under.
const SERVICE: &str = "hedgerow-controller";

/// How long the last traces may take: the receiver may be gone, and nobody waits for a controller
/// that leaves (P20).
const LAST_TRACES_WITHIN: Duration = Duration::from_secs(1);

/// Logging or tracing could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter does not parse.
    #[error("log.filter: expected directives such as info or hedgerow=debug,warn")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The exporter cannot be made.
    #[error("telemetry.otlp_endpoint: expected an address such as http://127.0.0.1:4317")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// There is one already.
    #[error("logging was set up twice")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Keeps traces flowing; [`TelemetryGuard::shut_down`] sends the last ones.
#[derive(Debug)]
pub struct TelemetryGuard {
    provider: Option<SdkTracerProvider>,
}

/// Sets logging and tracing up for the process. Inside a runtime, since the exporter needs one.
pub fn init(settings: &Telemetry) -> Result<TelemetryGuard, TelemetryError> {
    let lines = match settings.log_format {
        LogFormat::Text => tracing_subscriber::fmt::layer()
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .with_writer(std::io::stderr)
            .boxed(),
        LogFormat::Json => tracing_subscriber::fmt::layer()
            .json()
            .flatten_event(true)
            .with_writer(std::io::stderr)
            .boxed(),
    };
    let provider = settings
        .otlp_endpoint
        .as_deref()
        .map(provider)
        .transpose()?;
    let spans = provider
        .as_ref()
        .map(|provider| tracing_opentelemetry::layer().with_tracer(provider.tracer(SERVICE)));
    // The exporter's own requests must not be traced: each would cause the next.
    let quiet = "h2=off,hyper=off,tonic=off,opentelemetry=warn,opentelemetry_sdk=warn,opentelemetry_otlp=warn";
    let filter = EnvFilter::try_new(format!("{quiet},{}", settings.log_filter))?;
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .with(spans)
        .try_init()?;
    Ok(TelemetryGuard { provider })
}

fn provider(endpoint: &str) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()?;
    let resource = Resource::builder()
        .with_service_name(SERVICE)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .build())
}

impl TelemetryGuard {
    /// Sends what is left. Blocks for as long as the receiver takes, a second at most.
    pub fn shut_down(self) {
        if let Some(provider) = self.provider
            && let Err(error) = provider.shutdown_with_timeout(LAST_TRACES_WITHIN)
        {
            tracing::warn!(error = %error, "the last traces could not be sent");
        }
    }
}
