//! What the tests of several imports need.

use proptest::prelude::*;

/// A file with some bytes replaced, left out or added.
pub fn mutated(good: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let edit = (
        0..good.len(),
        prop_oneof![
            Just(b"\0".to_vec()),
            Just(b"-".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b" ".to_vec()),
            Just(Vec::new()),
            Just(b"99999999999999999999".to_vec()),
            Just(b"1e400".to_vec()),
            Just(b"\xff".to_vec()),
            Just(b"0".to_vec()),
            Just(b"9".to_vec()),
            Just(b"nan".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..5),
        ],
        0usize..3,
    );
    proptest::collection::vec(edit, 0..4).prop_map(move |edits| {
        let mut bytes = good.as_bytes().to_vec();
        for (at, with, without) in edits {
            let at = at.min(bytes.len());
            let end = (at + without).min(bytes.len());
            bytes.splice(at..end, with);
        }
        bytes
    })
}
