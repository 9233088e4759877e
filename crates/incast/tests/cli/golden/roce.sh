#!/bin/sh
# Scenario roce, scheme dcqcn: written by incast config.
# NVIDIA NICs with MLNX_OFED or DOCA; not tried on a device. Until the next start only: mlxconfig has the same numbers as RPG_TIME_RESET_P1 and so on.
# usage: roce.sh INTERFACE...
set -eu

[ $# -gt 0 ] || { echo "usage: roce.sh INTERFACE..." >&2; exit 2; }
for interface in "$@"; do
    ecn=/sys/class/net/$interface/ecn
    [ -d "$ecn" ] || { echo "roce.sh: $interface: there is no $ecn" >&2; exit 1; }
    mlnx_qos -i "$interface" --trust dscp --pfc 0,0,0,1,0,0,0,0
    # Data of connections: DSCP 26, ECN-capable.
    for device in /sys/class/net/"$interface"/device/infiniband/*; do
        cma_roce_tos -d "$(basename "$device")" -t 106
    done
    echo 1019 >"$ecn/roce_rp/dce_tcp_g"    # gain = 0.0048828125
    echo 1023 >"$ecn/roce_rp/initial_alpha_value"    # initial_alpha = 0.9990234375
    echo 1 >"$ecn/roce_rp/dce_tcp_rtt"    # alpha_timer = "1us"
    echo 300 >"$ecn/roce_rp/rpg_time_reset"    # increase_timer = "300us"
    echo 4 >"$ecn/roce_rp/rate_reduce_monitor_period"    # decrease_timer = "4us"
    echo 4 >"$ecn/roce_np/min_time_between_cnps"    # cnp_interval = "4us"
    echo 32767 >"$ecn/roce_rp/rpg_byte_reset"    # byte_counter = "2097.088KB"
    echo 1 >"$ecn/roce_rp/rpg_threshold"    # fast_recovery = 1
    echo 0 >"$ecn/roce_rp/rate_to_set_on_first_cnp"    # rate_on_first_cnp = 1
    echo 5 >"$ecn/roce_rp/rpg_ai_rate"    # additive_increase = "5Mbps"
    echo 50 >"$ecn/roce_rp/rpg_hai_rate"    # hyper_increase = "50Mbps"
    echo 1 >"$ecn/roce_rp/rpg_min_rate"    # min_rate = "1Mbps"
    echo 0 >"$ecn/roce_rp/clamp_tgt_rate"    # clamp_target
    echo 1 >"$ecn/roce_rp/clamp_tgt_rate_after_time_inc"    # clamp_target
    echo 11 >"$ecn/roce_rp/rpg_gd"    # cuts of alpha / 2, up to line rate
    echo 50 >"$ecn/roce_rp/rpg_min_dec_fac"    # cuts of alpha / 2, up to line rate
    echo 0 >"$ecn/roce_rp/rpg_max_rate"    # cuts of alpha / 2, up to line rate
    # Notifications.
    echo 48 >"$ecn/roce_np/cnp_dscp"
    echo 6 >"$ecn/roce_np/cnp_802p_prio"
    for part in roce_rp roce_np; do echo 1 >"$ecn/$part/enable/3"; done
done
