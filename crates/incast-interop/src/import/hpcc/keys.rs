//! The keys of `config.txt`: what each is here, and whose program reads it.
//!
//! A key that changes the model is read, or refused by name. Only names of files and what is recorded are ignored, and
//! keys that change nothing; both are named by the import.

/// Files of the peers that know a key.
const HPCC: &str = "alibaba-edu/High-Precision-Congestion-Control, simulation/scratch/third.cc";
const CONWEAVE: &str = "conweave-project/conweave-ns3, scratch/network-load-balance.cc";
const SIMAI: &str = "aliyun/SimAI, astra-sim-alibabacloud/astra-sim/network_frontend/ns3/common.h";

/// What a key is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Read, with the simulator's default; none where it must be given if the mode uses it.
    Read(Option<&'static str>),
    /// A table by link speed: `n`, then `n` pairs.
    Map,
    /// The path of a file, or what is recorded, how often and how long.
    Record,
    /// Changes nothing here, for this reason.
    Unused(&'static str),
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub role: Role,
    /// Repository and file of the program that reads it.
    pub source: &'static str,
}

impl Key {
    /// The row of a word, if it is a key.
    pub fn find(word: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == word)
    }

    /// Whether only ConWeave's program and what descends from it read the key.
    pub fn is_conweaves(&self) -> bool {
        self.source == CONWEAVE
    }

    /// How many of the words behind the key are its values, as the peer counts them.
    pub fn values(&self, behind: &[&str]) -> usize {
        let count = match self.role {
            Role::Map => behind.first().map_or(1, |word| {
                word.parse::<usize>().ok().and_then(|count| count.checked_mul(2)).map_or(1, |count| count + 1)
            }),
            _ if self.name == "LINK_DOWN" => 3,
            _ => 1,
        };
        count.min(behind.len())
    }
}

/// Names of all keys.
pub fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

const fn read(name: &'static str, default: &'static str, source: &'static str) -> Key {
    Key { name, role: Role::Read(Some(default)), source }
}

const fn needed(name: &'static str) -> Key {
    Key { name, role: Role::Read(None), source: HPCC }
}

const fn map(name: &'static str) -> Key {
    Key { name, role: Role::Map, source: HPCC }
}

const fn record(name: &'static str, source: &'static str) -> Key {
    Key { name, role: Role::Record, source }
}

const fn unused(name: &'static str, why: &'static str, source: &'static str) -> Key {
    Key { name, role: Role::Unused(why), source }
}

const PINT: &str = "only CC_MODE 10 uses it";
const LINKS: &str = "the topology has it for each link";
const WEAVE: &str = "only LB_MODE 9 uses it";

/// All keys.
pub const KEYS: &[Key] = &[
    needed("CC_MODE"),
    read("ENABLE_QCN", "1", HPCC),
    read("USE_DYNAMIC_PFC_THRESHOLD", "1", HPCC),
    read("PACKET_PAYLOAD_SIZE", "1000", HPCC),
    read("SIMULATOR_STOP_TIME", "3.01", HPCC),
    read("ALPHA_RESUME_INTERVAL", "55", HPCC),
    read("RATE_DECREASE_INTERVAL", "4", HPCC),
    read("CLAMP_TARGET_RATE", "0", HPCC),
    read("RP_TIMER", "1500", HPCC),
    read("EWMA_GAIN", "0.0625", HPCC),
    read("FAST_RECOVERY_TIMES", "5", HPCC),
    needed("RATE_AI"),
    needed("RATE_HAI"),
    read("MIN_RATE", "100Mb/s", HPCC),
    read("DCTCP_RATE_AI", "1000Mb/s", HPCC),
    read("ERROR_RATE_PER_LINK", "0", HPCC),
    read("L2_CHUNK_SIZE", "0", HPCC),
    read("L2_ACK_INTERVAL", "1", HPCC),
    read("L2_BACK_TO_ZERO", "0", HPCC),
    read("HAS_WIN", "1", HPCC),
    read("GLOBAL_T", "1", HPCC),
    read("VAR_WIN", "0", HPCC),
    read("FAST_REACT", "1", HPCC),
    read("U_TARGET", "0.95", HPCC),
    read("MI_THRESH", "5", HPCC),
    read("INT_MULTI", "1", HPCC),
    read("MULTI_RATE", "1", HPCC),
    read("SAMPLE_FEEDBACK", "0", HPCC),
    read("RATE_BOUND", "1", HPCC),
    read("ACK_HIGH_PRIO", "0", HPCC),
    read("LINK_DOWN", "0 0 0", HPCC),
    read("BUFFER_SIZE", "16", HPCC),
    map("KMIN_MAP"),
    map("KMAX_MAP"),
    map("PMAX_MAP"),
    read("ENABLE_PFC", "1", CONWEAVE),
    read("ENABLE_IRN", "0", CONWEAVE),
    read("LB_MODE", "0", CONWEAVE),
    read("FLOWGEN_START_TIME", "2", CONWEAVE),
    read("FLOWGEN_STOP_TIME", "2.5", CONWEAVE),
    record("TOPOLOGY_FILE", HPCC),
    record("FLOW_FILE", HPCC),
    record("TRACE_FILE", HPCC),
    record("TRACE_OUTPUT_FILE", HPCC),
    record("FCT_OUTPUT_FILE", HPCC),
    record("PFC_OUTPUT_FILE", HPCC),
    record("QLEN_MON_FILE", HPCC),
    record("QLEN_MON_START", HPCC),
    record("QLEN_MON_END", HPCC),
    record("ENABLE_TRACE", HPCC),
    record("FLOW_INPUT_FILE", CONWEAVE),
    record("CNP_OUTPUT_FILE", CONWEAVE),
    record("EST_ERROR_MON_FILE", CONWEAVE),
    record("VOQ_MON_FILE", CONWEAVE),
    record("VOQ_MON_DETAIL_FILE", CONWEAVE),
    record("UPLINK_MON_FILE", CONWEAVE),
    record("CONN_MON_FILE", CONWEAVE),
    record("SW_MONITORING_INTERVAL", CONWEAVE),
    record("BW_MON_FILE", SIMAI),
    record("RATE_MON_FILE", SIMAI),
    record("CNP_MON_FILE", SIMAI),
    record("MON_START", SIMAI),
    record("MON_END", SIMAI),
    record("QP_MON_INTERVAL", SIMAI),
    record("BW_MON_INTERVAL", SIMAI),
    record("QLEN_MON_INTERVAL", SIMAI),
    unused("PINT_LOG_BASE", PINT, HPCC),
    unused("PINT_PROB", PINT, HPCC),
    unused("PAUSE_TIME", "pauses last until they are ended", HPCC),
    unused("NIC_TOTAL_PAUSE_TIME", "the peer does not use it", SIMAI),
    unused("DATA_RATE", LINKS, HPCC),
    unused("LINK_DELAY", LINKS, HPCC),
    unused("LOAD", "the peer prints it only", CONWEAVE),
    unused("RANDOM_SEED", "runs here have the scenario's seeds", CONWEAVE),
    unused("CONWEAVE_TX_EXPIRY_TIME", WEAVE, CONWEAVE),
    unused("CONWEAVE_REPLY_TIMEOUT_EXTRA", WEAVE, CONWEAVE),
    unused("CONWEAVE_EXTRA_VOQ_FLUSH_TIME", WEAVE, CONWEAVE),
    unused("CONWEAVE_PATH_PAUSE_TIME", WEAVE, CONWEAVE),
    unused("CONWEAVE_DEFAULT_VOQ_WAITING_TIME", WEAVE, CONWEAVE),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_there_once_and_has_a_source() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..index].iter().all(|other| other.name != key.name), "{}", key.name);
            assert!(key.source.contains(", "), "{}", key.name);
        }
    }

    #[test]
    fn values_are_as_many_as_the_peer_reads() {
        let values = |key: &str, behind: &str| {
            let behind: Vec<&str> = behind.split_whitespace().collect();
            Key::find(key).expect("a key").values(&behind)
        };
        assert_eq!(values("CC_MODE", "3 {1: DCQCN}"), 1);
        assert_eq!(values("CC_MODE", ""), 0);
        assert_eq!(values("LINK_DOWN", "0 0 0 {time A B}"), 3);
        assert_eq!(values("KMAX_MAP", "1 100000000000 1600 {n pairs}"), 3);
        assert_eq!(values("KMAX_MAP", "2 100000000000 1600"), 3);
        assert_eq!(values("KMAX_MAP", "18446744073709551615 1"), 1);
        assert_eq!(values("KMAX_MAP", "x 1 2"), 1);
    }
}
