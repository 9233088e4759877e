//! A scenario as a TOML document in which the order of keys stays: it is that of the grid's axes.

use super::tree::node::quoted;
use toml::{Table, Value};

/// The document: a section for each table, in which every value has one line.
pub fn document(table: &Table) -> String {
    let is_section = |value: &Value| match value {
        Value::Array(all) => !all.is_empty() && all.iter().all(Value::is_table),
        value => value.is_table(),
    };
    let (sections, simple): (Vec<_>, Vec<_>) = table.iter().partition(|(_, value)| is_section(value));
    let mut text = lines(simple);
    for (name, value) in sections {
        let (open, close) = if value.is_array() { ("[[", "]]") } else { ("[", "]") };
        let tables = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for table in tables.iter().filter_map(Value::as_table) {
            text += &format!("\n{open}{}{close}\n{}", quoted(name), lines(table));
        }
    }
    text
}

fn lines<'a>(entries: impl IntoIterator<Item = (&'a String, &'a Value)>) -> String {
    entries.into_iter().map(|(key, value)| format!("{} = {value}\n", quoted(key))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_stays_and_every_value_is_read_as_it_was() {
        let text = "name = \"a \\\"b\\\"\"\nnone = []\n\n[grid]\n\"switch.ecn\" = [{ kind = \"step\", at = \"1KB\" }, \"off\"]\nload = [0.2, 1e-9]\n\n\
                    [[zip]]\na = [1, 2]\n\"b c\" = [{ x = { y = [{}] } }, true]\n";
        let table: Table = text.parse().expect("TOML");
        let written = document(&table);
        assert_eq!(written.parse::<Table>().as_ref(), Ok(&table));
        assert!(written.find("\"switch.ecn\"") < written.find("load"), "{written}");
    }
}
