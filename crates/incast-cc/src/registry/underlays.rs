//! Every underlay.

#[cfg(any(test, feature = "testing"))]
use crate::testing::constant_hold::ConstantHold;
use crate::{
    Path,
    parameters::{Condition, ParameterError, Raw},
    underlay::{Arrangement, Head, UnderlayInfo, UnderlayStage},
};
use incast_units::Time;

/// Makes [`Underlay`] (state) and [`UnderlayParameters`] (resolved parameters) of the list.
macro_rules! underlays {
    (
        window $window:tt rate $rate:tt receiver_driven $driven:tt switch $switch:tt
        underlay { $($module:ident::$stage:ident,)* }
    ) => {
        $(use crate::underlay::$module::$stage;)*

        /// Every underlay by name, for listings.
        pub const UNDERLAYS: &[UnderlayInfo] = &[$(<$stage as UnderlayStage>::INFO,)*];

        /// Some underlay's parameters, resolved for a fabric.
        #[derive(Clone, Debug, Default)]
        pub enum UnderlayParameters {
            /// Packets pass untouched.
            #[default]
            None,
            /// For tests: see [`ConstantHold`].
            #[cfg(any(test, feature = "testing"))]
            ConstantHold(<ConstantHold as UnderlayStage>::Parameters),
            $(#[doc = concat!("Of [`", stringify!($stage), "`].")] $stage(<$stage as UnderlayStage>::Parameters),)*
        }

        /// The state of some underlay.
        #[derive(Clone, Debug)]
        pub enum Underlay {
            /// For tests: see [`ConstantHold`].
            #[cfg(any(test, feature = "testing"))]
            ConstantHold(ConstantHold),
            $(#[doc = concat!("[`", stringify!($stage), "`].")] $stage($stage),)*
        }

        impl UnderlayParameters {
            /// Resolves the parameters of the underlay called `name`; `None` if there is no such underlay.
            ///
            /// # Errors
            /// An unknown parameter, a wrong kind, or a value that is not allowed.
            pub fn resolve(name: &str, path: &Path, given: &[(String, Raw)]) -> Option<Result<Self, ParameterError>> {
                $(if name == <$stage as UnderlayStage>::INFO.name {
                    return Some(<$stage as UnderlayStage>::resolve(path, given).map(Self::$stage));
                })*
                None
            }

            /// There is no underlay.
            #[inline]
            pub fn is_none(&self) -> bool {
                matches!(self, Self::None)
            }

            /// What a listing has about the underlay.
            pub fn info(&self) -> Option<&'static UnderlayInfo> {
                match self {
                    Self::None => None,
                    #[cfg(any(test, feature = "testing"))]
                    Self::ConstantHold(_) => Some(&ConstantHold::INFO),
                    $(Self::$stage(_) => Some(&<$stage as UnderlayStage>::INFO),)*
                }
            }

            /// The effective values, as a scenario would write them.
            pub fn values(&self) -> Vec<(&'static str, Raw)> {
                match self {
                    Self::None => Vec::new(),
                    #[cfg(any(test, feature = "testing"))]
                    Self::ConstantHold(parameters) => ConstantHold::values(parameters),
                    $(Self::$stage(parameters) => <$stage as UnderlayStage>::values(parameters),)*
                }
            }

            /// See [`UnderlayStage::CONDITIONS`].
            pub fn conditions(&self) -> &'static [Condition] {
                match self {
                    Self::None => &[],
                    #[cfg(any(test, feature = "testing"))]
                    Self::ConstantHold(_) => ConstantHold::CONDITIONS,
                    $(Self::$stage(_) => <$stage as UnderlayStage>::CONDITIONS,)*
                }
            }

            /// See [`UnderlayStage::arrangement`].
            pub fn arrangement(&self) -> Option<Arrangement> {
                match self {
                    Self::None => None,
                    #[cfg(any(test, feature = "testing"))]
                    Self::ConstantHold(parameters) => Some(ConstantHold::arrangement(parameters)),
                    $(Self::$stage(parameters) => Some(<$stage as UnderlayStage>::arrangement(parameters)),)*
                }
            }

            /// State at `now`; `None` if there is no underlay.
            pub fn start(&self, path: &Path, longer: Time, now: Time) -> Option<Underlay> {
                match self {
                    Self::None => None,
                    #[cfg(any(test, feature = "testing"))]
                    Self::ConstantHold(parameters) => {
                        Some(Underlay::ConstantHold(ConstantHold::start(parameters, path, longer, now)))
                    }
                    $(Self::$stage(parameters) => {
                        Some(Underlay::$stage(<$stage as UnderlayStage>::start(parameters, path, longer, now)))
                    })*
                }
            }
        }

        impl Underlay {
            /// See [`UnderlayStage::release`].
            pub fn release(&mut self, now: Time, head: &Head) -> Time {
                match self {
                    #[cfg(any(test, feature = "testing"))]
                    Self::ConstantHold(stage) => stage.release(now, head),
                    $(Self::$stage(stage) => stage.release(now, head),)*
                }
            }

            /// See [`UnderlayStage::on_release`].
            pub fn on_release(&mut self, now: Time, head: &Head) {
                match self {
                    #[cfg(any(test, feature = "testing"))]
                    Self::ConstantHold(stage) => stage.on_release(now, head),
                    $(Self::$stage(stage) => stage.on_release(now, head),)*
                }
            }

            /// See [`UnderlayStage::on_report`].
            pub fn on_report(&mut self, now: Time, sent: Time, one_way_delay: i64) {
                match self {
                    #[cfg(any(test, feature = "testing"))]
                    Self::ConstantHold(stage) => stage.on_report(now, sent, one_way_delay),
                    $(Self::$stage(stage) => stage.on_report(now, sent, one_way_delay),)*
                }
            }
        }
    };
}
algorithms!(underlays);
