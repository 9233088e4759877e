//! `switch.profile`: thresholds of marks that are published, or that switches come with.

use incast_sim::config::{Ecn, RedAtRate, Size};
use incast_units::{Bytes, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whose thresholds. `incast list profiles` has the values, and where they are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchProfile {
    /// DCTCP's paper, at 1 and 10 Gbit/s.
    DctcpPaper,
    /// DCQCN's paper, at 40 Gbit/s.
    DcqcnPaper,
    /// HPCC's simulator for DCTCP, in proportion to the rate.
    HpccDctcp,
    /// HPCC's simulator for DCQCN, in proportion to the rate.
    HpccDcqcn,
    /// SONiC, where a switch has no profile of its own.
    Sonic,
    /// SONiC on Tomahawk, 10 to 100 Gbit/s.
    SonicTomahawk,
    /// SONiC on Tomahawk 2, Jericho 2 and 3, and many Spectrum switches, at 100 and 400 Gbit/s.
    SonicTomahawk2,
    /// SONiC on Tomahawk 5, at 400 Gbit/s.
    SonicTomahawk5,
    /// SONiC's queues that may drop, at 100 Gbit/s.
    SonicLossy,
    /// NVIDIA's Onyx and Cumulus with `roce`.
    Onyx,
    /// Cisco's blueprint for Nexus 9300, at 100 and 400 Gbit/s.
    Cisco,
    /// Microsoft's Azure Local, at 25 Gbit/s.
    AzureLocal,
    /// AMD's guide for Arista switches, at 200 Gbit/s.
    AristaAmd,
    /// Cerebras's Arista leaves, at 100, 400 and 800 Gbit/s.
    Cerebras,
}

/// Where the queues of ports of some rates are marked.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// Rates in Gbit/s; none for all.
    pub gbps: &'static [u32],
    /// Lower threshold in bytes, of ports of the first rate where they are in proportion to it.
    pub min: u64,
    /// Upper threshold.
    pub max: u64,
    /// Probability at the upper one.
    pub p: f64,
}

impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = (Bytes::new(self.min), Bytes::new(self.max));
        write!(f, "{min} to {max}, {}%", (self.p * 1e4).round() / 100.0)?;
        match self.gbps.first() {
            Some(gbps) => write!(f, " at {gbps}Gbps"),
            None => Ok(()),
        }
    }
}

/// What is published of a profile.
#[derive(Clone, Debug)]
pub struct Published {
    /// Thresholds; those of one entry are in proportion to the rate where `is_scaled`.
    pub marks: Vec<Marks>,
    /// Its source scales them with the rate.
    pub is_scaled: bool,
    /// The source.
    pub source: &'static str,
}

/// Rates of Ethernet's ports, beginning with that for which HPCC's simulator has its thresholds.
const FROM_25G: &[u32] = &[25, 1, 10, 40, 50, 100, 200, 400, 800];
const FROM_10G: &[u32] = &[10, 1, 25, 40, 50, 100, 200, 400, 800];

fn red(gbps: &'static [u32], min: u64, max: u64, p: f64) -> Marks {
    Marks { gbps, min, max, p }
}

impl SwitchProfile {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::DctcpPaper,
        Self::DcqcnPaper,
        Self::HpccDctcp,
        Self::HpccDcqcn,
        Self::Sonic,
        Self::SonicTomahawk,
        Self::SonicTomahawk2,
        Self::SonicTomahawk5,
        Self::SonicLossy,
        Self::Onyx,
        Self::Cisco,
        Self::AzureLocal,
        Self::AristaAmd,
        Self::Cerebras,
    ];

    /// What is published of it.
    pub fn published(self) -> Published {
        let of = |marks: &[Marks], source| Published { marks: marks.to_vec(), is_scaled: false, source };
        match self {
            // 20 and 65 packets of 1,500 B.
            Self::DctcpPaper => {
                of(&[red(&[1], 30_000, 30_000, 1.0), red(&[10], 97_500, 97_500, 1.0)], "DCTCP, SIGCOMM 2010, section 4")
            }
            Self::DcqcnPaper => of(&[red(&[40], 5_000, 200_000, 0.01)], "DCQCN, SIGCOMM 2015, section 5"),
            Self::HpccDctcp => Published {
                marks: vec![red(FROM_10G, 30_000, 30_000, 1.0)],
                is_scaled: true,
                source: "alibaba-edu/High-Precision-Congestion-Control, simulation/run.py",
            },
            Self::HpccDcqcn => Published {
                marks: vec![red(FROM_25G, 100_000, 400_000, 0.2)],
                is_scaled: true,
                source: "alibaba-edu/High-Precision-Congestion-Control, simulation/run.py",
            },
            Self::Sonic => {
                of(&[red(&[], 1_048_576, 2_097_152, 0.05)], "sonic-buildimage, files/build_templates/qos_config.j2")
            }
            Self::SonicTomahawk => of(
                &[red(&[10, 25, 40, 50, 100], 250_000, 2_097_152, 0.05)],
                "sonic-buildimage, device/common/profiles/th",
            ),
            Self::SonicTomahawk2 => of(
                &[red(&[100, 400], 2_000_000, 10_000_000, 0.05)],
                "sonic-buildimage, device/common/profiles/th2/7260",
            ),
            Self::SonicTomahawk5 => {
                of(&[red(&[400], 131_072, 262_144, 0.05)], "sonic-buildimage, arista_7060x6, WRED_LOSSLESS_Q3")
            }
            Self::SonicLossy => of(&[red(&[100], 166_912, 282_624, 0.05)], "sonic-buildimage, pull request 25626, ToR"),
            Self::Onyx => of(&[red(&[], 150_000, 1_500_000, 1.0)], "NVIDIA Onyx 3.10, RoCE commands"),
            Self::Cisco => of(
                &[red(&[100, 400], 150_000, 3_000_000, 0.07)],
                "Cisco's blueprint for AI networks, as repeated in public configurations",
            ),
            Self::AzureLocal => {
                of(&[red(&[25], 300_000, 300_000, 1.0)], "Microsoft Azure Local, switch reference for NX-OS")
            }
            // 2,000 and 10,000 segments, of 254 B as Habana's guide has it.
            Self::AristaAmd => of(
                &[red(&[200], 508_000, 2_540_000, 0.2)],
                "AMD, GPU cluster networking guide, in segments; their size from Habana's",
            ),
            Self::Cerebras => of(
                &[red(&[100], 222_000, 2_000_000, 0.01), red(&[400, 800], 890_000, 8_000_000, 0.01)],
                "Cerebras deployment_manager, network_config/configs/switch.py",
            ),
        }
    }

    /// As `switch.ecn` has it.
    pub fn ecn(self) -> Ecn {
        let Published { marks, is_scaled, .. } = self.published();
        if let [Marks { gbps: [], min, max, p }] = marks[..] {
            return Ecn::Red { min: Size::Bytes(min), max: Size::Bytes(max), p };
        }
        let at_rate = |marks: &Marks, gbps: u32| {
            let size = |bytes: u64| match is_scaled {
                true => bytes * u64::from(gbps) / u64::from(marks.gbps[0]),
                false => bytes,
            };
            let (min, max) = (Size::Bytes(size(marks.min)), Size::Bytes(size(marks.max)));
            RedAtRate { rate: Rate::from_gbps(gbps.into()), min, max, p: marks.p }
        };
        let rates = marks.iter().flat_map(|marks| marks.gbps.iter().map(move |gbps| at_rate(marks, *gbps)));
        let mut rates: Vec<RedAtRate> = rates.collect();
        rates.sort_by_key(|red| red.rate);
        Ecn::RedByRate { rates }
    }

    /// The same as TOML.
    pub fn written(self) -> String {
        let red = |min: Size, max: Size, p: f64| format!("min = \"{min}\", max = \"{max}\", p = {p:?}");
        match self.ecn() {
            Ecn::Red { min, max, p } => format!("{{ kind = \"red\", {} }}", red(min, max, p)),
            Ecn::RedByRate { rates } => {
                let all = rates.iter().map(|at| format!("{{ rate = \"{}\", {} }}", at.rate, red(at.min, at.max, at.p)));
                format!("{{ kind = \"red-by-rate\", rates = [{}] }}", all.collect::<Vec<_>>().join(", "))
            }
            Ecn::Off | Ecn::Step { .. } => String::from("\"off\""),
        }
    }

    /// Its name in a scenario.
    pub fn name(self) -> String {
        toml::Value::try_from(self).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_there_and_thresholds_are_in_order() {
        let schema = schemars::schema_for!(SwitchProfile);
        assert_eq!(schema.as_value()["oneOf"].as_array().map(Vec::len), Some(SwitchProfile::ALL.len()));
        for profile in SwitchProfile::ALL {
            let published = profile.published();
            assert!(published.marks.iter().all(|marks| marks.min <= marks.max && marks.p > 0.0 && marks.p <= 1.0));
            assert!(!published.is_scaled || published.marks.len() == 1, "{}", profile.name());
        }
    }

    #[test]
    fn hpcc_s_are_in_proportion_to_the_rate() {
        let Ecn::RedByRate { rates } = SwitchProfile::HpccDcqcn.ecn() else { panic!("by rate") };
        let of = |gbps| rates.iter().find(|red| red.rate == Rate::from_gbps(gbps)).map(|red| (red.min, red.max));
        // As its config_doc.txt has them.
        assert_eq!(of(100), Some((Size::Bytes(400_000), Size::Bytes(1_600_000))));
        assert_eq!(of(400), Some((Size::Bytes(1_600_000), Size::Bytes(6_400_000))));
        let Ecn::RedByRate { rates } = SwitchProfile::HpccDctcp.ecn() else { panic!("by rate") };
        assert!(rates.iter().any(|red| red.rate == Rate::from_gbps(25) && red.min == Size::Bytes(75_000)));
    }
}
