//! A pseudo-random order of `0..n` that can be computed at any place, so that a walk in this order is one
//! cycle by construction, needs no memory of its own to build, and can be warmed by independent loads in the
//! same order.
//!
//! Sattolo's shuffle gives a random single cycle too, but each of its steps waits for a random access: 16
//! million lines (1 GiB) take seconds. Here the order is a bijection `place(t)`, an invertible mixer on the
//! next power of two with cycle walking (Black and Rogaway 2002) for other sizes, and node `place(t)` points
//! to node `place(t + 1)`.

/// An order of `0..len`, all of them in one cycle.
#[derive(Clone, Copy, Debug)]
pub struct Cycle {
    len: u64,
    window: u64,
    seed: u64,
}

impl Cycle {
    /// Random over everything.
    pub fn random(len: u64, seed: u64) -> Self {
        Self { len, window: len.max(1), seed }
    }

    /// Random inside windows of `window` neighbours, window after window in random order. The last window may
    /// be shorter and comes last.
    pub fn windowed(len: u64, window: u64, seed: u64) -> Self {
        Self { len, window: window.clamp(1, len.max(1)), seed }
    }

    /// How many places it visits.
    pub fn places(&self) -> u64 {
        self.len
    }

    /// The place that is visited at step `step` (below `len`).
    pub fn place(&self, step: u64) -> u64 {
        if self.window == self.len {
            return permute(step, self.len, self.seed);
        }
        let whole = self.len / self.window;
        let (nth, inside) = (step / self.window, step % self.window);
        if nth >= whole {
            let rest = self.len - whole * self.window;
            return whole * self.window + permute(inside, rest, self.seed);
        }
        let window = permute(nth, whole, self.seed ^ 0x5DEE_CE66);
        // Each window has an order of its own: the same order again and again could be learnt.
        window * self.window + permute(inside, self.window, self.seed.wrapping_add(window))
    }
}

/// A bijection of `0..len`.
#[inline]
fn permute(mut value: u64, len: u64, seed: u64) -> u64 {
    if len <= 2 {
        return value;
    }
    let bits = 64 - (len - 1).leading_zeros();
    let mask = u64::MAX >> (64 - bits);
    loop {
        value = mix(value, bits, mask, seed);
        if value < len {
            return value;
        }
    }
}

/// Multiplications by odd numbers and xors with a shift of itself: each step can be undone modulo a power of
/// two. The constants are the finaliser's of splitmix64 and Murmur3.
#[inline]
fn mix(value: u64, bits: u32, mask: u64, seed: u64) -> u64 {
    let half = bits.div_ceil(2);
    let mut x = (value ^ seed) & mask;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9) & mask;
    x ^= x >> half;
    x = x.wrapping_add(seed >> 32).wrapping_mul(0x94D0_49BB_1331_11EB) & mask;
    x ^= x >> half;
    x = x.wrapping_mul(0xFF51_AFD7_ED55_8CCD) & mask;
    x ^ (x >> half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn visits_everything_once(cycle: &Cycle) -> bool {
        let len = usize::try_from(cycle.places()).expect("small");
        let mut seen = vec![false; len];
        (0..cycle.places()).all(|step| {
            let place = usize::try_from(cycle.place(step)).expect("small");
            place < len && !std::mem::replace(&mut seen[place], true)
        })
    }

    proptest! {
        #[test]
        fn a_random_cycle_visits_every_place_once(len in 1u64..5_000, seed: u64) {
            prop_assert!(visits_everything_once(&Cycle::random(len, seed)));
        }

        #[test]
        fn a_windowed_cycle_visits_every_place_once(len in 1u64..5_000, window in 1u64..600, seed: u64) {
            prop_assert!(visits_everything_once(&Cycle::windowed(len, window, seed)));
        }

        #[test]
        fn a_windowed_cycle_stays_in_its_window(windows in 2u64..20, seed: u64) {
            let cycle = Cycle::windowed(windows * 64, 64, seed);
            for nth in 0..windows {
                let first = cycle.place(nth * 64) / 64;
                prop_assert!((0..64).all(|inside| cycle.place(nth * 64 + inside) / 64 == first));
            }
        }
    }

    #[test]
    fn steps_look_random_to_a_prefetcher() {
        // A stride prefetcher needs the same distance twice in a row; neighbours are one line apart.
        let cycle = Cycle::random(1 << 16, 3);
        let places: Vec<i64> = (0..1 << 16).map(|step| cycle.place(step).cast_signed()).collect();
        let distances: Vec<i64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let repeated = distances.windows(2).filter(|pair| pair[0] == pair[1]).count();
        let near = distances.iter().filter(|distance| distance.abs() <= 2).count();
        assert!(repeated < 50, "{repeated} repeated distances");
        assert!(near < 50, "{near} steps to a neighbour");
        let mut sorted = distances.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert!(sorted.len() > 30_000, "only {} distinct distances", sorted.len());
    }

    #[test]
    fn another_seed_is_another_order() {
        let (a, b) = (Cycle::random(1_000, 1), Cycle::random(1_000, 2));
        let same = (0..1_000).filter(|step| a.place(*step) == b.place(*step)).count();
        assert!(same < 20, "{same}");
    }
}
