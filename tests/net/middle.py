# SPDX-License-Identifier: BSD-3-Clause
"""middle.py - two hosts with somebody in the middle: each is a network namespace, linked with one that poses as the
other host. A proxy with a foot in both of these carries every connection, and may change what goes by."""
import ctypes
import os
import selectors
import socket
import subprocess

from hosts import Hosts, ip

FIRST, LAST = 40000, 40039  # ports that hosts listen at, so that the proxy can be there in time
CLONE_NEWNET = 0x40000000


class Way:
    """What goes one way of a connection: `meddle(way, bytes)` returns what goes on, None to end it."""

    def __init__(self, number, back, meddle):
        self.number, self.back, self.meddle = number, back, meddle
        self.carried = 0
        self.waiting = b""
        self.over = False


class Middle(Hosts):
    """Hosts 0 and 1. Call carry() while ranks run."""

    def __init__(self, meddle):
        super().__init__(2)
        self.meddle = meddle
        self.ways = {}     # socket: (socket at the other end, Way)
        self.doors = {}    # listening socket: (namespace, address, port) of who is meant
        self.selector = selectors.DefaultSelector()
        self.connections = 0
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self):
        try:
            for host in range(2):
                self.add_side(host)
            for host in range(2):
                for port in [4712, *range(FIRST, LAST + 1)]:
                    self.add_door(host, port)
        except BaseException:
            self.__exit__()
            raise
        return self

    def posing_as_other_of(self, host):
        return f"{self.prefix}middle{host}"

    def add_side(self, host):
        """The host with its own address, and a namespace in front of it that has the address of the other one."""
        name, middle = self.name(host), self.posing_as_other_of(host)
        for each in (name, middle):
            ip("netns", "add", each)
            ip("-n", each, "link", "set", "lo", "up")
        ip("-n", name, "link", "add", "net0", "type", "veth", "peer", "name", "net0", "netns", middle)
        for each, address in ((name, self.address(host)), (middle, self.address(1 - host))):
            ip("-n", each, "address", "add", f"{address}/24", "dev", "net0")
            ip("-n", each, "link", "set", "net0", "up")
        subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv4.ip_local_port_range={FIRST} {LAST}"],
                       check=True, capture_output=True)

    def socket_in(self, namespace):
        """A socket belongs to the namespace that its thread was in at its making."""
        there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        try:
            if self.libc.setns(there, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            return socket.socket()
        finally:
            self.libc.setns(self.home, CLONE_NEWNET)
            os.close(there)

    def add_door(self, host, port):
        """In front of `host`: who is there in place of the other host."""
        door = self.socket_in(self.posing_as_other_of(host))
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((self.address(1 - host), port))
        door.listen(16)
        door.setblocking(False)
        self.doors[door] = (self.posing_as_other_of(1 - host), self.address(1 - host), port)
        self.selector.register(door, selectors.EVENT_READ)

    def __exit__(self, *_):
        for each in [*self.doors, *self.ways]:
            each.close()
        self.selector.close()
        os.close(self.home)
        super().__exit__()
        for host in range(2):
            subprocess.run(["ip", "netns", "del", self.posing_as_other_of(host)], check=False, capture_output=True)

    def let_in(self, door):
        namespace, address, port = self.doors[door]
        came, _ = door.accept()
        on = self.socket_in(namespace)
        try:
            on.connect((address, port))
        except OSError:
            came.close()
            on.close()
            return
        number, self.connections = self.connections, self.connections + 1
        for one, other, back in ((came, on, False), (on, came, True)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.setblocking(False)
            self.ways[one] = (other, Way(number, back, self.meddle))
            self.selector.register(one, selectors.EVENT_READ)

    def carry_one(self, one):
        other, way = self.ways[one]
        try:
            came = one.recv(1 << 16)
        except OSError:
            came = b""
        goes = way.meddle(way, came) if came else None
        way.carried += len(came)
        if goes is None:
            self.selector.unregister(one)
            way.over = True
        else:
            way.waiting += goes

    def carry(self, seconds):
        """Serve whoever is ready, once."""
        for key, _ in self.selector.select(seconds):
            if key.fileobj in self.doors:
                self.let_in(key.fileobj)
            else:
                self.carry_one(key.fileobj)
        for other, way in self.ways.values():
            if not way.waiting and not way.over:
                continue
            try:
                way.waiting = way.waiting[other.send(way.waiting) if way.waiting else 0:]
                if way.over and not way.waiting:
                    other.shutdown(socket.SHUT_WR)
            except BlockingIOError:
                pass
            except OSError:
                way.waiting = b""
