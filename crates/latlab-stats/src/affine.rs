//! What a transfer costs by its size: a part that every transfer pays, and a part for each byte.
//!
//! `T(B) = alpha + B / beta` holds for direct transfers within a few percent over three orders of magnitude.
//! It is fitted to relative errors: by absolute ones the largest block alone would decide, and small blocks
//! could be wrong by any factor.

/// The fitted line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    /// What a transfer of no bytes would take, ns.
    pub alpha_ns: f64,
    /// What each byte adds, ns.
    pub ns_per_byte: f64,
}

/// Least squares of `fitted / measured - 1` over (bytes, ns). `None` for fewer than three sizes, and when the
/// best line has no start or no slope above zero: then the times are no such line.
pub fn affine(points: &[(f64, f64)]) -> Option<Affine> {
    let sound = |(bytes, ns): &&(f64, f64)| *bytes > 0.0 && *ns > 0.0 && bytes.is_finite() && ns.is_finite();
    let points: Vec<&(f64, f64)> = points.iter().filter(sound).collect();
    let mut sizes: Vec<f64> = points.iter().map(|point| point.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    if sizes.len() < 3 {
        return None;
    }
    // Minimise sum (a u + b v - 1)^2 with u = 1 / T and v = B / T.
    let (mut uu, mut uv, mut vv, mut u1, mut v1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (bytes, ns) in points {
        let (u, v) = (1.0 / ns, bytes / ns);
        uu += u * u;
        uv += u * v;
        vv += v * v;
        u1 += u;
        v1 += v;
    }
    let determinant = uu * vv - uv * uv;
    let line = Affine {
        alpha_ns: (u1 * vv - v1 * uv) / determinant,
        ns_per_byte: (v1 * uu - u1 * uv) / determinant,
    };
    let sound = |value: f64| value.is_finite() && value > 0.0;
    (sound(line.alpha_ns) && sound(line.ns_per_byte)).then_some(line)
}

impl Affine {
    /// Time of a transfer, ns.
    pub fn ns(&self, bytes: f64) -> f64 {
        self.alpha_ns + bytes * self.ns_per_byte
    }

    /// Bandwidth of endless transfers, bytes a second.
    pub fn beta_bytes_per_s(&self) -> f64 {
        1e9 / self.ns_per_byte
    }

    /// The block that reaches this share (0 to 1) of the bandwidth, bytes: half of it at `alpha * beta`, 90 %
    /// at nine times that.
    pub fn block_for_share(&self, share: f64) -> f64 {
        self.alpha_ns / self.ns_per_byte * share / (1.0 - share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 8] =
        [512.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];

    #[test]
    fn a_planted_line_is_found_and_its_blocks_follow() {
        let planted = Affine { alpha_ns: 55_000.0, ns_per_byte: 1.0 / 1.064 };
        let points: Vec<(f64, f64)> = SIZES.map(|bytes| (bytes, planted.ns(bytes))).to_vec();
        let found = affine(&points).expect("a line");
        assert!((found.alpha_ns / planted.alpha_ns - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.beta_bytes_per_s() / 1.064e9 - 1.0).abs() < 1e-6, "{found:?}");
        let half = found.block_for_share(0.5);
        assert!((half / (55.0e-6 * 1.064e9) - 1.0).abs() < 1e-6, "{half}");
        assert!((found.block_for_share(0.9) / half - 9.0).abs() < 1e-6);
        // At that block half of the time is the start.
        assert!((found.ns(half) / found.alpha_ns - 2.0).abs() < 1e-6);
    }

    #[test]
    fn errors_of_a_few_percent_at_any_size_stay_errors_of_a_few_percent() {
        let planted = Affine { alpha_ns: 46_000.0, ns_per_byte: 0.5 };
        let points: Vec<(f64, f64)> = SIZES
            .iter()
            .enumerate()
            .map(|(nth, bytes)| (*bytes, planted.ns(*bytes) * if nth % 2 == 0 { 1.04 } else { 0.96 }))
            .collect();
        let found = affine(&points).expect("a line");
        for (bytes, ns) in points {
            assert!((found.ns(bytes) / ns - 1.0).abs() < 0.08, "{bytes}: {found:?}");
        }
    }

    #[test]
    fn what_is_no_such_line_has_no_fit() {
        assert_eq!(affine(&[(4096.0, 50.0), (8192.0, 60.0)]), None, "two sizes fit any line");
        assert_eq!(affine(&[(4096.0, 50.0), (4096.0, 51.0), (8192.0, 60.0)]), None);
        let constant = [(4096.0, 50.0), (65_536.0, 50.0), (1_048_576.0, 50.0)];
        assert!(affine(&constant).is_none_or(|line| line.ns_per_byte < 1e-6));
        let falling = [(4096.0, 90.0), (65_536.0, 50.0), (1_048_576.0, 10.0)];
        assert_eq!(affine(&falling), None);
        assert_eq!(affine(&[(0.0, 1.0), (f64::NAN, 1.0), (1.0, -1.0)]), None);
    }
}
