//! A new migration is otherwise left out of an incremental build, since no Rust file changed.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
