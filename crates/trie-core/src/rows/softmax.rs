//! Log-probabilities under the whole vocabulary, which exact scoring adds up.

/// Entries that are summed in single precision before the sum goes into a double: the error stays below 1e-6.
const CHUNK: usize = 1024;
const LANES: usize = 16;

/// `ln Σ exp(row)`; NaN counts as −inf, an empty row gives −inf. `O(V)`, one pass for the maximum and one for the sum.
///
/// Accurate to 1e-6: a logit minus this is the log of the token's probability.
pub fn log_sum_exp(row: &[f32]) -> f64 {
    let best = maximum(row);
    if best.is_infinite() {
        return f64::from(best);
    }
    let sum: f64 = row.chunks(CHUNK).map(|chunk| f64::from(sum_of_exp(chunk, best))).sum();
    f64::from(best) + sum.ln()
}

/// The log of the probability of a token with this logit, given the row's [`log_sum_exp`]. Never NaN, at most 0.
pub fn log_probability(logit: f32, log_sum: f64) -> f64 {
    if logit.is_nan() || logit == f32::NEG_INFINITY {
        f64::NEG_INFINITY
    } else if log_sum == f64::INFINITY {
        if logit == f32::INFINITY { 0.0 } else { f64::NEG_INFINITY }
    } else {
        (f64::from(logit) - log_sum).min(0.0)
    }
}

/// `ln(exp(a) + exp(b))` without overflow.
pub fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

fn maximum(row: &[f32]) -> f32 {
    let greater = |high: f32, value: f32| if value > high { value } else { high };
    let mut high = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            high[lane] = greater(high[lane], chunk[lane]);
        }
    }
    rest.iter().copied().chain(high).fold(f32::NEG_INFINITY, greater)
}

fn sum_of_exp(row: &[f32], best: f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += exp(chunk[lane] - best);
        }
    }
    sums.into_iter().sum::<f32>() + rest.iter().map(|&logit| exp(logit - best)).sum::<f32>()
}

/// `exp` of a number that is not positive, to two units in the last place; below −87, and for NaN, about 0.
/// Branch-free, so that
/// compilers do several at once, which they cannot with the library's.
#[inline]
fn exp(x: f32) -> f32 {
    // Adding 1.5 · 2^23 leaves the rounded number in the low bits of the significand.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = if x > -87.0 { x } else { -87.0 };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let p = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0))))));
    f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(row: &[f32]) -> f64 {
        let real = || row.iter().filter(|logit| !logit.is_nan()).map(|&logit| f64::from(logit));
        let best = real().fold(f64::NEG_INFINITY, f64::max);
        best + real().map(|logit| (logit - best).exp()).sum::<f64>().ln()
    }

    #[test]
    fn exp_is_exact_enough() {
        for step in 0..870_000 {
            let x = -(step as f32) / 10_000.0;
            let (got, want) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got / want - 1.0).abs() < 3e-7, "exp({x}) is {got}, not {want}");
        }
        assert!(exp(-1e9) < 1e-37 && exp(f32::NAN) < 1e-37 && exp(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn odd_rows() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[nan, -inf]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[0.0, inf]), f64::INFINITY);
        assert_eq!(log_sum_exp(&[3.0, nan]), 3.0);
        assert_eq!(log_probability(nan, 1.0), f64::NEG_INFINITY);
        assert_eq!(log_probability(inf, f64::INFINITY), 0.0);
        assert_eq!(log_probability(1.0, f64::INFINITY), f64::NEG_INFINITY);
        assert_eq!(log_add(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert!((log_add(0.25_f64.ln(), 0.5_f64.ln()) - 0.75_f64.ln()).abs() < 1e-12);
    }

    proptest::proptest! {
        #[test]
        fn equals_the_sum_in_double_precision(row in proptest::collection::vec(-80.0f32..80.0, 1..5000)) {
            proptest::prop_assert!((log_sum_exp(&row) - naive(&row)).abs() < 1e-6);
        }
    }
}
