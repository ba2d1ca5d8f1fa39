//! The number of a phone, an IMEI: 15 digits, of which the last one checks the others (Luhn).
//!
//!     rustup target add wasm32-unknown-unknown
//!     rustc -O -C panic=abort -C strip=symbols --crate-type cdylib --target wasm32-unknown-unknown imei.rs

const DIGITS: i64 = 15;

#[unsafe(no_mangle)]
pub extern "C" fn start() -> i64 {
    0
}

/// A state is how many digits there are, and what they sum up to modulo 10.
#[unsafe(no_mangle)]
pub extern "C" fn step(state: i64, byte: i32) -> i64 {
    let (count, sum) = (state / 10, state % 10);
    let digit = i64::from(byte) - 48;
    if count == DIGITS || !(0..10).contains(&digit) {
        return -1;
    }
    // Every other digit counts twice, by the sum of its digits.
    let worth = if count % 2 == 0 { digit } else { digit * 2 % 10 + digit / 5 };
    let (count, sum) = (count + 1, (sum + worth) % 10);
    if count == DIGITS && sum != 0 { -1 } else { count * 10 + sum }
}

#[unsafe(no_mangle)]
pub extern "C" fn is_end(state: i64) -> i32 {
    i32::from(state / 10 == DIGITS)
}
