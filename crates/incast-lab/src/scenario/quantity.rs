//! Times, sizes and rates as scenarios write them.

use incast_sim::config::Size as Threshold;
use incast_units::{Bytes, Rate, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use std::{borrow::Cow, fmt, str::FromStr};

macro_rules! quantity {
    ($(#[doc = $doc:literal])* $name:ident($inner:ty), $expected:literal, $pattern:literal;) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name(pub $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$name, E> {
                        $name::from_str(text).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $expected, "pattern": $pattern })
            }
        }
    };
}

quantity! {
    /// A span or point of simulated time.
    Duration(Time), "a time such as \"30us\" (units ps, ns, us, ms, s)", r"^\s*[0-9_]*\.?[0-9_]*\s*(ps|ns|us|µs|ms|s)\s*$";
}
quantity! {
    /// A number of bytes.
    Size(Bytes), "a size such as \"64KB\" (units B, KB, MB, GB, KiB, MiB, GiB)", r"^\s*[0-9_]*\.?[0-9_]*\s*(B|KB|kB|MB|GB|KiB|MiB|GiB)\s*$";
}
quantity! {
    /// Bits per second.
    Speed(Rate), "a rate such as \"100Gbps\" (units bps, Kbps, Mbps, Gbps, Tbps)", r"^\s*[0-9_]*\.?[0-9_]*\s*(bps|Kbps|kbps|Mbps|Gbps|Tbps)\s*$";
}
quantity! {
    /// A threshold of a queue, in bytes or in bandwidth-delay products.
    Depth(Threshold), "a size such as \"30KB\", or a part of the port's bandwidth-delay product such as \"0.2bdp\"", r"^\s*[0-9_]*\.?[0-9_]*\s*(B|KB|kB|MB|GB|KiB|MiB|GiB|bdp|BDP)\s*$";
}

quantity! {
    /// How fast the messages of an incast follow each other: `None` as fast as the receiver's link takes them.
    Spacing(Turns), "\"none\", \"link\", or a rate such as \"50Gbps\" (units bps, Kbps, Mbps, Gbps, Tbps)", r"^\s*(none|link|[0-9_]*\.?[0-9_]*\s*(bps|Kbps|kbps|Mbps|Gbps|Tbps))\s*$";
}

macro_rules! plain {
    ($($name:ident($inner:ty)),*) => {$(
        impl FromStr for $name {
            type Err = incast_units::UnitError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
plain! { Duration(Time), Size(Bytes), Speed(Rate) }

impl FromStr for Depth {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let trimmed = text.trim();
        let factor = trimmed.strip_suffix("bdp").or_else(|| trimmed.strip_suffix("BDP"));
        match factor {
            Some(number) => match number.trim().parse::<f64>() {
                Ok(factor) if factor.is_finite() && (0.0..=1e6).contains(&factor) => {
                    Ok(Self(Threshold::Bdp(factor)))
                }
                _ => Err(()),
            },
            None => trimmed.parse::<Bytes>().map(|bytes| Self(Threshold::Bytes(bytes.get()))).map_err(|_| ()),
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Threshold::Bytes(bytes) => Bytes::new(bytes).fmt(f),
            Threshold::Bdp(factor) => write!(f, "{factor}bdp"),
        }
    }
}

/// At which rate messages follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// They do not: all start at once.
    None,
    /// At that of the receiver's link.
    Link,
    /// At this one.
    Rate(Rate),
}

impl FromStr for Spacing {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.trim() {
            "none" => Ok(Self(Turns::None)),
            "link" => Ok(Self(Turns::Link)),
            rate => {
                let rate: Rate = rate.parse().map_err(|_| ())?;
                if rate.bps() == 0 { Err(()) } else { Ok(Self(Turns::Rate(rate))) }
            }
        }
    }
}

impl fmt::Display for Spacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Turns::None => f.write_str("none"),
            Turns::Link => f.write_str("link"),
            Turns::Rate(rate) => rate.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_follow_each_other_at_a_rate_or_that_of_the_link() {
        assert_eq!("link".parse(), Ok(Spacing(Turns::Link)));
        assert_eq!(" 50Gbps".parse(), Ok(Spacing(Turns::Rate(Rate::from_gbps(50)))));
        for wrong in ["lnk", "0Gbps", "50", "50us", "-1Gbps"] {
            assert!(wrong.parse::<Spacing>().is_err(), "{wrong}");
        }
        for text in ["none", "link", "50Gbps"] {
            assert_eq!(text.parse::<Spacing>().map(|spacing| spacing.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn thresholds_are_bytes_or_parts_of_a_bdp() {
        assert_eq!("0.2bdp".parse(), Ok(Depth(Threshold::Bdp(0.2))));
        assert_eq!("30KB".parse(), Ok(Depth(Threshold::Bytes(30_000))));
        for wrong in ["-1bdp", "NaNbdp", "infbdp", "bdp", "30", "-3KB", "1e9bdp"] {
            assert!(wrong.parse::<Depth>().is_err(), "{wrong}");
        }
    }
}
