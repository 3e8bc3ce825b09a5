//! The committed code in `src/generated/` is what the .proto file says: so a service that links the
//! agent needs neither a build script nor a proto compiler.

use std::path::{Path, PathBuf};
use std::{env, fs};

const PROTO: &str = "hedgerow/v1/fleet.proto";
const FILE: &str = "hedgerow.v1.rs";

fn generate(out: &Path) {
    let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let descriptors = protox::compile([PROTO], [protos]).unwrap();
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        // Both sides make their own channel and server, with TLS, limits and timeouts.
        .build_transport(false)
        // Bounds what a message may unfold to, which protobuf's own codec does not.
        .codec_path("crate::wire::codec::BoundedCodec")
        .emit_rerun_if_changed(false)
        .out_dir(out)
        .compile_fds(descriptors)
        .unwrap();
}

#[test]
fn the_committed_code_is_what_the_proto_file_generates() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("generated");
    fs::create_dir_all(&out).unwrap();
    generate(&out);
    let generated = fs::read_to_string(out.join(FILE)).unwrap();
    let committed = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/generated")
        .join(FILE);
    if env::var_os("BLESS").is_some() {
        fs::write(&committed, &generated).unwrap();
    }
    // assert! and not assert_eq!: a thousand lines twice say less than what to do.
    assert!(
        fs::read_to_string(&committed).is_ok_and(|committed| committed == generated),
        "{} is not what {PROTO} generates; to write it anew: \
         BLESS=1 cargo test -p hedgerow-protocol --test it generated",
        committed.display(),
    );
}
