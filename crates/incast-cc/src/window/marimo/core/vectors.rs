//! Golden vectors and recordings of Marimo: the inputs of connections, and the decisions that followed.
//!
//! Their format is in `deploy/core/oracle/marimo.py`, which makes the vectors; a sample is committed. Everything that wraps the core replays
//! them in its tests; nothing else reads them.

use super::{Ack, Config, Connection, FieldsError, KNOTS, Shared};
use thiserror::Error;

/// A line that is not of the format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {number}: {fault}")]
pub struct LineError {
    /// Which line, from 1.
    pub number: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say what each is")]
pub enum Fault {
    #[error("found {0:?}, allowed is a whole number below 2^32")]
    Number(String),
    #[error("kind {kind:?} with {count} numbers, allowed are c 18, t 65, n 0, a 6, l 2, o 1 and i 1")]
    Kind { kind: String, count: usize },
    #[error("found {0} decisions, allowed are 5")]
    Decisions(usize),
    #[error(transparent)]
    Config(#[from] FieldsError),
}

/// A line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Which one, from 1.
    pub number: usize,
    /// As it stands.
    pub text: &'a str,
    /// Its content.
    pub content: LineContent,
}

/// The content of a line.
#[derive(Clone, Copy, Debug)]
pub enum LineContent {
    /// The configuration from here on.
    Config(Config),
    /// The table f from here on: loads in Q16, unchecked.
    Table([u32; KNOTS]),
    /// Something happens to the connection.
    Event {
        /// What happens.
        event: Event,
        /// The connection afterwards; `None` for the first of two events that a kernel reports as one.
        decided: Option<Decided>,
    },
}

/// The inputs of a connection. Positions are those of the core: any unit, modulo 2^32.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A new one begins.
    New,
    /// See [`Connection::on_ack`].
    Ack(Ack),
    /// See [`Connection::on_loss`].
    Loss {
        /// Where the first lost packet is.
        position: u32,
        /// The first position never sent.
        next: u32,
    },
    /// See [`Connection::on_timeout`].
    Timeout {
        /// The first position never sent.
        next: u32,
    },
    /// See [`Connection::on_idle`].
    Idle {
        /// The first position never sent.
        next: u32,
    },
}

impl Event {
    /// Tells a connection.
    pub fn apply(&self, connection: &mut Connection, shared: &Shared) {
        match *self {
            Self::New => *connection = Connection::new(shared),
            Self::Ack(ack) => connection.on_ack(shared, &ack),
            Self::Loss { position, next } => connection.on_loss(shared, position, next),
            Self::Timeout { next } => connection.on_timeout(shared, next),
            Self::Idle { next } => connection.on_idle(next),
        }
    }
}

/// A connection after an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Window in Q16 packets.
    pub window: u32,
    /// Where slow start ends, in Q16 packets.
    pub threshold: u32,
    /// Estimated load, Q16.
    pub rho: u32,
    /// Growth of the window per acknowledged packet, in Q16 packets.
    pub gain: u32,
    /// Epochs so far, modulo 2^32.
    pub epochs: u32,
}

/// Whole numbers, with spaces between them.
///
/// # Errors
/// A word that is none.
pub fn numbers(text: &str) -> Result<Vec<u32>, Fault> {
    let number = |word: &str| word.parse().map_err(|_| Fault::Number(word.to_owned()));
    text.split_whitespace().map(number).collect()
}

/// The lines of vectors or of a recording.
pub fn lines(text: &str) -> impl Iterator<Item = Result<Line<'_>, LineError>> {
    let mut last = Decided::default();
    text.lines().enumerate().map(move |(index, text)| {
        let number = index + 1;
        let content = read(text, &mut last).map_err(|fault| LineError { number, fault })?;
        Ok(Line { number, text, content })
    })
}

fn read(line: &str, last: &mut Decided) -> Result<LineContent, Fault> {
    let (input, decided) = line.split_once('=').map_or((line, None), |(input, decided)| (input, Some(decided)));
    let input = input.trim_end();
    let (kind, given) = input.split_once(' ').unwrap_or((input, ""));
    let given = numbers(given)?;
    let event = match (kind, given.as_slice()) {
        ("c", fields) => return Ok(LineContent::Config(Config::from_fields(fields)?)),
        ("t", knots) if knots.len() == KNOTS => {
            let mut table = [0; KNOTS];
            table.copy_from_slice(knots);
            return Ok(LineContent::Table(table));
        }
        ("n", []) => Event::New,
        ("a", &[packets, marked, acked, position, next, limited]) => {
            Event::Ack(Ack { packets, marked, acked, position, next, limited })
        }
        ("l", &[position, next]) => Event::Loss { position, next },
        ("o", &[next]) => Event::Timeout { next },
        ("i", &[next]) => Event::Idle { next },
        _ => return Err(Fault::Kind { kind: kind.to_owned(), count: given.len() }),
    };
    let decided = decided.map(|decided| read_decided(decided, last)).transpose()?;
    Ok(LineContent::Event { event, decided })
}

/// A dot stands for the number of the line before.
fn read_decided(text: &str, last: &mut Decided) -> Result<Decided, Fault> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let numbers = [&mut last.window, &mut last.threshold, &mut last.rho, &mut last.gain, &mut last.epochs];
    if words.len() != numbers.len() {
        return Err(Fault::Decisions(words.len()));
    }
    for (number, word) in numbers.into_iter().zip(words) {
        if word != "." {
            *number = word.parse().map_err(|_| Fault::Number(word.to_owned()))?;
        }
    }
    Ok(*last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::marimo::core::LoadTable;

    const SAMPLE: &str = include_str!("../../../../core/test/marimo.txt");

    /// The sample of the golden vectors, through this crate; `deploy/core/test/run.sh` replays all of them in C.
    #[test]
    fn the_core_agrees_with_the_oracle() {
        let mut settings = Config::default();
        let mut shared = None;
        let mut connection = None;
        let mut compared = [0; 5];
        let mut reductions = 0;
        let mut before = Decided::default();
        for line in lines(SAMPLE) {
            let line = line.expect("sound vectors");
            match line.content {
                LineContent::Config(config) => settings = config,
                LineContent::Table(knots) => {
                    shared = Some(Shared::new(settings, &LoadTable::unchecked(knots)).expect("sound"));
                }
                LineContent::Event { event, decided } => {
                    let shared = shared.as_ref().expect("a table first");
                    let state = connection.get_or_insert_with(|| Connection::new(shared));
                    event.apply(state, shared);
                    let inner = state.0;
                    let found = Decided {
                        window: inner.window,
                        threshold: inner.threshold,
                        rho: inner.rho,
                        gain: inner.gain,
                        epochs: inner.epochs,
                    };
                    assert_eq!(Some(found), decided, "line {}: {}", line.number, line.text);
                    let kind = match event {
                        Event::New => 0,
                        Event::Ack(_) => 1,
                        Event::Loss { .. } => 2,
                        Event::Timeout { .. } => 3,
                        Event::Idle { .. } => 4,
                    };
                    compared[kind] += 1;
                    reductions += u32::from(kind != 0 && found.window < before.window);
                    before = found;
                }
            }
        }
        let least = [12, 200, 3, 3, 2];
        assert!(compared.iter().zip(least).all(|(found, least)| *found >= least), "n, a, l, o, i: {compared:?}");
        assert!(reductions >= 10, "{reductions}");
    }

    #[test]
    fn a_line_says_what_is_wrong_with_it() {
        let fault = |text: &str| {
            let found = lines(text).find_map(Result::err).expect("an error");
            found.to_string()
        };
        assert_eq!(fault("n = 1 2 3 4 5\na 1 2"), {
            "line 2: kind \"a\" with 2 numbers, allowed are c 18, t 65, n 0, a 6, l 2, o 1 and i 1"
        });
        assert_eq!(fault("o -1"), "line 1: found \"-1\", allowed is a whole number below 2^32");
        assert_eq!(fault("o 1 = 1 . . ."), "line 1: found 4 decisions, allowed are 5");
        assert_eq!(fault("c 1"), "line 1: found 1 numbers, a configuration has 18");
        let mut fields = vec!["0"; 18];
        fields[15] = "256";
        assert_eq!(
            fault(&format!("c {}", fields.join(" "))),
            "line 1: decrease_from: found 256, allowed is at most 255"
        );
    }
}
