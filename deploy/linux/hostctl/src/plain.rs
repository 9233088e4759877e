//! What is in maps of BPF objects, as bytes.

/// Structures of numbers only, without padding: any bytes are one, and all of its bytes are initialised.
///
/// # Safety
/// The type must be `repr(C)`, `Copy`, free of padding, and valid for every pattern of bits.
pub unsafe trait Plain: Copy {
    /// Its bytes.
    fn bytes(&self) -> &[u8] {
        // SAFETY: the trait promises that all bytes are initialised; the slice lives as long as the borrow.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
    /// The structure that these bytes are, if there are as many as it has.
    fn read(bytes: &[u8]) -> Option<Self> {
        // SAFETY: the length was compared, and the trait promises that every pattern is valid.
        (bytes.len() == size_of::<Self>()).then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}
