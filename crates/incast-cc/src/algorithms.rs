//! The list of all algorithms. An algorithm is its file or folder and its line here.

/// Calls the macro `$then` with `$arguments` and the list. The algorithm `some_name::SomeName` is in `some_name.rs` or
/// `some_name/mod.rs` of its family's folder.
macro_rules! algorithms {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            window {
                dctcp::Dctcp,
                cubic::Cubic,
                bbr::Bbr,
                bbr3::Bbr3,
                swift::Swift,
                constant_window::ConstantWindow,
                marimo::Marimo,
            }
            rate {
                dctcp_rate::DctcpRate,
                timely::Timely,
                dcqcn::Dcqcn,
                hpcc::Hpcc,
                ibcc::Ibcc,
                rcp::Rcp,
                constant_rate::ConstantRate,
            }
            receiver_driven {
                credit::Credit,
                dasr::Dasr,
                ndp::Ndp,
                polo::Polo,
                homa::Homa,
                phost::Phost,
            }
            switch {
                ibcc::Ibcc,
                iofd::Iofd,
                mercury::Mercury,
                pacc::Pacc,
                rcp::Rcp,
                tcd::Tcd,
            }
            underlay {
                onramp::OnRamp,
            }
        }
    };
}

/// Declares the modules of one family of the list: `modules!(FAMILY)` in its `mod.rs`.
macro_rules! modules {
    (@ window, window { $($module:ident::$type:ident,)* } $($rest:tt)*) => { $(pub mod $module;)* };
    (@ rate, rate { $($module:ident::$type:ident,)* } $($rest:tt)*) => { $(pub mod $module;)* };
    (@ receiver_driven, receiver_driven { $($module:ident::$type:ident,)* } $($rest:tt)*) => { $(pub mod $module;)* };
    (@ switch, switch { $($module:ident::$type:ident,)* } $($rest:tt)*) => { $(pub mod $module;)* };
    (@ underlay, underlay { $($module:ident::$type:ident,)* } $($rest:tt)*) => { $(pub mod $module;)* };
    (@ $wanted:ident, $other:ident { $($skipped:tt)* } $($rest:tt)*) => { modules! { @ $wanted, $($rest)* } };
    ($family:ident) => { algorithms! { modules @ $family, } };
}
