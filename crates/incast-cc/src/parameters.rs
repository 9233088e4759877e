//! Parameters of algorithms: one declaration gives the struct, the parser, the checks and the reference page.

use crate::Path;
use incast_units::{Bytes, Rate, Time};
use std::{fmt, sync::Arc};
use thiserror::Error;

/// A value as a scenario file holds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// A string, such as `"30us"`.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A decimal number.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A file that the scenario names, read: only for parameters that have [`Setting::BUNDLED`].
    File {
        /// Its path as the scenario has it.
        path: String,
        /// Its text.
        text: Arc<str>,
    },
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::File { path, .. } => write!(f, "\"{path}\""),
        }
    }
}

/// A type that a parameter can have.
pub trait Setting: Sized {
    /// What it is called in messages and on the reference page.
    const KIND: &'static str;
    /// What is allowed, of a parameter that does not restrict it further.
    const ALLOWED: &'static str = "any";
    /// For a type that can be read from a file: the names that are not paths. Whoever does the input and output turns
    /// any other [`Raw::Text`] into a [`Raw::File`].
    const BUNDLED: Option<&'static [&'static str]> = None;
    /// Reads it; the error names what is allowed.
    fn read(raw: &Raw) -> Result<Self, String>;
    /// Writes it as a scenario would.
    fn write(&self) -> Raw;
}

fn wrong<T: Setting>(raw: &Raw) -> String {
    format!("found {raw}, expected {}", T::KIND)
}

impl Setting for f64 {
    const KIND: &'static str = "a number";
    fn read(raw: &Raw) -> Result<Self, String> {
        let number = match raw {
            Raw::Integer(number) => *number as Self,
            Raw::Float(number) => *number,
            _ => return Err(wrong::<Self>(raw)),
        };
        if number.is_finite() { Ok(number) } else { Err(format!("found {number}, expected a finite number")) }
    }
    fn write(&self) -> Raw {
        Raw::Float(*self)
    }
}
impl Setting for u64 {
    const KIND: &'static str = "a whole number, not negative";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Integer(number) => Self::try_from(*number).map_err(|_| wrong::<Self>(raw)),
            _ => Err(wrong::<Self>(raw)),
        }
    }
    fn write(&self) -> Raw {
        Raw::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}
impl Setting for bool {
    const KIND: &'static str = "true or false";
    const ALLOWED: &'static str = "true or false";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Flag(flag) => Ok(*flag),
            _ => Err(wrong::<Self>(raw)),
        }
    }
    fn write(&self) -> Raw {
        Raw::Flag(*self)
    }
}

macro_rules! unit_setting {
    ($($type:ty, $kind:literal, $allowed:literal;)*) => {$(
        impl Setting for $type {
            const KIND: &'static str = $kind;
            const ALLOWED: &'static str = $allowed;
            fn read(raw: &Raw) -> Result<Self, String> {
                match raw {
                    Raw::Text(text) => text.parse().map_err(|error: incast_units::UnitError| error.to_string()),
                    _ => Err(wrong::<Self>(raw)),
                }
            }
            fn write(&self) -> Raw {
                Raw::Text(self.to_string())
            }
        }
    )*};
}
unit_setting! {
    Time, "a time such as \"30us\"", "any time";
    Bytes, "a size such as \"64KB\"", "any size";
    Rate, "a rate such as \"100Gbps\"", "any rate";
}

/// The shortest [`Period`]: with 1 ps a run would never end.
pub const LEAST_PERIOD: Time = Time::from_ns(10);

/// A parameter after whose time something is done again, each time that it passes: a period or a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(Time);

impl Period {
    /// Of a time: that, or [`LEAST_PERIOD`] if that is longer, as on paths whose base RTT is next to nothing.
    pub fn of(time: Time) -> Self {
        Self(time.max(LEAST_PERIOD))
    }
    /// The time.
    pub const fn time(self) -> Time {
        self.0
    }
}

impl Setting for Period {
    const KIND: &'static str = Time::KIND;
    const ALLOWED: &'static str = "at least 10ns";
    fn read(raw: &Raw) -> Result<Self, String> {
        let time = Time::read(raw)?;
        if time < LEAST_PERIOD {
            return Err(format!("found {raw}, allowed is {}", Self::ALLOWED));
        }
        Ok(Self(time))
    }
    fn write(&self) -> Raw {
        self.0.write()
    }
}

/// Declares a parameter that is one of several names. Each: `Variant = "name",`.
#[macro_export]
macro_rules! choice {
    (
        $(#[doc = $enum_doc:literal])*
        pub enum $name:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $text:literal, )+ }
    ) => {
        $(#[doc = $enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $doc])+ $variant, )+ }

        impl $crate::parameters::Setting for $name {
            const KIND: &'static str = concat!("one of", $(" \"", $text, "\"",)+);
            const ALLOWED: &'static str = $crate::alternatives!($($text),+);
            fn read(raw: &$crate::parameters::Raw) -> Result<Self, String> {
                match raw {
                    $($crate::parameters::Raw::Text(text) if text == $text => Ok(Self::$variant),)+
                    _ => Err(format!("found {raw}, expected {}", Self::KIND)),
                }
            }
            fn write(&self) -> $crate::parameters::Raw {
                $crate::parameters::Raw::Text(match self { $(Self::$variant => $text,)+ }.to_owned())
            }
        }
    };
}

/// Names in quotation marks: `"a", "b" or "c"`.
#[doc(hidden)]
#[macro_export]
macro_rules! alternatives {
    ($only:literal) => { concat!("\"", $only, "\"") };
    ($first:literal, $last:literal) => { concat!("\"", $first, "\" or \"", $last, "\"") };
    ($first:literal, $($rest:literal),+) => { concat!("\"", $first, "\", ", $crate::alternatives!($($rest),+)) };
}

/// The value that `given` has for a choice on which other defaults depend; the last one counts, as in `resolve`.
///
/// # Errors
/// A value that is none of the names.
pub fn chosen<T: Setting>(name: &'static str, otherwise: T, given: &[(String, Raw)]) -> Result<T, ParameterError> {
    match given.iter().rev().find(|(key, _)| key == name) {
        Some((_, raw)) => T::read(raw).map_err(|message| ParameterError::Value { name, message }),
        None => Ok(otherwise),
    }
}

/// One row of the reference page.
#[derive(Clone, Copy, Debug)]
pub struct ParameterInfo {
    /// The key in a scenario.
    pub name: &'static str,
    /// Kind of value.
    pub kind: &'static str,
    /// See [`Setting::BUNDLED`].
    pub bundled: Option<&'static [&'static str]>,
    /// What it does.
    pub describe: &'static str,
    /// The default as a formula of rate, base RTT and MSS.
    pub default: &'static str,
    /// What is allowed.
    pub allowed: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
    /// The default's value on a path.
    pub default_on: fn(&Path) -> Raw,
    /// The value at which it does nothing, of one that came later: what a scenario comes to leaves it out then, so that
    /// scenarios and results keep their identities.
    pub unset: Option<&'static str>,
}

impl ParameterInfo {
    /// A scenario with this value is what it was before there was the parameter.
    pub fn is_unset(&self, value: &Raw) -> bool {
        self.unset.is_some_and(|unset| value.to_string() == unset)
    }
}

/// A parameter that has an effect only with some values of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The parameter.
    pub parameter: &'static str,
    /// The other one, which is a choice or a flag.
    pub other: &'static str,
    /// Its values; those of a flag are `true` and `false`.
    pub values: &'static [&'static str],
}

impl Condition {
    /// `parameter` has an effect where `other` is one of `values`.
    pub const fn new(parameter: &'static str, other: &'static str, values: &'static [&'static str]) -> Self {
        Self { parameter, other, values }
    }
}

/// Why parameters were refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// No parameter has this name.
    #[error("unknown parameter `{name}`")]
    Unknown {
        /// The name as written.
        name: String,
        /// The names that exist.
        allowed: Vec<&'static str>,
    },
    /// The value is of the wrong kind or outside the allowed range.
    #[error("`{name}`: {message}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What was found and what is allowed.
        message: String,
    },
}

/// Declares the struct of an algorithm's parameters. Each parameter names its type and, in this order:
///
/// - `doc`: what it does; for rustdoc and the reference page.
/// - `default`: its default as a formula.
/// - `value`: the default's value on a path.
/// - `unset`, of a parameter that came later: see [`ParameterInfo::unset`].
/// - `allowed` and `check`: what is allowed, as text and as a test. Without a test every value of the type is,
///   or `resolve` of the algorithm tests it.
/// - `source`: where the default comes from.
///
/// The form is that of a struct expression, so that rustfmt formats it.
#[macro_export]
macro_rules! parameters {
    ($name:ident { $(
        $field:ident: $type:ident {
            doc: $doc:literal,
            default: $default:literal,
            value: $value:expr,
            $(unset: $unset:literal,)?
            $(allowed: $allowed:literal, $(check: $check:expr,)?)?
            source: $source:literal $(,)?
        }
    ),* $(,)? }) => {
        /// The algorithm's parameters: see [`Self::TABLE`].
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( #[doc = $doc] pub $field: $type, )*
        }

        impl $name {
            /// The reference page, in the order of declaration.
            pub const TABLE: &'static [$crate::parameters::ParameterInfo] = &[
                $( $crate::parameters::ParameterInfo {
                    name: stringify!($field),
                    kind: <$type as $crate::parameters::Setting>::KIND,
                    bundled: <$type as $crate::parameters::Setting>::BUNDLED,
                    describe: $doc,
                    default: $default,
                    allowed: $crate::parameters!(@or { $($allowed)? } { <$type as $crate::parameters::Setting>::ALLOWED }),
                    source: $source,
                    default_on: |path| $crate::parameters::Setting::write(&$name::on(path).$field),
                    unset: $crate::parameters!(@option $($unset)?),
                }, )*
            ];

            /// The defaults on `path`.
            #[allow(unused_variables)]
            pub fn on(path: &$crate::Path) -> Self {
                Self {
                    $( $field: { let value: fn(&$crate::Path) -> $type = $value; value(path) }, )*
                }
            }

            /// Takes the defaults on `path` and replaces those that are `given`.
            ///
            /// # Errors
            /// An unknown name, a wrong kind, or a value that is not allowed.
            pub fn resolve(
                path: &$crate::Path,
                given: &[(String, $crate::parameters::Raw)],
            ) -> Result<Self, $crate::parameters::ParameterError> {
                Self::on(path).with(given)
            }

            /// Replaces what is `given`.
            ///
            /// # Errors
            /// As [`Self::resolve`].
            #[allow(unused_mut)]
            pub fn with(
                mut self,
                given: &[(String, $crate::parameters::Raw)],
            ) -> Result<Self, $crate::parameters::ParameterError> {
                for (key, raw) in given {
                    match key.as_str() {
                        $( stringify!($field) => {
                            let problem = |message| $crate::parameters::ParameterError::Value {
                                name: stringify!($field),
                                message,
                            };
                            let value = <$type as $crate::parameters::Setting>::read(raw).map_err(problem)?;
                            $( $(
                                let check: fn(&$type) -> bool = $check;
                                if !check(&value) {
                                    return Err(problem(format!("found {raw}, allowed is {}", $allowed)));
                                }
                            )? )?
                            self.$field = value;
                        } )*
                        _ => return Err($crate::parameters::ParameterError::Unknown {
                            name: key.clone(),
                            allowed: Self::TABLE.iter().map(|row| row.name).collect(),
                        }),
                    }
                }
                Ok(self)
            }

            /// The effective values, as a scenario would write them.
            pub fn values(&self) -> Vec<(&'static str, $crate::parameters::Raw)> {
                vec![ $( (stringify!($field), $crate::parameters::Setting::write(&self.$field)), )* ]
            }
        }
    };
    (@or { $given:literal } { $otherwise:expr }) => { $given };
    (@or { } { $otherwise:expr }) => { $otherwise };
    (@option $given:literal) => { Some($given) };
    (@option) => { None };
}

#[cfg(test)]
mod tests {
    use super::*;

    parameters!(Sample {
        gain: f64 {
            doc: "A gain.",
            default: "1/16",
            value: |_| 1.0 / 16.0,
            allowed: "in (0, 1]",
            check: |g| *g > 0.0 && *g <= 1.0,
            source: "nowhere"
        },
        window: Bytes { doc: "A window.", default: "BDP", value: |path| path.bdp(), source: "nowhere" },
    });

    fn path() -> Path {
        Path::new(Rate::from_gbps(100), Time::from_us(10), 1000, 1000)
    }

    #[test]
    fn defaults_follow_the_path() {
        let sample = Sample::resolve(&path(), &[]).expect("defaults");
        assert_eq!((sample.gain, sample.window), (0.0625, Bytes::new(125_000)));
        assert_eq!(Sample::TABLE.iter().map(|row| row.allowed).collect::<Vec<_>>(), ["in (0, 1]", "any size"]);
        assert_eq!((Sample::TABLE[1].default_on)(&path()), Raw::Text("125KB".into()));
        assert_eq!(sample.values()[0], ("gain", Raw::Float(0.0625)));
    }

    #[test]
    fn wrong_values_are_named() {
        let set = |key: &str, raw| Sample::resolve(&path(), &[(key.into(), raw)]).expect_err("refused").to_string();
        assert_eq!(set("gian", Raw::Float(0.5)), "unknown parameter `gian`");
        assert_eq!(set("gain", Raw::Float(2.0)), "`gain`: found 2, allowed is in (0, 1]");
        assert!(set("gain", Raw::Float(f64::NAN)).contains("finite"));
        assert!(set("window", Raw::Integer(4)).contains("expected a size"));
    }
}
