//! The valid name nearest to a mistyped one.

/// The candidate closest to `name`, if it is close enough to be what was meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).clamp(1, 3);
    let distance = |candidate: &str| strsim::osa_distance(&name.to_lowercase(), &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        assert_eq!(nearest("stpe", ["step", "red"]), Some("step"));
        assert_eq!(nearest("DCTPC", ["cubic", "dctcp"]), Some("dctcp"));
        assert_eq!(nearest("zebra", ["step", "red"]), None);
        assert_eq!(nearest("", ["red"]), None);
    }
}
