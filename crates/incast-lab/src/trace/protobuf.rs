//! The little of protocol buffers' wire format that a Perfetto trace needs.
//!
//! Source: protobuf.dev, "Encoding".

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// An integer or enumeration; of a signed one, its two's complement.
    #[must_use]
    pub fn number(mut self, field: u32, value: u64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// A `fixed64`.
    #[must_use]
    pub fn fixed(mut self, field: u32, value: u64) -> Self {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Text.
    #[must_use]
    pub fn text(self, field: u32, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// A message in this one.
    #[must_use]
    pub fn message(self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// What has been put together.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// Reading, for tests.
#[cfg(test)]
pub(super) mod read {
    /// A field of a message.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Value {
        Number(u64),
        Bytes(Vec<u8>),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a whole number");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }

    /// All fields in their order.
    pub fn fields(mut bytes: &[u8]) -> Vec<(u32, Value)> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let length = match tag & 7 {
                0 => {
                    all.push(((tag >> 3) as u32, Value::Number(varint(&mut bytes))));
                    continue;
                }
                1 => 8,
                2 => varint(&mut bytes) as usize,
                kind => panic!("wire type {kind}"),
            };
            let (value, rest) = bytes.split_at(length);
            bytes = rest;
            let value = match tag & 7 {
                1 => Value::Number(u64::from_le_bytes(value.try_into().expect("eight bytes"))),
                _ => Value::Bytes(value.to_vec()),
            };
            all.push(((tag >> 3) as u32, value));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification_come_out() {
        assert_eq!(Message::default().number(1, 150).as_bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(
            Message::default().text(2, "testing").as_bytes(),
            [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]
        );
        let inner = Message::default().number(1, 150);
        assert_eq!(Message::default().message(3, &inner).as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }

    #[test]
    fn what_is_written_can_be_read() {
        use read::{Value, fields};
        let message = Message::default().number(300, u64::MAX).fixed(2, 7).text(1, "x");
        let expected = [(300, Value::Number(u64::MAX)), (2, Value::Number(7)), (1, Value::Bytes(b"x".to_vec()))];
        assert_eq!(fields(message.as_bytes()), expected);
    }
}
