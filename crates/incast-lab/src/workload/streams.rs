//! Random streams of workloads. They depend on seed, class and host alone, never on a scheme: all schemes of a
//! scenario see the same flows.

use incast_sim::engine::random::Stream;

/// What a stream is for; numbers from 0x1000 on belong to workloads.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Purpose {
    /// Arrivals, sizes and destinations of Poisson sources.
    Poisson = 0x1000,
    /// Senders, receivers and jitter of incasts.
    Incast = 0x1001,
    /// The order of a permutation.
    Permutation = 0x1002,
    /// Pairs of long flows.
    Long = 0x1003,
    /// Servers, request sizes and pauses of a client.
    RpcClient = 0x1004,
    /// The size of a response.
    RpcServer = 0x1005,
}

/// The stream of a class at a place: a host, or whatever the purpose counts.
pub fn stream(seed: u64, purpose: Purpose, class: &str, place: u64) -> Stream {
    Stream::new(seed, purpose as u32, mix(hash(class) ^ mix(place)))
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The finaliser of SplitMix64.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Draws `count` different items to the front of `items`, in random order.
pub fn draw_to_front(stream: &mut Stream, items: &mut [u32], count: usize) {
    for index in 0..count.min(items.len()) {
        let other = index + stream.below((items.len() - index) as u64) as usize;
        items.swap(index, other);
    }
}
