//! Remote procedure calls in a closed loop: clients wait for responses before they send the next request.
//!
//! A request is a flow of the class `<class>-request` that opens a group of its own; the server answers it with a
//! flow of the class itself in the same group. The group's completion is the call's.

use super::{
    Expected, Generate,
    distribution::Distribution,
    streams::{Purpose, stream},
};
use incast_cc::law::SizeClass;
use incast_sim::{
    FlowSpec,
    application::{Application, FlowInfo},
    engine::random::Stream,
};
use incast_units::Time;
use std::sync::Arc;

/// Clients and servers.
#[derive(Clone, Debug)]
pub struct Rpc {
    /// Class index of requests.
    pub request_class: u16,
    /// Class index of responses.
    pub response_class: u16,
    /// Class name, for the random streams.
    pub name: String,
    /// Hosts that send requests.
    pub clients: Vec<u32>,
    /// Hosts that answer.
    pub servers: Vec<u32>,
    /// Open requests of a client.
    pub outstanding: u32,
    /// Sizes of requests.
    pub request: Distribution,
    /// Sizes of responses.
    pub response: Distribution,
    /// Mean pause before a request.
    pub think: Time,
    /// No requests from this time on.
    pub duration: Time,
    /// Calls to expect, for the estimate of the cost.
    pub calls: f64,
}

/// An [`Rpc`] at one host.
#[derive(Clone, Debug)]
struct Host {
    rpc: Arc<Rpc>,
    seed: u64,
    /// Draws of the client; `None` if the host is none.
    client: Option<Stream>,
    /// Servers other than this host.
    servers: Vec<u32>,
}

impl Host {
    fn ask(&mut self, now: Time, open: &mut dyn FnMut(FlowSpec)) {
        let Some(stream) = &mut self.client else { return };
        let pause = if self.rpc.think == Time::ZERO { 0.0 } else { stream.exponential(self.rpc.think.ps() as f64) };
        let server = self.servers[stream.below(self.servers.len() as u64) as usize];
        let bytes = self.rpc.request.sample(stream);
        let start = now.saturating_add(Time::from_ps(pause.round() as u64));
        if start < self.rpc.duration {
            open(FlowSpec {
                start,
                source: 0,
                destination: server,
                bytes,
                class: self.rpc.request_class,
                request: FlowSpec::OWN_REQUEST,
                pinned: None,
            });
        }
    }
}

impl Application for Host {
    fn on_start(&mut self, open: &mut dyn FnMut(FlowSpec)) {
        for _ in 0..self.rpc.outstanding {
            self.ask(Time::ZERO, open);
        }
    }

    fn on_received(&mut self, now: Time, flow: &FlowInfo, open: &mut dyn FnMut(FlowSpec)) {
        if flow.class == self.rpc.request_class {
            // The size depends on the request's flow, not on the order in which requests arrive. Where a client opens
            // no other flows, the flow's number is the call's, and every scheme draws the same sizes; where it does
            // (other workloads, or a client that also serves), numbers interleave differently from scheme to scheme.
            let call = u64::from(flow.source) << 32 | u64::from(flow.sequence);
            let bytes = self.rpc.response.sample(&mut stream(self.seed, Purpose::RpcServer, &self.rpc.name, call));
            open(FlowSpec {
                start: now,
                source: 0,
                destination: flow.source,
                bytes,
                class: self.rpc.response_class,
                request: call,
                pinned: None,
            });
        } else if flow.class == self.rpc.response_class {
            self.ask(now, open);
        }
    }

    fn on_acked(&mut self, _now: Time, _flow: &FlowInfo, _open: &mut dyn FnMut(FlowSpec)) {}
}

/// Several applications on one host; each gets all events and reacts to those of its own classes.
#[derive(Debug)]
pub struct Several(pub Vec<Box<dyn Application>>);

impl Application for Several {
    fn on_start(&mut self, open: &mut dyn FnMut(FlowSpec)) {
        self.0.iter_mut().for_each(|application| application.on_start(open));
    }
    fn on_received(&mut self, now: Time, flow: &FlowInfo, open: &mut dyn FnMut(FlowSpec)) {
        self.0.iter_mut().for_each(|application| application.on_received(now, flow, open));
    }
    fn on_acked(&mut self, now: Time, flow: &FlowInfo, open: &mut dyn FnMut(FlowSpec)) {
        self.0.iter_mut().for_each(|application| application.on_acked(now, flow, open));
    }
}

impl Generate for Rpc {
    fn flows(&self, _seed: u64, _flows: &mut Vec<FlowSpec>) {}

    fn expected(&self) -> Expected {
        let bytes = self.calls * (self.request.mean() + self.response.mean());
        Expected {
            flows: 2.0 * self.calls,
            bytes,
            sources: (self.clients.len() + self.servers.len()) as f64,
            // A call has one of its two flows at a time.
            open: self.clients.len() as f64 * f64::from(self.outstanding),
        }
    }

    fn describe(&self) -> String {
        format!(
            "{}: {} clients × {} outstanding to {} servers; mean request {:.0} B, mean response {:.0} B, pause {}; a \
             closed loop, so that schemes have different flows",
            self.name,
            self.clients.len(),
            self.outstanding,
            self.servers.len(),
            self.request.mean(),
            self.response.mean(),
            self.think
        )
    }

    fn application(&self, seed: u64, host: u32) -> Option<Box<dyn Application>> {
        let servers: Vec<u32> = self.servers.iter().copied().filter(|server| *server != host).collect();
        let asks = self.clients.contains(&host) && !servers.is_empty();
        if !asks && !self.servers.contains(&host) {
            return None;
        }
        let client = asks.then(|| stream(seed, Purpose::RpcClient, &self.name, u64::from(host)));
        Some(Box::new(Host { rpc: Arc::new(self.clone()), seed, client, servers }))
    }

    /// That of the first flow of each.
    fn request_class(&self) -> Option<u16> {
        Some(self.request_class)
    }

    fn size_range(&self) -> Option<(u64, u64)> {
        let ((smallest, largest), (least, most)) = (self.request.range(), self.response.range());
        Some((smallest.min(least), largest.max(most)))
    }

    fn sizes(&self) -> Vec<(u16, SizeClass)> {
        let both = [(self.request_class, &self.request), (self.response_class, &self.response)];
        let spread =
            |(class, sizes): (u16, &Distribution)| sizes.spread(self.calls).into_iter().map(move |size| (class, size));
        both.into_iter().flat_map(spread).collect()
    }

    fn starts(&self) -> (u64, u64) {
        (0, self.duration.ps().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rpc() -> Rpc {
        Rpc {
            request_class: 1,
            response_class: 0,
            name: "kv".into(),
            clients: vec![0, 1],
            servers: vec![1, 2],
            outstanding: 3,
            request: Distribution::Fixed(64),
            response: Distribution::Lognormal { mu: 8.0, sigma: 1.0, max: 1 << 20 },
            think: Time::from_us(5),
            duration: Time::from_ms(1),
            calls: 0.0,
        }
    }

    fn collect(run: impl FnOnce(&mut dyn FnMut(FlowSpec))) -> Vec<FlowSpec> {
        let mut flows = Vec::new();
        run(&mut |flow| flows.push(flow));
        flows
    }

    #[test]
    fn a_call_goes_there_and_back_and_the_next_follows() {
        let mut client = rpc().application(1, 0).expect("a client");
        let mut server = rpc().application(1, 2).expect("a server");
        let opened = collect(|open| client.on_start(open));
        assert_eq!(opened.len(), 3);
        assert!(
            opened.iter().all(|flow| flow.destination != 0 && flow.request == FlowSpec::OWN_REQUEST && flow.class == 1)
        );
        assert!(collect(|open| server.on_start(open)).is_empty());
        let request = FlowInfo { source: 0, sequence: 5, destination: 2, class: 1, bytes: 64 };
        let answer = collect(|open| server.on_received(Time::from_us(9), &request, open));
        let again = collect(|open| server.on_received(Time::from_us(70), &request, open));
        assert_eq!((answer[0].destination, answer[0].class, answer[0].request), (0, 0, 5));
        assert_eq!(answer[0].bytes, again[0].bytes, "the size belongs to the request");
        let response = FlowInfo { source: 2, sequence: 0, destination: 0, class: 0, bytes: answer[0].bytes };
        let next = collect(|open| client.on_received(Time::from_us(20), &response, open));
        assert!(next.len() == 1 && next[0].start >= Time::from_us(20));
        assert!(collect(|open| client.on_received(Time::from_ms(1), &response, open)).is_empty(), "after the end");
        let other = FlowInfo { class: 7, ..response };
        assert!(collect(|open| client.on_received(Time::from_us(20), &other, open)).is_empty());
        assert!(rpc().application(1, 9).is_none());
    }
}
