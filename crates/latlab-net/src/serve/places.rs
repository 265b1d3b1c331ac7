//! Places of connections: how many there are, whose they are, and how long each may be kept.
//!
//! ```text
//! accepted ─► waiting ──first request that is admitted──► admitted ─► ended: idle, or without progress
//!                └─► ended: out of time, or to make room for another one
//! ```
//! A connection that waits has proved nothing, so it costs others nothing: its time counts from when it was
//! accepted, whatever it sends, and it never takes the place of an admitted one. All times are those of
//! tokio's clock, which tests move.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::io::{InspectReader, InspectWriter};

/// From being accepted to the end of the first request's head, TLS included: a few round trips, and nobody's
/// path takes seconds for each.
pub(super) const ADMISSION: Duration = Duration::from_secs(10);
/// An admitted connection without a request for so long is ended. Longer than any pause of a measurement
/// between two uses of a kept one.
pub(super) const SILENCE: Duration = Duration::from_mins(2);
/// How often an admitted connection is checked: longer than TCP's own pauses after a few losses in a row (1 +
/// 2 + 4 + 8 s).
pub(super) const CHECK_EVERY: Duration = Duration::from_secs(30);
/// A request under way moves so many bytes between two checks, either way, or its connection is ended: 4
/// kbit/s, less than any path.
pub(super) const LEAST_BYTES: u64 = 16 << 10;
/// Admitted connections: beyond what the probes open by far.
const MOST_ADMITTED: usize = 4096;
/// Connections that wait. When there are more, the oldest of the address with most of them is ended.
pub(super) const MOST_WAITING: usize = 2048;
/// Connections of one address, waiting or admitted: as many as may wait, so that one machine can open all
/// connections of a sweep at one moment.
pub(super) const MOST_OF_ADDRESS: usize = 2048;

/// All connections of a server.
#[derive(Debug, Default)]
pub(super) struct Places {
    table: Mutex<Table>,
    /// Wakes who waits for a descriptor.
    gone: Notify,
}

#[derive(Debug, Default)]
struct Table {
    addresses: HashMap<IpAddr, Address>,
    waiting: usize,
    admitted: usize,
    /// The next connection's number.
    next: u64,
}

/// The connections of one address.
#[derive(Debug, Default)]
struct Address {
    /// By number, so the oldest is the first. Sending ends the connection.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
    admitted: usize,
}

impl Places {
    /// A place for a new connection from this address, where need be that of another one that waits; `None`
    /// when the address has as many admitted ones as it may have.
    pub(super) fn enter(self: &Arc<Self>, from: IpAddr) -> Option<(Arc<Place>, Notice)> {
        let address = counted_as(from);
        let mut table = self.table();
        if let Some(own) = table.addresses.get(&address)
            && own.waiting.len() + own.admitted >= MOST_OF_ADDRESS
            && !table.end_oldest_of(address)
        {
            return None;
        }
        if table.waiting >= MOST_WAITING {
            table.make_room();
        }
        let number = table.next;
        table.next += 1;
        let (end, notice) = oneshot::channel();
        let own = table.addresses.entry(address).or_default();
        own.waiting.insert(number, end);
        table.waiting += 1;
        let place = Place {
            places: Arc::clone(self),
            address,
            number,
            admitted: AtomicBool::new(false),
            moved_bytes: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            finished: AtomicU64::new(0),
        };
        Some((Arc::new(place), Notice(notice)))
    }

    /// Ends the connection that has waited longest, of the address that has most of them, and returns when a
    /// connection is gone; false when none waits. On several threads the ended one goes some time after it
    /// was ended: who does not wait ends all the others meanwhile.
    pub(super) async fn make_room(&self) -> bool {
        let mut gone = pin!(self.gone.notified());
        gone.as_mut().enable();
        let ended = self.table().make_room();
        if ended {
            gone.await;
        }
        ended
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Looks at every address. There are no more of them than connections, and this is asked only when all
    /// places are taken.
    fn make_room(&mut self) -> bool {
        let most = self
            .addresses
            .iter()
            .filter_map(|(address, own)| {
                let (oldest, _) = own.waiting.first_key_value()?;
                Some((own.waiting.len(), std::cmp::Reverse(*oldest), *address))
            })
            .max();
        most.is_some_and(|(_, _, address)| self.end_oldest_of(address))
    }

    fn end_oldest_of(&mut self, address: IpAddr) -> bool {
        let Some((_, end)) = self.addresses.get_mut(&address).and_then(|own| own.waiting.pop_first()) else {
            return false;
        };
        self.waiting -= 1;
        // It may be ending by itself.
        let _ = end.send(());
        self.forget(address);
        true
    }

    /// Removes an address without connections.
    fn forget(&mut self, address: IpAddr) {
        if let Some(own) = self.addresses.get(&address)
            && own.waiting.is_empty()
            && own.admitted == 0
        {
            self.addresses.remove(&address);
        }
    }
}

/// What connections are counted by: an IPv4 address, or the /64 of an IPv6 address, all of which belongs to
/// one subscriber.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Tells a connection that waits to end, or, by being dropped, that it is admitted.
#[derive(Debug)]
pub(super) struct Notice(oneshot::Receiver<()>);

/// One connection's place, given up when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    address: IpAddr,
    number: u64,
    admitted: AtomicBool,
    /// Bytes read and written, without those of TLS itself.
    moved_bytes: AtomicU64,
    /// Requests that were admitted.
    begun: AtomicU64,
    /// Of these, those whose answer was handed to the connection whole, or that were given up.
    finished: AtomicU64,
}

/// What a connection had done at a check.
#[derive(Debug, Clone, Copy)]
struct Done {
    moved_bytes: u64,
    begun: u64,
    finished: u64,
}

impl Place {
    /// What the connection's address is counted as.
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    /// Begins a request that may be answered: the first one admits the connection. `None` when there is no
    /// place for it among the admitted.
    pub(super) fn begin(self: &Arc<Self>) -> Option<UnderWay> {
        if !self.admitted.load(Ordering::Acquire) && !self.admit() {
            return None;
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        Some(UnderWay(Arc::clone(self)))
    }

    fn admit(&self) -> bool {
        let mut table = self.places.table();
        if self.admitted.load(Ordering::Acquire) {
            return true;
        }
        if table.admitted >= MOST_ADMITTED {
            return false;
        }
        let Some(own) = table.addresses.get_mut(&self.address) else { return false };
        // None when it was told to end.
        if own.waiting.remove(&self.number).is_none() {
            return false;
        }
        own.admitted += 1;
        table.waiting -= 1;
        table.admitted += 1;
        self.admitted.store(true, Ordering::Release);
        true
    }

    /// Returns when the connection has to end.
    pub(super) async fn overdue(&self, notice: Notice) {
        if let Ok(Err(_)) = timeout(ADMISSION, notice.0).await {
            self.without_progress().await;
        }
    }

    async fn without_progress(&self) {
        let mut silent = Duration::ZERO;
        let mut before = self.done();
        loop {
            sleep(CHECK_EVERY).await;
            let now = self.done();
            let waited_for = before.begun > before.finished && now.finished == before.finished;
            if waited_for && now.moved_bytes - before.moved_bytes < LEAST_BYTES {
                return;
            }
            let asked = now.begun > before.begun || now.begun > now.finished;
            silent = if asked { Duration::ZERO } else { silent + CHECK_EVERY };
            if silent >= SILENCE {
                return;
            }
            before = now;
        }
    }

    fn done(&self) -> Done {
        // The finished ones first: of those there are never more than have begun.
        let finished = self.finished.load(Ordering::Acquire);
        Done {
            moved_bytes: self.moved_bytes.load(Ordering::Relaxed),
            begun: self.begun.load(Ordering::Relaxed),
            finished,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.places.table();
        if let Some(own) = table.addresses.get_mut(&self.address) {
            if *self.admitted.get_mut() {
                own.admitted -= 1;
                table.admitted -= 1;
            } else if own.waiting.remove(&self.number).is_some() {
                table.waiting -= 1;
            }
            table.forget(self.address);
        }
        drop(table);
        self.places.gone.notify_waiters();
    }
}

/// A request under way, until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Place>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.finished.fetch_add(1, Ordering::Release);
    }
}

/// A stream whose bytes are counted as its connection's progress.
pub(super) fn counted<S: AsyncRead + AsyncWrite>(
    stream: S,
    place: &Arc<Place>,
) -> impl AsyncRead + AsyncWrite + use<S> {
    let count = || {
        let place = Arc::clone(place);
        move |bytes: &[u8]| {
            place.moved_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
    };
    InspectReader::new(InspectWriter::new(stream, count()), count())
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll};

    use super::*;

    fn address(last: u32) -> IpAddr {
        IpAddr::V4((0x0A00_0000 + last).into())
    }

    type Entered = (Arc<Place>, Notice);

    fn enter(places: &Arc<Places>, from: IpAddr) -> Entered {
        places.enter(from).expect("there is a place")
    }

    fn was_told_to_end(entered: &mut Entered) -> bool {
        entered.1.0.try_recv().is_ok()
    }

    #[test]
    fn when_all_places_are_taken_the_address_with_most_loses_its_oldest() {
        let places = Arc::default();
        let mut few: Vec<_> = (0..10).map(|_| enter(&places, address(1))).collect();
        let mut many: Vec<_> = (10..MOST_WAITING).map(|_| enter(&places, address(2))).collect();
        assert!(!many.iter_mut().chain(&mut few).any(was_told_to_end));
        let mut new: Vec<_> = (3..8).map(|last| enter(&places, address(last))).collect();
        let reported: Vec<bool> = many.iter_mut().map(was_told_to_end).collect();
        assert_eq!(reported.iter().filter(|reported| **reported).count(), 5);
        assert!(reported[..5].iter().all(|reported| *reported), "the oldest");
        assert!(!few.iter_mut().chain(&mut new).any(was_told_to_end));
        assert_eq!(places.table().waiting, MOST_WAITING);
    }

    #[test]
    fn one_address_has_its_share_and_takes_nobody_elses() {
        let places = Arc::default();
        let mut other = enter(&places, address(1));
        let mut own: Vec<_> = (0..MOST_OF_ADDRESS + 3).map(|_| enter(&places, address(2))).collect();
        let reported: Vec<bool> = own.iter_mut().map(was_told_to_end).collect();
        assert!(reported[..4].iter().all(|reported| *reported) && !reported[4..].contains(&true));
        assert!(!was_told_to_end(&mut other));
    }

    #[test]
    fn an_address_that_is_admitted_as_often_as_it_may_be_is_refused_alone() {
        let places = Arc::default();
        let own: Vec<_> = (0..MOST_OF_ADDRESS).map(|_| enter(&places, address(1))).collect();
        let requests: Vec<_> = own.iter().map(|own| own.0.begin().expect("admitted")).collect();
        assert!(places.enter(address(1)).is_none());
        let other = enter(&places, address(2));
        assert!(other.0.begin().is_some());
        drop((requests, own));
        enter(&places, address(1));
    }

    #[test]
    fn the_admitted_are_never_ended_for_another_and_have_a_limit_of_their_own() {
        let places = Arc::default();
        let mut admitted: Vec<_> = (0..MOST_ADMITTED)
            .map(|number| enter(&places, address(u32::try_from(number).expect("small"))))
            .inspect(|own| drop(own.0.begin().expect("admitted")))
            .collect();
        let mut waiting: Vec<_> = (0..MOST_WAITING + 7).map(|_| enter(&places, address(77_777))).collect();
        assert!(!admitted.iter_mut().any(was_told_to_end));
        assert!(waiting.last().expect("some").0.begin().is_none(), "all are taken");
        admitted.pop();
        assert!(waiting.last().expect("some").0.begin().is_some(), "one is free again");
        assert!(waiting[0].0.begin().is_none(), "whoever was told to end is not admitted");
        waiting.clear();
        admitted.clear();
        let table = places.table();
        assert_eq!((table.waiting, table.admitted, table.addresses.len()), (0, 0, 0));
    }

    #[test]
    fn room_is_made_when_a_connection_is_gone_and_one_is_ended_for_it() {
        let places = Arc::default();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut none = pin!(Places::make_room(&places));
        assert_eq!(none.as_mut().poll(&mut context), Poll::Ready(false), "none waits");
        let mut first = enter(&places, address(1));
        let second = enter(&places, address(1));
        let mut room = pin!(places.make_room());
        assert_eq!(room.as_mut().poll(&mut context), Poll::Pending);
        assert!(was_told_to_end(&mut first));
        assert_eq!(room.as_mut().poll(&mut context), Poll::Pending, "it is still there");
        drop(first);
        assert_eq!(room.as_mut().poll(&mut context), Poll::Ready(true));
        assert!(second.0.begin().is_some(), "no other one was ended");
    }

    #[test]
    fn all_addresses_of_a_subscriber_count_as_one() {
        let of = |text: &str| counted_as(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"), "as a socket of both families tells it");
    }
}
