//! `memory.poke`: the course notebook's experiment, done right: random single accesses to arrays of growing
//! size.

use std::hint::black_box;
use std::marker::PhantomData;

use latlab_harness::Kernel;
use latlab_probes_shared::prelude::*;
use latlab_record::Timing;
use latlab_stats::rng::Rng;

use crate::{levels, no_memory};
use latlab_probes_shared::walk::{Arena, mmix};

/// The probe.
pub struct Poke;

/// The notebook's sizes, bytes: decimal, as it has them.
const SIZES: [u64; 5] = [0, 1_000, 1_000_000, 1_000_000_000, 10_000_000_000];
/// Populating 1 GB takes longer than the whole quick share: the quick profile pokes into a quarter of it.
const QUICK_LARGEST: u64 = 250_000_000;
/// A batch looks for its next place so far behind the one that it drew, if the byte read before is not zero.
const LARGEST_BYTE: u64 = 0xff;

/// An array, what is done to its bytes, and how that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Array {
    working_set_bytes: u64,
    operation: Operation,
    timing: Timing,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    Read,
    ReadWrite,
}

impl Probe for Poke {
    type Point = Array;
    /// The session proves the pokes of all its points together.
    type Evidence = ();
    type Details = Nothing;
    type Findings = Nothing;
    type Session<'env> = Poking;

    const SPEC: Spec = Spec {
        id: "memory.poke",
        tier: Tier::Memory,
        title: "single random accesses, one by one",
        question: "How long does a single access to a random place take, and how long does the slowest of \
            100,000 take?",
        method: "Random bytes of an array are read, or read and written back, 20,000 to a block and at \
            least six blocks, each access timed alone between fenced time stamps. \
The place is drawn before the first stamp. The array is populated, so no access meets a page fault of its \
own making; faults and switches that still happen are counted. \
Every access slower than a microsecond keeps its time stamp, so that it can be explained.

An array of zero bytes is the empty poke: everything but the access. It is timer overhead and is shown \
beside the others, never subtracted from \
their quantiles: near the clock's step that would invent precision. Subtracting its mean from a mean is right.

Where one access is shorter than the timer overhead (first- and second-level caches), the same pokes are \
also timed in batches, each place depending on the byte read before it, \
so that they cannot overlap: the mean is fine there, but the tail is lost. The point names the method \
(timing: each or batch). \
For the program, a write ends when it is in the store buffer; the time to drain the buffer is not included.",
        method_version: 1,
        convention: "one byte at a random place",
        needs: &["1 MB of memory"],
        touches: &["memory: an array of up to 1 GB (10 GB in the thorough profile), at most a quarter of \
            what may be used"],
        operations: Operations::UserSpace,
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Array> {
        if let Some(reason) = no_memory(env, env.memory_bytes >= SIZES[2], "1 MB of memory") {
            return Plan::no(reason);
        }
        let mut points = Vec::new();
        for timing in [Timing::Each, Timing::Batch] {
            for operation in [Operation::Read, Operation::ReadWrite] {
                let of = |working_set_bytes| planned(env, Array { working_set_bytes, operation, timing });
                points.extend(fitting_sizes(env).into_iter().map(of));
            }
        }
        let wanted = sizes(env.settings.profile).into_iter().max().unwrap_or(0);
        let fitting = fitting_sizes(env).into_iter().max().unwrap_or(0);
        let plan = Plan::of(points).memory(fitting);
        if fitting < wanted {
            return plan.degraded(format!(
                "arrays end at {} MB: a quarter of the memory that may be used is {}",
                fitting / 1_000_000,
                binary_size(env.memory_bytes)
            ));
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Array]) -> Result<Poking> {
        let bytes = group.iter().map(|point| point.working_set_bytes).max().unwrap_or(0);
        let helpers = env.populating_cpus();
        let arena = Arena::new(bytes + LARGEST_BYTE, Pages::Base, &helpers)?;
        Ok(Poking { places: Places::new(&arena, 0, env.seed(4)), arena })
    }
}

fn planned(env: &Env, point: Array) -> Planned<Array> {
    let (size, is_large) = (point.working_set_bytes, group(point.working_set_bytes) > 0);
    Planned {
        rank: rank(point, env),
        group: group(size),
        priority: u8::from(point.timing == Timing::Batch),
        setup_s: warm(size) as f64 * if is_large { 400e-9 } else { 100e-9 },
        block_s: if is_large && point.timing == Timing::Each { 10e-3 } else { 2e-3 },
        cache_scope: levels::cache_scope(size, &env.machine),
        ..Planned::new(point)
    }
}

/// Small arrays are in each round. Reading and writing the large ones takes an arena; of 10 GB it takes most
/// of a round.
fn rank(point: Array, env: &Env) -> Rank {
    let bytes = point.working_set_bytes;
    if bytes > SIZES[3] {
        Rank::Once
    } else if bytes > SIZES[2] {
        Rank::Curve
    } else if bytes == 0 && point.timing == Timing::Batch {
        Rank::Detail
    } else if point.operation == Operation::Read || point.timing == Timing::Each && bytes == SIZES[2] {
        env.headline_but_quick(Rank::Curve)
    } else {
        Rank::Detail
    }
}

/// One session for all that is small, one for each large array.
fn group(bytes: u64) -> u16 {
    u16::from(bytes > SIZES[2]) + u16::from(bytes > SIZES[3])
}

/// As many random pokes as would fill a second-level cache.
fn warm(bytes: u64) -> u64 {
    (bytes / 64).clamp(1, 32_768)
}

fn sizes(profile: Profile) -> Vec<u64> {
    match profile {
        Profile::Quick => [&SIZES[..3], &[QUICK_LARGEST]].concat(),
        Profile::Standard => SIZES[..4].to_vec(),
        Profile::Thorough => SIZES.to_vec(),
    }
}

/// Those of the profile's sizes that fit.
fn fitting_sizes(env: &Env) -> Vec<u64> {
    sizes(env.settings.profile).into_iter().filter(|size| *size <= env.memory_bytes).collect()
}

/// The memory of all arrays, and the pokes so far.
pub struct Poking {
    places: Places,
    /// Declared last: the places point into it.
    arena: Arena,
}

/// Random places in an array.
struct Places {
    base: *mut u8,
    bytes: u64,
    state: u64,
    /// Places that were drawn.
    drawn: u64,
    /// All bytes that were read, or-ed together.
    read: u64,
    /// Zero, which the compiler cannot know.
    nothing: u64,
}

impl Places {
    fn new(arena: &Arena, bytes: u64, seed: u64) -> Self {
        Self {
            base: arena.base(),
            bytes: bytes.min(arena.bytes()),
            state: Rng::new(seed).next_u64(),
            drawn: 0,
            read: 0,
            nothing: black_box(0),
        }
    }

    /// A linear congruential step whose high bits choose the place, moved on by the byte that was read
    /// before: in a batch the next access waits for that byte, but not the drawing, which would cost more
    /// than a first-level cache. All bytes are zero, so the place is the one that was drawn.
    #[expect(clippy::inline_always, reason = "a call for each place would be timed in batches")]
    #[inline(always)]
    fn draw(&mut self, read: u64) -> *mut u8 {
        self.state = mmix(self.state);
        let place = (u128::from(self.state) * u128::from(self.bytes)) >> 64;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "below `bytes`, which is the size of a mapping, and a byte"
        )]
        self.base.wrapping_add(place as usize).wrapping_add(read as usize)
    }
}

/// What is done at a place.
trait Access {
    /// The byte that was read there. `nothing` is zero.
    ///
    /// # Safety
    /// The place must lie in memory that is ours.
    unsafe fn at(place: *mut u8, nothing: u64) -> u64;
}

/// The empty poke: everything but the access, also its waiting for the one before.
struct Empty;
struct Read;
struct ReadWrite;

impl Access for Empty {
    #[inline]
    unsafe fn at(place: *mut u8, nothing: u64) -> u64 {
        place.addr() as u64 & nothing
    }
}

impl Access for Read {
    #[inline]
    unsafe fn at(place: *mut u8, _nothing: u64) -> u64 {
        // SAFETY: the caller promises the place.
        u64::from(unsafe { place.read_volatile() })
    }
}

impl Access for ReadWrite {
    #[inline]
    unsafe fn at(place: *mut u8, _nothing: u64) -> u64 {
        // SAFETY: the caller promises the place.
        unsafe {
            let value = place.read_volatile();
            place.write_volatile(value);
            u64::from(value)
        }
    }
}

/// Pokes of one kind.
struct Pokes<'a, A>(&'a mut Places, PhantomData<A>);

impl<A> Kernel for Pokes<'_, A>
where
    A: Access,
{
    type Arg = *mut u8;

    #[inline]
    fn arg(&mut self) -> *mut u8 {
        self.0.drawn += 1;
        self.0.draw(0)
    }

    #[inline]
    fn op(&mut self, place: *mut u8) -> u64 {
        // SAFETY: a place lies inside the arena, which is ours and populated.
        let read = unsafe { A::at(place, self.0.nothing) };
        // For the proof; a register operation that does not wait in the region longer than the access itself.
        self.0.read |= read;
        read
    }
}

impl<A> Batch for Pokes<'_, A>
where
    A: Access,
{
    fn run(&mut self, ops: u64) -> u64 {
        let nothing = self.0.nothing;
        let mut read = 0;
        let mut all = 0;
        for _ in 0..ops {
            let place = self.0.draw(read);
            // SAFETY: a place lies inside the arena, and one byte's value beyond it at most: so much larger
            // is the arena.
            read = unsafe { A::at(place, nothing) };
            all |= read;
        }
        self.0.drawn += ops;
        self.0.read |= all;
        all
    }
}

impl Places {
    fn pokes<A: Access>(&mut self) -> Pokes<'_, A> {
        Pokes(self, PhantomData)
    }
}

impl Poking {
    fn times<A: Access>(&mut self, timing: Timing, block: &mut Block) {
        let mut pokes = self.places.pokes::<A>();
        match timing {
            Timing::Each => block.each(&mut pokes),
            Timing::Batch => block.batches(&mut pokes),
        }
    }
}

impl Session<Poke> for Poking {
    fn select(&mut self, point: &Array) -> Result<()> {
        self.places.bytes = point.working_set_bytes;
        // What is left in the caches is of this array.
        if point.working_set_bytes > 0 {
            self.places.pokes::<Read>().run(warm(point.working_set_bytes));
        }
        Ok(())
    }

    fn block(&mut self, point: &Array, (): &mut (), block: &mut Block) -> Result<()> {
        match (point.working_set_bytes, point.operation) {
            (0, _) => self.times::<Empty>(point.timing, block),
            (_, Operation::Read) => self.times::<Read>(point.timing, block),
            (_, Operation::ReadWrite) => self.times::<ReadWrite>(point.timing, block),
        }
        Ok(())
    }

    fn proof(&mut self, _point: &Array, (): &()) -> Proof<Nothing> {
        let clean = Check {
            name: "bytes read are the bytes written".to_owned(),
            ok: self.places.read == 0 && self.places.drawn > 0,
            detail: format!(
                "every byte of the array is 0; {} bytes read, or-ed together: {}",
                self.places.drawn, self.places.read
            ),
        };
        Proof::of(vec![clean, self.arena.pages_check()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(bytes: u64) -> (Arena, Places) {
        let arena = Arena::new(bytes, Pages::Base, &[]).expect("a small arena");
        let places = Places::new(&arena, bytes, 9);
        (arena, places)
    }

    fn is_proved(places: Places, arena: Arena) -> bool {
        let point = Array { working_set_bytes: 64, operation: Operation::Read, timing: Timing::Each };
        Poking { places, arena }.proof(&point, &()).checks[0].ok
    }

    #[test]
    fn places_lie_in_the_array_and_reach_all_of_it() {
        let (arena, mut places) = places(1_000);
        let mut seen = vec![false; 1_000];
        for _ in 0..20_000 {
            let place = places.draw(0).addr() - arena.base().addr();
            seen[place] = true;
        }
        assert!(seen.iter().all(|seen| *seen));
    }

    #[test]
    fn a_read_write_poke_leaves_the_byte_as_it_was() {
        let (arena, mut places) = places(64);
        // SAFETY: the first byte of the arena.
        unsafe { arena.base().write(7) };
        places.pokes::<ReadWrite>().run(1_000);
        // SAFETY: as above.
        assert_eq!(unsafe { arena.base().read() }, 7);
    }

    #[test]
    fn the_next_place_of_a_batch_depends_on_the_byte_read_before() {
        let (arena, mut places) = places(1_000);
        let state = places.state;
        let drawn = places.draw(0);
        places.state = state;
        assert_eq!(places.draw(5).addr(), drawn.addr() + 5);
        // SAFETY: an empty poke touches nothing.
        assert_eq!(unsafe { Empty::at(arena.base(), places.nothing) }, 0);
    }

    #[test]
    fn a_byte_that_should_be_zero_and_is_not_fails_the_proof_of_single_and_batched_pokes() {
        for batch in [false, true] {
            let (arena, mut places) = places(64);
            // SAFETY: inside the arena.
            unsafe { arena.base().add(40).write(1) };
            if batch {
                places.pokes::<Read>().run(10_000);
            } else {
                let mut pokes = places.pokes::<Read>();
                for _ in 0..10_000 {
                    let place = pokes.arg();
                    pokes.op(place);
                }
            }
            assert!(!is_proved(places, arena), "batch: {batch}");
        }
    }

    #[test]
    fn pokes_that_were_not_made_are_no_proof() {
        let (arena, places) = places(64);
        assert!(!is_proved(places, arena));
    }
}
