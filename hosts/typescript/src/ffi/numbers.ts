/** Checks of numbers before a call: conversion in C would turn 2^32 into 0, and 1.5 into 1. */
import { ArgumentError } from "../errors.js";
import { describeValue } from "../tree/payload.js";

const RANGES = {
  i32: [-(2 ** 31), 2 ** 31 - 1],
  /** Range of an `int32_t` used as a count. */
  count: [0, 2 ** 31 - 1],
  u32: [0, 2 ** 32 - 1],
  /** `size_t` and `uint64_t`, as far as numbers hold them. */
  size: [0, Number.MAX_SAFE_INTEGER],
} as const;

export type IntegerType = keyof typeof RANGES;

/** @throws ArgumentError for anything that is not an integer that the type holds. */
export function integerOf(value: unknown, name: string, type: IntegerType): number {
  const [least, most] = RANGES[type];
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
  throw new ArgumentError(`${name} is ${describeValue(value)}: an integer from ${least} to ${most} is needed`);
}

/** @throws ArgumentError for anything that is not a number that a `float` holds; the library checks its meaning. */
export function floatOf(value: unknown, name: string): number {
  if (typeof value === "number" && Number.isFinite(Math.fround(value))) return value;
  throw new ArgumentError(`${name} is ${describeValue(value)}: a finite number is needed`);
}
