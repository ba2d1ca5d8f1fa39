// The same as imei.rs, in AssemblyScript:
//
//     npx asc imei.ts -o imei.wasm -O --runtime stub --noExportMemory

const DIGITS: i64 = 15;

export function start(): i64 {
  return 0;
}

// A state is how many digits there are, and what they sum up to modulo 10.
export function step(state: i64, byte: i32): i64 {
  const count = state / 10;
  const digit = <i64>byte - 48;
  if (count == DIGITS || digit < 0 || digit > 9) return -1;
  // Every other digit counts twice, by the sum of its digits.
  const worth = count % 2 == 0 ? digit : ((digit * 2) % 10) + digit / 5;
  const sum = ((state % 10) + worth) % 10;
  return count + 1 == DIGITS && sum != 0 ? -1 : (count + 1) * 10 + sum;
}

export function is_end(state: i64): i32 {
  return i32(state / 10 == DIGITS);
}
