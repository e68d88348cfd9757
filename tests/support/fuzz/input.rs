//! Any bytes, as numbers.

/// The rest of an input; an exhausted one gives zeros.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl Input<'_> {
    pub(crate) fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Below a bound, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let number = (0..4).fold(0_usize, |number, _| number << 8 | usize::from(self.byte()));
        number % bound
    }

    pub(crate) fn small(&mut self, bound: u8) -> u64 {
        u64::from(self.byte() % bound)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    pub(crate) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).to_vec()
    }
}
