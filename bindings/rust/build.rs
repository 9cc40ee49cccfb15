// SPDX-License-Identifier: Apache-2.0
//! Asks pkg-config where the library is. PKG_CONFIG names another program.
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let program = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    let output = Command::new(&program).args(["--libs", "compute"]).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    if !output.status.success() {
        panic!("{program} --libs compute: {}", String::from_utf8_lossy(&output.stderr));
    }
    for flag in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        if let Some(folder) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
}
