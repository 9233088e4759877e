//! Whether a topology is a regular tree.

use super::{PortEnd, Ports, Rule, Topology};

impl Topology {
    /// The level of each switch, by switch index, if this is a regular tree: 0 for switches with hosts, 1 for those
    /// above them, and so on. Links can be of any kind. Takes time in proportion to the cables. `ports` are those of this
    /// topology.
    ///
    /// All switches of a level have equally many consecutive hosts below them, with no part in common or the same
    /// ones, and switches of the highest level have all. [`Rule::Tree`] and the cables agree, lower switches come
    /// first, and every cable leads to the next level.
    ///
    /// Shortest paths are then those of the rules: up by any port to the first level where both hosts are below a
    /// switch, and down. That level depends on the two edge switches only, and of three of them no two meet above
    /// the higher level of the other two pairs.
    pub fn tree_levels(&self, ports: &Ports) -> Option<Vec<u8>> {
        let hosts = self.hosts;
        let mut levels = Vec::new();
        // Hosts below each switch of a level.
        let mut spans = Vec::new();
        let mut joined = 0;
        for (switch, rule) in (hosts..).zip(&self.rules) {
            let ends = ports.of(switch);
            let below = below(rule, ends.len())?;
            let span = below.hi - below.lo;
            if !below.lo.is_multiple_of(span) || !hosts.is_multiple_of(span) {
                return None;
            }
            let mut level = None;
            for (port, end) in below.ports.clone().zip(&ends[below.ports.clone()]) {
                let lo = below.lo + (port - below.ports.start) as u32 / below.width * below.group;
                let (lower, own) = if end.peer < hosts {
                    joined += u32::from(end.cable == end.peer);
                    (0, end.cable == end.peer && (end.peer, below.group) == (lo, 1))
                } else {
                    let index = (end.peer - hosts) as usize;
                    let Rule::Tree { lo: first, hi, .. } = self.rules[index] else { return None };
                    (*levels.get(index)? + 1, (first, hi) == (lo, lo + below.group))
                };
                if !own || *level.get_or_insert(lower) != lower {
                    return None;
                }
            }
            let level = level?;
            if usize::from(level) == spans.len() {
                spans.push(span);
            }
            let upwards = ends[..below.ports.start].iter().chain(&ends[below.ports.end..]);
            let is_joined = |end: &PortEnd| {
                let peer = end.peer.checked_sub(hosts).and_then(|index| self.rules.get(index as usize));
                let above = peer.and_then(|rule| self::below(rule, ports.of(end.peer).len()));
                end.peer > switch && above.is_some_and(|above| above.ports.contains(&usize::from(end.peer_port)))
            };
            let is_top = ends.len() == below.ports.len();
            if spans[usize::from(level)] != span || (is_top && span != hosts) || !upwards.clone().all(is_joined) {
                return None;
            }
            levels.push(level);
        }
        (joined == hosts).then_some(levels)
    }
}

/// What is below a switch.
struct Below {
    /// First host.
    lo: u32,
    /// One past the last host.
    hi: u32,
    /// Hosts behind a group of ports.
    group: u32,
    /// Parallel ports of a group.
    width: u32,
    /// Ports downwards.
    ports: std::ops::Range<usize>,
}

/// `None` where the rule is not that of a tree, or does not use each of `count` ports once.
fn below(rule: &Rule, count: usize) -> Option<Below> {
    let Rule::Tree { lo, hi, per_group, down_base, down_width, up_base, up_width } = *rule else {
        return None;
    };
    let (group, width, start) = (per_group.divisor(), u32::from(down_width), usize::from(down_base));
    let span = hi.checked_sub(lo).filter(|span| *span > 0 && span.is_multiple_of(group))?;
    let ports = start..start + (span / group * width) as usize;
    let (up_start, up_end) = (usize::from(up_base), usize::from(up_base) + usize::from(up_width));
    let is_apart = up_width == 0 || (up_start, up_end) == (ports.end, count) || (up_start, up_end) == (0, start);
    let is_all = ports.end <= count && ports.len() + usize::from(up_width) == count;
    (width > 0 && is_apart && is_all).then_some(Below { lo, hi, group, width, ports })
}
