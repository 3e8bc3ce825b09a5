//! The committed code beside `examples/shop/catalog.proto` is what that file says.

use std::path::{Path, PathBuf};
use std::{env, fs};

const PROTO: &str = "catalog.proto";
const FILE: &str = "shop.v1.rs";

#[test]
fn the_committed_code_is_what_the_proto_file_generates() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("shop");
    fs::create_dir_all(&out).unwrap();
    let shop = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/shop");
    let descriptors = protox::compile([PROTO], [&shop]).unwrap();
    tonic_prost_build::configure()
        // The channel is Hedgerow's.
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .out_dir(&out)
        .compile_fds(descriptors)
        .unwrap();
    let generated = fs::read_to_string(out.join(FILE)).unwrap();
    let committed = shop.join(FILE);
    if env::var_os("BLESS").is_some() {
        fs::write(&committed, &generated).unwrap();
    }
    assert!(
        fs::read_to_string(&committed).is_ok_and(|committed| committed == generated),
        "{} is not what {PROTO} generates; to write it anew: \
         BLESS=1 cargo test -p hedgerow-agent --all-features --test it generated",
        committed.display(),
    );
}
