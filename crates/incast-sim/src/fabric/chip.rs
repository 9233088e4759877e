//! Switching chips: the buffer that they have, and the headroom that their vendors give lossless ports.
//!
//! Sources: buffer pools and `pg_profile_lookup.ini` of sonic-net/sonic-buildimage (`device/`), of August 2026; for
//! Spectrum the formula of sonic-swss, `cfgmgr/buffer_headroom_mellanox.lua`, with the quanta of IEEE 802.3, 31B.3.7.
//! Rates are the vendors'. A pool is what SONiC hands out, a little less than the chip's memory; headroom is part of it. Of
//! Tomahawk, Tomahawk 2 and Spectrum it is the egress pool.

use incast_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A switching chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Chip {
    /// Broadcom Trident 2: 1.28 Tbit/s, 12.8 MB.
    Trident2,
    /// Broadcom Tomahawk: 3.2 Tbit/s, 16.0 MB.
    Tomahawk,
    /// Broadcom Tomahawk 2: 6.4 Tbit/s, 42.3 MB.
    Tomahawk2,
    /// Broadcom Tomahawk 3: 12.8 Tbit/s, 66.4 MB.
    Tomahawk3,
    /// Broadcom Tomahawk 4: 25.6 Tbit/s, 113.6 MB.
    Tomahawk4,
    /// Broadcom Tomahawk 5: 51.2 Tbit/s, 162.5 MB.
    Tomahawk5,
    /// NVIDIA Spectrum: 3.2 Tbit/s, 13.9 MB.
    Spectrum,
    /// NVIDIA Spectrum-2: 6.4 Tbit/s, 34.3 MB.
    #[serde(rename = "spectrum-2")]
    Spectrum2,
    /// NVIDIA Spectrum-3: 12.8 Tbit/s, 60.8 MB.
    #[serde(rename = "spectrum-3")]
    Spectrum3,
    /// NVIDIA Spectrum-4: 51.2 Tbit/s, 158.2 MB.
    #[serde(rename = "spectrum-4")]
    Spectrum4,
}

/// What is known of a chip.
struct Facts {
    chip: Chip,
    name: &'static str,
    gbps: u64,
    pool: u64,
    headroom: Shipped,
}

/// How its headroom is found.
enum Shipped {
    /// By port rate in Gbit/s, for cables of each of [`CABLES`].
    Table(&'static [(u64, [u64; 3])]),
    /// NVIDIA's formula.
    Formula {
        /// Bytes of a cell of the buffer.
        cell: u64,
        /// Whether the newer form is used, with the response time of each rate, whole cells and a tile's delay.
        by_rate: bool,
        /// Gbit/s of its fastest ports.
        fastest: u64,
    },
}

/// Metres of the cables that the tables have.
const CABLES: [u64; 3] = [5, 40, 300];

/// Metres a second in a cable, as NVIDIA's formula has it.
const SPEED: u128 = 198_000_000;

/// SONiC's defaults: the MTU of ports, and that of lossless traffic.
const PORT_MTU: f64 = 9_100.0;
const LOSSLESS_MTU: f64 = 1_024.0;

/// Bytes of a port's MAC and PHY, and those for a neighbour's response where no quanta are given.
const MAC_PHY: f64 = 0.8 * 1_024.0;
const RESPONSE: f64 = 3.8 * 1_024.0;

const fn table(rows: &'static [(u64, [u64; 3])]) -> Shipped {
    Shipped::Table(rows)
}

const FACTS: &[Facts] = &[
    Facts {
        chip: Chip::Trident2,
        name: "trident2",
        gbps: 1_280,
        pool: 12_766_208,
        headroom: table(&[(100, [47_216, 52_624, 91_728])]),
    },
    Facts {
        chip: Chip::Tomahawk,
        name: "tomahawk",
        gbps: 3_200,
        pool: 15_982_720,
        headroom: table(&[(100, [165_568, 177_632, 268_736])]),
    },
    Facts {
        chip: Chip::Tomahawk2,
        name: "tomahawk2",
        gbps: 6_400,
        pool: 42_349_632,
        headroom: table(&[(100, [54_080, 59_696, 101_088])]),
    },
    Facts {
        chip: Chip::Tomahawk3,
        name: "tomahawk3",
        gbps: 12_800,
        pool: 66_394_076,
        headroom: table(&[(100, [68_580, 74_422, 117_348]), (400, [178_562, 201_930, 373_888])]),
    },
    Facts {
        chip: Chip::Tomahawk4,
        name: "tomahawk4",
        gbps: 25_600,
        pool: 113_620_296,
        headroom: table(&[(100, [129_032, 142_240, 240_538]), (400, [371_348, 424_434, 817_372])]),
    },
    Facts {
        chip: Chip::Tomahawk5,
        name: "tomahawk5",
        gbps: 51_200,
        pool: 162_539_680,
        headroom: table(&[
            (100, [147_066, 160_274, 258_572]),
            (400, [393_192, 446_024, 839_216]),
            (800, [729_488, 835_406, 1_621_536]),
        ]),
    },
    Facts {
        chip: Chip::Spectrum,
        name: "spectrum",
        gbps: 3_200,
        pool: 13_900_000,
        headroom: Shipped::Formula { cell: 96, by_rate: false, fastest: 100 },
    },
    Facts {
        chip: Chip::Spectrum2,
        name: "spectrum-2",
        gbps: 6_400,
        pool: 34_300_000,
        headroom: Shipped::Formula { cell: 144, by_rate: false, fastest: 200 },
    },
    Facts {
        chip: Chip::Spectrum3,
        name: "spectrum-3",
        gbps: 12_800,
        pool: 60_800_000,
        headroom: Shipped::Formula { cell: 144, by_rate: false, fastest: 400 },
    },
    Facts {
        chip: Chip::Spectrum4,
        name: "spectrum-4",
        gbps: 51_200,
        pool: 158_229_504,
        headroom: Shipped::Formula { cell: 192, by_rate: true, fastest: 800 },
    },
];

impl Chip {
    fn facts(self) -> &'static Facts {
        // Every chip has a row: a test looks.
        FACTS.iter().find(|facts| facts.chip == self).unwrap_or(&FACTS[0])
    }

    /// Bytes that ports share.
    pub fn pool(self) -> u64 {
        self.facts().pool
    }

    /// The sum of the rates of its ports at most.
    pub fn rate(self) -> Rate {
        Rate::from_gbps(self.facts().gbps)
    }

    /// The headroom of a port and lossless priority in bytes, as SONiC ships it for cables of that delay or the next
    /// longer ones of its table, or as NVIDIA computes it.
    ///
    /// # Errors
    /// What is allowed, where no headroom is shipped for a rate or a cable.
    pub fn headroom(self, rate: Rate, delay: Time) -> Result<u64, String> {
        let facts = self.facts();
        match facts.headroom {
            Shipped::Formula { cell, by_rate, fastest } if rate <= Rate::from_gbps(fastest) => {
                Ok(nvidia(cell, by_rate, rate, delay))
            }
            Shipped::Formula { fastest, .. } => {
                Err(format!("it has no ports of {rate}, allowed is {fastest}Gbps at most"))
            }
            Shipped::Table(rows) => {
                let row = rows.iter().find(|(gbps, _)| Rate::from_gbps(*gbps) == rate);
                let (_, sizes) = row.ok_or_else(|| {
                    let rates: Vec<String> = rows.iter().map(|(gbps, _)| format!("{gbps}Gbps")).collect();
                    format!("no headroom is shipped for ports of {rate}, allowed is {}", rates.join(", "))
                })?;
                // A cable's delay in picoseconds times metres a second.
                let is_enough =
                    |metres: &u64| u128::from(*metres) * 1_000_000_000_000 >= u128::from(delay.ps()) * SPEED;
                let index = CABLES.iter().position(is_enough).ok_or_else(|| {
                    let longest = CABLES[CABLES.len() - 1];
                    let most = Time::from_ps((u128::from(longest) * 1_000_000_000_000 / SPEED) as u64);
                    format!("no headroom is shipped for cables of {delay}, allowed is {longest} m at most, {most}")
                })?;
                Ok(sizes[index])
            }
        }
    }
}

/// NVIDIA's formula, without gearbox, for traffic that is small packets only.
fn nvidia(cell: u64, by_rate: bool, rate: Rate, delay: Time) -> u64 {
    let mbps = rate.as_f64() / 1e6;
    let cable = 2.0 * delay.as_secs_f64() * rate.as_f64() / 8.0;
    // Pause quanta of 64 bytes in which a neighbour must have stopped.
    let quanta = match mbps as u64 {
        10_000 => Some(67),
        25_000 => Some(80),
        40_000 => Some(118),
        50_000 => Some(147),
        100_000 => Some(394),
        200_000 => Some(453),
        400_000 | 800_000 => Some(905),
        _ => None,
    };
    let response = quanta.filter(|_| by_rate).map_or(RESPONSE, |quanta: u32| 64.0 * f64::from(quanta));
    let tile = if by_rate { mbps / 1_000.0 * 15.0 } else { 0.0 };
    let arriving = PORT_MTU + cable + MAC_PHY + response + tile;
    // Cells that packets of 64 bytes take, in bytes, for each of theirs.
    let cell = cell as f64;
    let worst = match (cell > 128.0, by_rate) {
        (true, true) => (cell / 64.0).ceil(),
        (true, false) => cell / 64.0,
        (false, true) => (2.0 * cell / (1.0 + cell)).ceil(),
        (false, false) => 2.0 * cell / (1.0 + cell),
    };
    ((LOSSLESS_MTU + arriving * worst) / 1_024.0).ceil() as u64 * 1_024
}

impl fmt::Display for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().name)
    }
}

impl FromStr for Chip {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        FACTS.iter().find(|facts| facts.name == text).map(|facts| facts.chip).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metres(metres: u64) -> Time {
        Time::from_ps((u128::from(metres) * 1_000_000_000_000 / SPEED) as u64)
    }

    fn of(chip: &str, gbps: u64, cable: u64) -> Result<u64, String> {
        chip.parse::<Chip>().expect("a chip").headroom(Rate::from_gbps(gbps), metres(cable))
    }

    #[test]
    fn every_chip_has_its_facts() {
        for (index, facts) in FACTS.iter().enumerate() {
            assert_eq!(facts.chip as usize, index);
            let name = serde_json::to_value(facts.chip).expect("a name");
            assert_eq!((name.as_str(), facts.chip.to_string().parse()), (Some(facts.name), Ok(facts.chip)));
        }
    }

    /// Values of the tables that SONiC ships for NVIDIA's switches, which come from the formula, and by how many KiB it is
    /// below them.
    #[test]
    fn the_formula_gives_what_is_shipped() {
        for (chip, gbps, sizes, below) in [
            ("spectrum", 100, [30_720, 38_912, 104_448], [1, 0, 1]),
            ("spectrum-2", 100, [33_792, 44_032, 117_760], [0, 0, 0]),
            ("spectrum-3", 100, [33_792, 44_032, 117_760], [0, 0, 0]),
            ("spectrum-3", 400, [38_912, 77_824, 373_760], [1, 0, 0]),
            ("spectrum-4", 100, [113_664, 126_976, 225_280], [0, 0, 0]),
            ("spectrum-4", 400, [231_424, 283_648, 677_888], [1, 0, 0]),
            ("spectrum-4", 800, [257_024, 362_496, 1_150_976], [1, 0, 1]),
        ] {
            for ((cable, size), below) in CABLES.into_iter().zip(sizes).zip(below) {
                assert_eq!(of(chip, gbps, cable), Ok(size - 1_024 * below), "{chip} {gbps} {cable}");
            }
        }
        assert!(of("spectrum", 400, 5).is_err_and(|what| what.contains("100Gbps at most")));
    }

    #[test]
    fn tables_are_those_that_are_shipped() {
        for (chip, gbps, sizes) in [
            ("trident2", 100, [47_216, 52_624, 91_728]),
            ("tomahawk", 100, [165_568, 177_632, 268_736]),
            ("tomahawk2", 100, [54_080, 59_696, 101_088]),
            ("tomahawk3", 400, [178_562, 201_930, 373_888]),
            ("tomahawk4", 100, [129_032, 142_240, 240_538]),
            ("tomahawk5", 800, [729_488, 835_406, 1_621_536]),
        ] {
            assert_eq!(CABLES.map(|cable| of(chip, gbps, cable)), sizes.map(Ok), "{chip}");
        }
    }

    #[test]
    fn a_table_has_its_rates_and_cables_only() {
        assert_eq!(of("tomahawk4", 400, 5), Ok(371_348));
        assert_eq!(of("tomahawk4", 400, 6), Ok(424_434));
        assert_eq!(of("tomahawk4", 400, 300), Ok(817_372));
        assert!(of("tomahawk4", 400, 301).is_err_and(|what| what.contains("300 m at most")));
        assert!(of("tomahawk4", 25, 5).is_err_and(|what| what.contains("allowed is 100Gbps, 400Gbps")));
    }
}
