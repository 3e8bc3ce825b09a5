//! Everything that is logged on this thread, at the finest level.
//!
//! One subscriber for the whole process, asked each time: a subscriber of one thread alone misses
//! what another thread logged first and found nobody interested in.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

thread_local! {
    static CAPTURING: RefCell<Option<Log>> = const { RefCell::new(None) };
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

/// Captures until dropped.
#[derive(Debug)]
pub(crate) struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        CAPTURING.with_borrow_mut(|log| *log = None);
    }
}

impl Log {
    /// Until the guard is dropped. Tests run on one thread each, with all their tasks.
    pub(crate) fn capture(&self) -> Guard {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let layer = tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .with_writer(ThisThread)
                .with_filter(dynamic_filter_fn(|_, _| {
                    CAPTURING.with_borrow(Option::is_some)
                }));
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
                .unwrap();
        });
        CAPTURING.with_borrow_mut(|log| *log = Some(self.clone()));
        Guard
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

struct ThisThread;

impl MakeWriter<'_> for ThisThread {
    type Writer = Log;
    fn make_writer(&self) -> Log {
        CAPTURING.with_borrow(Clone::clone).unwrap_or_default()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
