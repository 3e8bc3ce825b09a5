//! Style, script and font, inside the binary, under names that change with their content: a browser
//! may keep them for ever.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use include_dir::{Dir, include_dir};

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/assets");

/// Files that pages load, in an order in which each is named only by later ones.
const SERVED: [(&str, &str, &str); 9] = [
    ("vendor/ibm-plex-sans.woff2", "ibm-plex-sans", "woff2"),
    ("icon.svg", "icon", "svg"),
    ("vendor/htmx-4.0.1-sse.js", "htmx", "js"),
    ("vendor/uplot-1.6.32.js", "uplot", "js"),
    ("vendor/uplot-1.6.32.css", "uplot", "css"),
    ("early.js", "early", "js"),
    ("zoom.js", "zoom", "js"),
    ("app.js", "app", "js"),
    ("app.css", "app", "css"),
];

struct Asset {
    content_type: &'static str,
    bytes: Vec<u8>,
}

struct Assets {
    by_name: BTreeMap<String, Asset>,
    /// File to the name it is served under.
    addresses: BTreeMap<&'static str, String>,
}

static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
    let mut by_name = BTreeMap::new();
    let mut addresses: BTreeMap<&'static str, String> = BTreeMap::new();
    for (file, stem, extension) in SERVED {
        let mut bytes = FILES
            .get_file(file)
            .expect("the test below finds every file of SERVED")
            .contents()
            .to_vec();
        if extension == "css" {
            let mut text = String::from_utf8(bytes).expect("the style sheet is UTF-8");
            for (named, address) in &addresses {
                text = text.replace(&format!("url({named})"), &format!("url({address})"));
            }
            bytes = text.into_bytes();
        }
        let name = format!("{stem}.{:016x}.{extension}", fnv1a(&bytes));
        let content_type = match extension {
            "css" => "text/css; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => "font/woff2",
        };
        addresses.insert(file, format!("/assets/{name}"));
        by_name.insert(
            name,
            Asset {
                content_type,
                bytes,
            },
        );
    }
    Assets { by_name, addresses }
});

/// The hash in a name tells versions apart; it guards against nothing, so a short one will do.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A number for `text` that makes an element's id: names have characters that a selector cannot.
pub(crate) fn short_id(text: &str) -> String {
    format!("{:012x}", fnv1a(text.as_bytes()) & 0xffff_ffff_ffff)
}

/// Where a file is served.
pub(crate) fn address(file: &str) -> &'static str {
    ASSETS
        .addresses
        .get(file)
        .map_or("/assets/missing", String::as_str)
}

/// GET /assets/{name}
pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    match ASSETS.by_name.get(&name) {
        Some(asset) => (
            [
                (
                    header::CONTENT_TYPE,
                    HeaderValue::from_static(asset.content_type),
                ),
                (
                    header::CACHE_CONTROL,
                    HeaderValue::from_static("public, max-age=31536000, immutable"),
                ),
            ],
            asset.bytes.as_slice(),
        )
            .into_response(),
        None => (StatusCode::NOT_FOUND, "no such asset; reload the page").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule that is not closed takes what follows into itself, and nobody is told.
    #[test]
    fn each_part_of_the_style_sheet_stands_by_itself() {
        let style = FILES.get_file("app.css").unwrap().contents_utf8().unwrap();
        let (mut open, mut quoted) = (0, false);
        for (number, line) in style.lines().enumerate() {
            assert!(
                open == 0 || !line.starts_with("/* ---- "),
                "line {}: a rule above is still open",
                number + 1
            );
            for letter in line.chars() {
                match letter {
                    '"' => quoted = !quoted,
                    '{' if !quoted => open += 1,
                    '}' if !quoted => open -= 1,
                    _ => {}
                }
            }
            assert!(open >= 0, "line {}: nothing is open", number + 1);
        }
        assert_eq!(open, 0);
    }

    #[test]
    fn every_served_file_is_there_and_the_style_sheet_names_hashed_files() {
        for (file, _, _) in SERVED {
            assert!(address(file).starts_with("/assets/"), "{file}");
            assert_ne!(address(file), "/assets/missing", "{file}");
        }
        let css = ASSETS
            .by_name
            .iter()
            .find(|(name, _)| name.starts_with("app.") && name.contains(".css"))
            .map(|(_, asset)| String::from_utf8(asset.bytes.clone()).unwrap())
            .unwrap();
        assert!(css.contains(address("vendor/ibm-plex-sans.woff2")));
        assert!(
            !css.contains("url(vendor"),
            "a file is named that SERVED does not list before it"
        );
    }
}
