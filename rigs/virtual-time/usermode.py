# SPDX-License-Identifier: MIT OR Apache-2.0
"""User-mode Linux, whose time is virtual, with the tree of this machine as its root."""

import functools

from boot import boot
from cache import digest_of
from errors import BadInput
from guest import guest
from kernel import kernel, module, module_stamp, probe


class UserMode:
    def __init__(self, arguments):
        self.arguments = arguments

    @functools.cached_property
    def build(self):
        return kernel(self.arguments.kasan)

    @functools.cached_property
    def tree(self):
        return guest()

    @property
    def name(self):
        return self.build.name

    def stamp(self):
        given = self.arguments.module
        return " ".join([self.name, digest_of([given]) if given else module_stamp(self.build), self.tree.name])

    def adapt(self, settings):
        settings["host_queue"] = "wire"
        if settings["onramp"] is not None:
            raise BadInput("onramp: expected --emulated, as user-mode Linux has no compiler for BPF, without which callbacks of maps "
                           "are refused")

    def binaries(self, with_marimo):
        found = {"tcp_marimo.ko": self.arguments.module or module(self.build)} if with_marimo else {}
        return {**found, "probe.ko": probe(self.build)} if self.arguments.probe else found

    def boot(self, texts, binaries, seed):
        return boot(self.build, self.tree, texts, binaries, seed, self.arguments.wall_limit, self.arguments.real_time,
                    self.arguments.keep)
