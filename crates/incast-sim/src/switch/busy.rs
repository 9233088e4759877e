//! The ports with something queued, while departures are lazy.

/// A set of ports. Inserting takes no branch: whether a packet is the first of its port is unpredictable.
#[derive(Debug)]
pub(super) struct BusyPorts {
    words: Vec<u64>,
}

impl BusyPorts {
    /// The empty set, for so many ports.
    pub fn none_of(ports: usize) -> Self {
        Self { words: vec![0; ports.div_ceil(64)] }
    }

    #[inline]
    pub fn insert(&mut self, port: usize) {
        self.words[port / 64] |= 1 << (port % 64);
    }

    #[inline]
    pub fn remove(&mut self, port: usize) {
        self.words[port / 64] &= !(1 << (port % 64));
    }

    /// The first port of the set from `port` on.
    #[inline]
    pub fn first_from(&self, port: usize) -> Option<usize> {
        let mut index = port / 64;
        let mut word = self.words.get(index)? & u64::MAX << (port % 64);
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some(index * 64 + word.trailing_zeros() as usize)
    }

    /// All ports of the set, ascending.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        std::iter::successors(self.first_from(0), |port| self.first_from(port + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_set() {
        let mut busy = BusyPorts::none_of(130);
        [129, 3, 64, 3, 63, 127].into_iter().for_each(|port| busy.insert(port));
        assert_eq!(busy.iter().collect::<Vec<_>>(), [3, 63, 64, 127, 129]);
        [63, 129, 5].into_iter().for_each(|port| busy.remove(port));
        assert_eq!(busy.iter().collect::<Vec<_>>(), [3, 64, 127]);
        assert_eq!((busy.first_from(4), busy.first_from(128), busy.first_from(200)), (Some(64), None, None));
        assert_eq!(BusyPorts::none_of(0).first_from(0), None);
    }
}
