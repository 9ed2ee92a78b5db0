//! Compiles libfreestone, packed beside this file or in the tree this file is part of, into a static library.

use std::env;
use std::path::{Path, PathBuf};

/// What stands before libc's functions or looks for the C++ runtime: of the shared library, and of programs in C++.
const LEFT_OUT: &[&str] = &[
    "api_cfree.c",
    "api_cxx.c",
    "api_cxx_nothrow.c",
    "api_dlopen.c",
    "api_identity.c",
    "api_signals.c",
    "api_tasks.c",
    "cxx_operators.c",
    "cxx_operators_linked.c",
    "cxx_operators_loaded.c",
    "cxx_runtime_linked.c",
    "cxx_runtime_loaded.c",
    "libc_loaded.c",
    "object.c",
    "trace_loaded.c",
];

/// What the feature `override` adds: libc's functions by their own names.
const OF_OVERRIDE: &[&str] = &["api_confine.c", "api_glibc.c", "libc_linked.c"];

fn native() -> PathBuf {
    let here =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate is"));
    let places = [here.join("native"), here.join("../../allocator")];
    let found = places
        .iter()
        .find(|place| place.join("src/allocate.c").is_file());
    found
        .expect("the sources of libfreestone are packed with the crate")
        .clone()
}

fn sources(folder: &Path, overrides: bool) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = folder
        .read_dir()
        .expect("a folder of sources")
        .map(|entry| entry.expect("an entry of it").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .filter(|path| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("a name in ASCII");
            !LEFT_OUT.contains(&name) && (overrides || !OF_OVERRIDE.contains(&name))
        })
        .collect();
    found.sort();
    found
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=names.h");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux")
        || env::var("CARGO_CFG_TARGET_POINTER_WIDTH").as_deref() != Ok("64")
    {
        return; // src/lib.rs says so, in one line
    }
    let overrides = env::var_os("CARGO_FEATURE_OVERRIDE").is_some();
    let native = native();
    println!("cargo:rerun-if-changed={}", native.join("src").display());
    println!(
        "cargo:rerun-if-changed={}",
        native.join("include").display()
    );
    let version = format!(
        "\"{}\"",
        env::var("CARGO_PKG_VERSION").expect("cargo says which version this is")
    );
    let mut build = cc::Build::new();
    build
        .files(sources(&native.join("src"), overrides))
        .include(native.join("include"))
        .define("_GNU_SOURCE", None)
        .define("NDEBUG", None)
        .define("FREESTONE_BUILD_VERSION", version.as_str())
        .flag("-std=gnu17")
        .flag("-include")
        .flag("names.h")
        .include(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate is"))
        .flag("-fvisibility=hidden")
        .flag("-ftls-model=initial-exec")
        .flag("-fno-stack-protector")
        // Or calloc is recognised in "malloc, then memset", and becomes a call of itself.
        .flag("-fno-builtin-malloc")
        .flag("-fno-builtin-calloc")
        .flag("-fno-builtin-realloc")
        .flag("-fno-builtin-free")
        .flag("-fno-builtin-aligned_alloc")
        .flag("-fno-builtin-posix_memalign")
        .flag("-fno-builtin-memalign")
        .flag("-fno-builtin-valloc")
        .pic(true)
        .opt_level(2) // also where the program is not optimised: it is not what is debugged
        .cargo_metadata(false);
    if overrides {
        build.define("FREESTONE_OVERRIDE", None);
    }
    build.compile("freestone");
    println!(
        "cargo:rustc-link-search=native={}",
        env::var("OUT_DIR").expect("cargo says where output goes")
    );
    // Whole: who calls mallopt, or is libc and calls malloc, is seen by no linker that takes only what the program names.
    let whole = if overrides { ":+whole-archive" } else { "" };
    println!("cargo:rustc-link-lib=static{whole}=freestone");
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        println!("cargo:rustc-link-lib=pthread"); // a library of its own before glibc 2.34
    }
}
