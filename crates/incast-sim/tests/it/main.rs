//! Tests of the simulator on whole fabrics. One program, which takes half of the time to compile that one for each file takes.

#[path = "../common/mod.rs"]
mod common;

mod agents;
mod answers;
mod applications;
mod bbr;
mod credits;
mod dasr;
mod dcqcn;
mod dctcp;
mod dctcp_rate;
mod determinism;
mod homa;
mod hooks;
mod host_profile;
mod hpcc;
mod ibcc;
mod idle_fct;
mod iofd;
mod livelock;
mod lossless;
mod marimo;
mod mercury;
mod ndp;
mod nic;
mod onramp;
mod pacc;
mod pfc;
mod phost;
mod polo;
mod queueing;
mod rcp;
mod receiver_driven;
mod reference_simulator;
mod reliability;
mod scale;
mod spraying;
mod swift;
mod tcd;
mod timely;
mod timers;
mod trimming;
mod wire;
