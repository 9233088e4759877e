//! Names of run folders.

use std::collections::BTreeSet;

/// Longest name: well below the 255 bytes of common file systems.
const LONGEST: usize = 120;

/// Gives out names that are unique even where case does not count.
#[derive(Debug, Default)]
pub struct Folders {
    taken: BTreeSet<String>,
}

impl Folders {
    /// A name from a grid point, a scheme and a seed: `load-0.4+dctcp+seed1`.
    pub fn name(&mut self, grid: &[(String, toml::Value)], scheme: &str, seed: u64) -> String {
        let mut parts: Vec<String> = grid
            .iter()
            .map(|(path, value)| {
                let key = path.rsplit('.').next().unwrap_or(path);
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("{}-{}", safe(key), safe(&text))
            })
            .collect();
        parts.push(safe(scheme));
        let mut stem = parts.join("+");
        stem.truncate(LONGEST);
        let mut name = format!("{stem}+seed{seed}");
        let mut count = 2;
        while !self.taken.insert(name.to_lowercase()) {
            name = format!("{stem}~{count}+seed{seed}");
            count += 1;
        }
        name
    }
}

/// Letters, digits, `.`, `_` and `-`; anything else becomes one `-`.
pub fn safe(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '.' || c == '_' {
            safe.push(c);
        } else if !safe.ends_with('-') {
            safe.push('-');
        }
    }
    let safe = safe.trim_matches(['-', '.']);
    if safe.is_empty() { "x".into() } else { safe.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_unique() {
        let mut folders = Folders::default();
        let grid = [("workload.background.load".to_owned(), toml::Value::Float(0.4))];
        assert_eq!(folders.name(&grid, "DCQCN + On-Ramp", 1), "load-0.4+DCQCN-On-Ramp+seed1");
        assert_eq!(folders.name(&grid, "dcqcn / on-ramp", 1), "load-0.4+dcqcn-on-ramp~2+seed1");
        assert_eq!(folders.name(&[], "../..", 7), "x+seed7");
        assert!(folders.name(&[], &"ü".repeat(900), 7).len() < 200);
        assert!(folders.name(&[], &"a".repeat(900), 7).len() < 200);
    }
}
