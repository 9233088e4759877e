//! What flows carry: bytes that follow from the flow's key and their place, so that the receiver knows each of them.

/// The word at place `index` of the stream of `key` (the finaliser of SplitMix64 over a counter).
fn word(key: u64, index: u64) -> u64 {
    let mut x = key.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Fills `buffer` with the stream of `key` from byte `offset` on.
pub fn fill(key: u64, offset: u64, buffer: &mut [u8]) {
    let skipped = usize::try_from(offset % 8).expect("less than 8");
    let mut index = offset / 8;
    let (head, rest) = buffer.split_at_mut(buffer.len().min((8 - skipped) % 8));
    if !head.is_empty() {
        head.copy_from_slice(&word(key, index).to_le_bytes()[skipped..][..head.len()]);
        index += 1;
    }
    for chunk in rest.chunks_mut(8) {
        chunk.copy_from_slice(&word(key, index).to_le_bytes()[..chunk.len()]);
        index += 1;
    }
}

/// The first place from `offset` on at which `received` is not the stream of `key`. `scratch` is as long as `received`.
pub fn first_difference(key: u64, offset: u64, received: &[u8], scratch: &mut [u8]) -> Option<u64> {
    let expected = &mut scratch[..received.len()];
    fill(key, offset, expected);
    if received == expected {
        return None;
    }
    let place = received.iter().zip(expected.iter()).position(|(found, wanted)| found != wanted)?;
    Some(offset + place as u64)
}

/// A number between 1 and `most` that follows from `key` and `index`.
pub fn size(key: u64, index: u64, most: u64) -> u64 {
    1 + word(key, index) % most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_however_it_is_cut() {
        let mut whole = [0; 100];
        fill(7, 0, &mut whole);
        for start in 0..40 {
            for end in start..100 {
                let mut part = vec![0; end - start];
                fill(7, start as u64, &mut part);
                assert_eq!(part, whole[start..end], "{start}..{end}");
            }
        }
    }

    #[test]
    fn streams_differ_by_key_and_place() {
        let stream = |key, offset| {
            let mut buffer = [0; 64];
            fill(key, offset, &mut buffer);
            buffer
        };
        assert_ne!(stream(1, 0), stream(2, 0));
        assert_ne!(stream(1, 0), stream(1, 64));
    }

    #[test]
    fn one_wrong_bit_is_found_where_it_is() {
        let mut scratch = [0; 64];
        let mut received = [0; 64];
        fill(3, 1000, &mut received);
        assert_eq!(first_difference(3, 1000, &received, &mut scratch), None);
        received[17] ^= 4;
        assert_eq!(first_difference(3, 1000, &received, &mut scratch), Some(1017));
        received[17] ^= 4;
        assert_eq!(first_difference(3, 1001, &received, &mut scratch), Some(1001), "shifted by one byte");
    }
}
