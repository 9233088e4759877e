//! Tables of CONFIG_DB: every value a text.

use serde_json::{Map, Value, json};

/// Thresholds are read as 32 bits with a sign (`orchagent/qosorch.cpp` uses `stoi`).
pub const MOST_BYTES: u64 = 0x7fff_ffff;

/// Tables by name; in each, entries by key, with fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Database(Map<String, Value>);

impl Database {
    /// Sets an entry.
    pub fn set(&mut self, table: &str, key: &str, fields: &[(&str, String)]) {
        self.set_all(table, key, fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect());
    }

    /// Sets an entry with any names of fields.
    pub fn set_all(&mut self, table: &str, key: &str, fields: Vec<(String, String)>) {
        let fields: Map<String, Value> = fields.into_iter().map(|(name, value)| (name, json!(value))).collect();
        let table = self.0.entry(table).or_insert_with(|| json!({}));
        if let Some(table) = table.as_object_mut() {
            table.insert(key.to_owned(), Value::Object(fields));
        }
    }

    /// There is such an entry.
    pub fn has(&self, table: &str, key: &str) -> bool {
        self.0.get(table).is_some_and(|table| table.get(key).is_some())
    }

    /// Of a file's text.
    ///
    /// # Errors
    /// It is no JSON, or something else than tables of entries of fields: the line, 0 for the file as a whole, and why.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let value: Value = serde_json::from_str(text).map_err(|error| (error.line(), error.to_string()))?;
        let is_table = |value: &Value| value.as_object().is_some_and(|entries| entries.values().all(Value::is_object));
        match value {
            Value::Object(mut tables) if tables.values().all(is_table) => {
                // Devices write every value as a text; who types may not.
                let entries = tables.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut);
                for value in entries.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
                    if value.is_number() || value.is_boolean() {
                        *value = Value::String(value.to_string());
                    }
                }
                Ok(Self(tables))
            }
            _ => Err((0, "expected a table of tables, by name and key, as `config_db.json` is".into())),
        }
    }

    /// Names of the tables.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Keys of a table.
    pub fn keys(&self, table: &str) -> impl Iterator<Item = &str> {
        self.0.get(table).and_then(Value::as_object).into_iter().flat_map(Map::keys).map(String::as_str)
    }

    /// A field of an entry, if it is a text.
    pub fn field(&self, table: &str, key: &str, field: &str) -> Option<&str> {
        self.0.get(table)?.get(key)?.get(field)?.as_str()
    }

    /// As `config load` reads it.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(&self.0).unwrap_or_default();
        text + "\n"
    }

    /// Refuses what SONiC's YANG models let pass and its daemons do not: a profile with both kinds of thresholds or none, a
    /// queue that is no number, marking without a word on drops, a threshold of more than 31 bits.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut wrong = Vec::new();
        for (table, entries) in &self.0 {
            for (key, fields) in entries.as_object().into_iter().flatten() {
                let Some(fields) = fields.as_object() else {
                    wrong.push(format!("{table}|{key}: no table of fields"));
                    continue;
                };
                let mut add = |what: String| wrong.push(format!("{table}|{key}: {what}"));
                let is_profile = ["BUFFER_PROFILE", "BUFFER_POOL", "WRED_PROFILE"].contains(&table.as_str());
                if is_profile && !key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
                    add("allowed in a name are letters, digits, - and _".into());
                }
                match table.as_str() {
                    "BUFFER_PROFILE" => {
                        let given = ["static_th", "dynamic_th"].map(|field| fields.contains_key(field));
                        if given[0] == given[1] {
                            add("exactly one of `static_th` and `dynamic_th` must be given".into());
                        }
                    }
                    "QUEUE" | "BUFFER_QUEUE" | "BUFFER_PG" => {
                        let number = key.rsplit('|').next().unwrap_or_default();
                        if !is_range(number) {
                            add(format!("{number:?} is no queue, allowed is 0 to 15, or a range such as 3-4"));
                        }
                    }
                    "WRED_PROFILE" => {
                        let marks = fields.get("ecn").is_some_and(|ecn| ecn != "ecn_none");
                        let says = fields.keys().any(|field| field.starts_with("wred_") && field.ends_with("_enable"));
                        if marks && !says {
                            add("`ecn` without any `wred_*_enable`: some devices then do not mark".into());
                        }
                        for (field, value) in fields.iter().filter(|(field, _)| field.ends_with("_threshold")) {
                            let bytes = value.as_str().and_then(|text| text.parse::<u64>().ok());
                            if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
                                add(format!("`{field}` is {value}, allowed is 0 to {} bytes", MOST_BYTES));
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

fn is_range(text: &str) -> bool {
    let number = |text: &str| text.parse::<u8>().ok().filter(|number| *number < 16 && text.len() <= 2);
    match text.split_once('-') {
        None => number(text).is_some(),
        Some((first, last)) => number(first).zip(number(last)).is_some_and(|(first, last)| first < last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_models_let_pass_is_refused() {
        let wrong = |table: &str, key: &str, fields: &[(&str, &str)]| {
            let mut database = Database::default();
            let fields: Vec<(&str, String)> = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            database.set(table, key, &fields);
            database.check().err().unwrap_or_default().join(" ")
        };
        assert_eq!(wrong("BUFFER_PROFILE", "p", &[("dynamic_th", "1")]), "");
        assert!(wrong("BUFFER_PROFILE", "p", &[]).contains("exactly one of"));
        assert!(wrong("BUFFER_PROFILE", "p", &[("dynamic_th", "1"), ("static_th", "1")]).contains("exactly one of"));
        for good in ["3", "15", "3-4"] {
            assert_eq!(wrong("QUEUE", &format!("Ethernet0|{good}"), &[]), "");
        }
        for bad in ["banana", "16", "4-3", "", "03-", " 3"] {
            assert!(wrong("QUEUE", &format!("Ethernet0|{bad}"), &[]).contains("is no queue"), "{bad}");
        }
        let marks = [("ecn", "ecn_all"), ("wred_green_enable", "false")];
        assert_eq!(wrong("WRED_PROFILE", "w", &marks), "");
        assert!(wrong("WRED_PROFILE", "w", &marks[..1]).contains("wred_*_enable"));
        for bytes in ["2147483648", " 166912", "-1"] {
            assert!(
                wrong("WRED_PROFILE", "w", &[("green_min_threshold", bytes)]).contains("allowed is 0 to"),
                "{bytes}"
            );
        }
    }
}
