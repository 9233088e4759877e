//! The bundled distributions, part of the binary so that it works from any directory.

/// Name and CSV text of each.
pub const BUILTIN: &[(&str, &str)] = &[
    ("datamining_pfabric", include_str!("../../workloads/datamining_pfabric.csv")),
    ("fb_cachefollower", include_str!("../../workloads/fb_cachefollower.csv")),
    ("fb_hadoop_fine", include_str!("../../workloads/fb_hadoop_fine.csv")),
    ("fb_webserver", include_str!("../../workloads/fb_webserver.csv")),
    ("homa_w1", include_str!("../../workloads/homa_w1.csv")),
    ("homa_w2", include_str!("../../workloads/homa_w2.csv")),
    ("homa_w3", include_str!("../../workloads/homa_w3.csv")),
    ("homa_w4", include_str!("../../workloads/homa_w4.csv")),
    ("homa_w5", include_str!("../../workloads/homa_w5.csv")),
    ("imc10", include_str!("../../workloads/imc10.csv")),
    ("websearch", include_str!("../../workloads/websearch.csv")),
    ("websearch_pfabric", include_str!("../../workloads/websearch_pfabric.csv")),
];

/// The CSV text of a bundled distribution.
pub fn text(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
}

/// The value of a `# key: value` line of a CSV's head.
pub fn head<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .take_while(|line| line.starts_with('#'))
        .filter_map(|line| line.trim_start_matches('#').trim().split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::distribution::Table;

    #[test]
    fn every_bundled_distribution_has_the_mean_that_its_head_states() {
        for (name, text) in BUILTIN {
            let table = Table::parse(text).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let stated = head(text, "mean_bytes_linear_interp").expect("a mean").to_owned();
            let number = |text: &str| text.trim().parse::<f64>().expect("a number");
            let (linear, rest) = stated.split_once(';').expect("two means");
            let step = rest.split_once(':').expect("a key").1.split(';').next().expect("a value").to_owned();
            let close = |ours: f64, theirs: f64| (ours - theirs).abs() <= 0.06 + theirs * 1e-6;
            assert!(close(table.mean_of_step(u64::MAX), number(&step)), "{name} step {}", table.mean_of_step(u64::MAX));
            assert!(
                close(table.mean_of_lines(u64::MAX), number(linear)),
                "{name} linear {}",
                table.mean_of_lines(u64::MAX)
            );
        }
    }
}
