//! How the messages of an incast follow each other.

use incast_units::Rate;
use std::{fmt, str::FromStr};

/// At which rate the messages of an incast follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// They do not: all start at once.
    None,
    /// At that of the receiver's link.
    Link,
    /// At this one.
    Rate(Rate),
}

incast_units::written_as_text!(
    Spacing,
    "Spacing",
    "\"none\", \"link\", or a rate such as \"50Gbps\" (units bps, Kbps, Mbps, Gbps, Tbps)",
    r"^\s*(none|link|[0-9_]*\.?[0-9_]*\s*(bps|Kbps|kbps|Mbps|Gbps|Tbps))\s*$"
);

impl FromStr for Spacing {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.trim() {
            "none" => Ok(Self::None),
            "link" => Ok(Self::Link),
            rate => match rate.parse() {
                Ok(rate) if rate > Rate::from_bps(0) => Ok(Self::Rate(rate)),
                _ => Err(()),
            },
        }
    }
}

impl fmt::Display for Spacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Link => f.write_str("link"),
            Self::Rate(rate) => rate.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_follow_each_other_at_a_rate_or_that_of_the_link() {
        assert_eq!(" 50Gbps".parse(), Ok(Spacing::Rate(Rate::from_gbps(50))));
        for wrong in ["lnk", "0Gbps", "50", "50us", "-1Gbps"] {
            assert!(wrong.parse::<Spacing>().is_err(), "{wrong}");
        }
        for text in ["none", "link", "50Gbps"] {
            assert_eq!(text.parse::<Spacing>().map(|spacing| spacing.to_string()), Ok(text.to_owned()));
        }
    }
}
