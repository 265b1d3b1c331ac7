//! What is known of a visit to a point only when it has ended.

/// Of each point of a session. A visit ends when another point is selected, or with the proof of its own.
pub(crate) struct Visits<P, V>(Vec<(P, V)>);

impl<P, V> Default for Visits<P, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P: PartialEq, V> Visits<P, V> {
    /// A visit to this point has ended with this.
    pub(crate) fn add(&mut self, point: P, visit: V) {
        self.0.push((point, visit));
    }

    /// Those to a point.
    pub(crate) fn of(&self, point: &P) -> impl Iterator<Item = &V> {
        self.0.iter().filter(move |(own, _)| own == point).map(|(_, visit)| visit)
    }
}
