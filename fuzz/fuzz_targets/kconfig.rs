#![no_main]

#[path = "../kconfig.rs"]
mod kconfig;

libfuzzer_sys::fuzz_target!(|data: &[u8]| kconfig::kconfig(data));
