//! Vectors of which a fabric has very many.

/// Appends to a list that mostly stays at one element: the first takes the room of one, where a vector would take that of
/// four at least.
#[inline]
pub fn push_first<T>(list: &mut Vec<T>, element: T) {
    if list.capacity() == 0 {
        list.reserve_exact(1);
    }
    list.push(element);
}
