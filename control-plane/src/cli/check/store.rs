//! A store's file: read only, so that looking changes nothing and migrates nothing.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection as _, Row as _};

use super::Findings;
use super::files::private;
use crate::cli::output::figures::bytes;
use crate::store::known_migrations;

/// Room under which a store's disk is worth a look: the log of a busy day and a copy of the store.
const FREE_WARN: u64 = 1 << 30;
/// Room under which writes will fail soon.
const FREE_FAIL: u64 = 64 << 20;

pub(super) async fn examine(path: &Path, findings: &mut Findings) {
    room(path, findings);
    if !path.exists() {
        findings.warn(
            "store",
            format!("there is none at {}", path.display()),
            "fine before the first start, which makes it; otherwise the path is wrong",
        );
        return;
    }
    private("store's rights", path, findings);
    match look(path).await {
        Ok(seen) => told(path, &seen, findings),
        Err(error) => findings.fail(
            "store",
            format!("{} cannot be opened: {error}", path.display()),
            "is it the controller's store? restore a copy if it is damaged",
        ),
    }
}

/// What stands in a store of itself.
struct Seen {
    /// SQLite's own verdict; `ok` is good.
    sound: String,
    /// Migrations that were run.
    ran: Vec<i64>,
}

async fn look(path: &Path) -> Result<Seen, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let sound: String = sqlx::query_scalar("PRAGMA quick_check(1)")
        .fetch_one(&mut connection)
        .await?;
    let ran = sqlx::query("SELECT version FROM _sqlx_migrations WHERE success ORDER BY version")
        .fetch_all(&mut connection)
        .await?;
    let ran = ran
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, _>>()?;
    connection.close().await?;
    Ok(Seen { sound, ran })
}

fn told(path: &Path, seen: &Seen, findings: &mut Findings) {
    if seen.sound == "ok" {
        let size = std::fs::metadata(path).map_or(0, |it| it.len());
        findings.ok(
            "store",
            format!("{} is sound, {}", path.display(), bytes(size)),
        );
    } else {
        findings.fail(
            "store",
            format!("{} is damaged: {}", path.display(), seen.sound),
            "stop the controller and restore a copy",
        );
    }
    let known: Vec<i64> = known_migrations().collect();
    let newer = seen.ran.iter().filter(|it| !known.contains(it)).count();
    let missing = known.iter().filter(|it| !seen.ran.contains(it)).count();
    if newer > 0 {
        findings.fail(
            "migrations",
            format!("{newer} are of a newer version than this program"),
            "use the newer program: this one's controller refuses the store",
        );
    } else if missing > 0 {
        findings.warn(
            "migrations",
            format!("{missing} are still to be run"),
            "the next start of this version runs them: copy the store before",
        );
    } else {
        findings.ok(
            "migrations",
            format!("{} run, all that are known", known.len()),
        );
    }
}

fn room(path: &Path, findings: &mut Findings) {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let free = match rustix::fs::statvfs(folder) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => {
            findings.fail(
                "disk",
                format!("{}: {error}", folder.display()),
                "is the path right?",
            );
            return;
        }
    };
    let found = format!("{} free at {}", bytes(free), folder.display());
    let cure = "make room: without any, nothing can be changed, and a kill switch neither";
    match free {
        0..FREE_FAIL => findings.fail("disk", found, cure),
        FREE_FAIL..FREE_WARN => findings.warn("disk", found, cure),
        _ => findings.ok("disk", found),
    }
}
