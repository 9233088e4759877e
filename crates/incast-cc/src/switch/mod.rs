//! In-switch algorithms (agents).

mod flow_table;
#[cfg(test)]
mod testing;

modules!(switch);
