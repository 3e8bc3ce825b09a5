//! Where a call may go: a list the host may change at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use hedgerow_protocol::ids::{NameError, ReplicaName, ZoneName};
use hedgerow_protocol::limits::REPLICAS_PER_ROUTE_MAX;

/// The replicas of a route, shared with it: [`replace`](Self::replace) changes the list for calls
/// to come. Cheap to clone; clones are the same list.
///
/// ```
/// use hedgerow_agent::Replicas;
///
/// let replicas = Replicas::new([("10.0.0.1:80", Some("eu-1")), ("10.0.0.2:80", None)])?;
/// // Discovery found another one.
/// replicas.replace([("10.0.0.1:80", Some("eu-1")), ("10.0.0.3:80", None)])?;
/// assert_eq!(replicas.len(), 2);
/// # Ok::<(), hedgerow_agent::ReplicasError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Replicas {
    list: Arc<List>,
}

#[derive(Debug)]
struct List {
    members: ArcSwap<Vec<Member>>,
    version: AtomicU64,
}

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: ReplicaName,
    pub(crate) zone: Option<ZoneName>,
}

/// Why a list of replicas was refused. The list held before stays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplicasError {
    /// A replica's name.
    #[error("replica {name:?} {error}")]
    Name {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        error: NameError,
    },
    /// A zone's name.
    #[error("zone {zone:?} of replica {name:?} {error}")]
    Zone {
        /// The replica.
        name: String,
        /// The zone as given.
        zone: String,
        /// What is wrong with it.
        error: NameError,
    },
    /// The same replica twice.
    #[error("replica {0} is there twice; expected each once")]
    Duplicate(ReplicaName),
    /// More than are kept for a route.
    #[error("more than {REPLICAS_PER_ROUTE_MAX} replicas; give each service a subset of them")]
    TooMany,
    /// None at all: more likely a discovery that failed than a dependency that is gone.
    #[error("no replicas; expected at least one")]
    Empty,
}

impl Replicas {
    /// Names, and zones where known. From 1 to 256 replicas; names and zones are 1 to 128 ASCII letters,
    /// digits and `. _ - / : @`.
    ///
    /// # Errors
    /// [`ReplicasError`]: none, too many, one twice, or a name that is none.
    pub fn new<'a>(
        members: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    ) -> Result<Self, ReplicasError> {
        let members = check(members)?;
        let list = List {
            members: ArcSwap::from_pointee(members),
            version: AtomicU64::new(1),
        };
        Ok(Self {
            list: Arc::new(list),
        })
    }

    /// Puts another list in this one's place. What is known of a replica that stays, stays; calls
    /// under way are not touched.
    ///
    /// # Errors
    /// As [`new`](Self::new), and then the list is as it was: a discovery that found nothing does not
    /// take a service's replicas away.
    pub fn replace<'a>(
        &self,
        members: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    ) -> Result<(), ReplicasError> {
        let members = check(members)?;
        self.list.members.store(Arc::new(members));
        self.list.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.members.load().len()
    }

    /// Always false: an empty list is refused.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is the same list, not one that only looks alike today.
    #[cfg(feature = "tonic")]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.list, &other.list)
    }

    /// Grows with each change.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.list.version.load(Ordering::Acquire)
    }

    pub(crate) fn members(&self) -> Arc<Vec<Member>> {
        self.list.members.load_full()
    }
}

fn check<'a>(
    members: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<Vec<Member>, ReplicasError> {
    let mut checked: Vec<Member> = Vec::new();
    for (name, zone) in members {
        if checked.len() == REPLICAS_PER_ROUTE_MAX {
            return Err(ReplicasError::TooMany);
        }
        let zone = zone
            .map(|zone| {
                ZoneName::new(zone).map_err(|error| ReplicasError::Zone {
                    name: name.to_owned(),
                    zone: zone.to_owned(),
                    error,
                })
            })
            .transpose()?;
        let name = ReplicaName::new(name).map_err(|error| ReplicasError::Name {
            name: name.to_owned(),
            error,
        })?;
        if checked.iter().any(|member| member.name == name) {
            return Err(ReplicasError::Duplicate(name));
        }
        checked.push(Member { name, zone });
    }
    if checked.is_empty() {
        Err(ReplicasError::Empty)
    } else {
        Ok(checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_list_is_refused_and_the_one_before_stays() {
        let replicas = Replicas::new([("a:1", None), ("b:1", Some("eu-1"))]).unwrap();
        for (bad, message) in [
            (vec![], "no replicas; expected at least one"),
            (
                vec![("a:1", None), ("a:1", None)],
                "replica a:1 is there twice; expected each once",
            ),
            (vec![("", None)], "replica \"\" must not be blank"),
            (
                vec![("a:1", Some(""))],
                "zone \"\" of replica \"a:1\" must not be blank",
            ),
        ] {
            assert_eq!(replicas.replace(bad).unwrap_err().to_string(), message);
        }
        assert_eq!(replicas.len(), 2);
    }

    #[test]
    fn clones_are_the_same_list() {
        let replicas = Replicas::new([("a:1", None)]).unwrap();
        let before = replicas.version();
        replicas
            .clone()
            .replace([("a:1", None), ("b:1", None)])
            .unwrap();
        assert_eq!(replicas.len(), 2);
        assert!(replicas.version() > before);
    }
}
