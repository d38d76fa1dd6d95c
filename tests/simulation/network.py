"""The simulated network: TCP connections between loops, with delay, loss, resets and slow drips."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from simulation.virtual_loop import VirtualLoop
from simulation.world import Chance, World

LATENCY_SECONDS: Final = 0.002
STALL_SECONDS: Final = (1.0, 40.0)
WRITE_FAULTS: Final = (("reset", 0.002), ("cut", 0.002), ("stall", 0.003), ("drip", 0.01))
CONNECT_FAULTS: Final = (("refuse", 0.004), ("no answer", 0.002))

Factory = Callable[[], Any]


class _NoSocket:
    """Stands in for a socket where production asks the kernel about it."""

    def fileno(self) -> int:
        raise OSError("a simulated socket has no descriptor")

    def getpeername(self) -> tuple[str, int]:
        return ("192.0.2.1", 1)

    def getsockname(self) -> tuple[str, int]:
        return ("192.0.2.2", 80)

    def setsockopt(self, *_: Any) -> None:
        raise OSError("a simulated socket has no options")


class VirtualTransport(asyncio.Transport):
    """One end of a connection. Bytes arrive at the other end in order, some time later."""

    peer: "VirtualTransport"

    def __init__(self, network: "Network", loop: VirtualLoop, chance: Chance) -> None:
        super().__init__()
        self._network = network
        self.loop = loop
        self._chance = chance
        self._protocol: Any = None
        self._closing = False
        self._lost = False
        self._arrives_at = 0.0
        self._paused = False
        self._held: list[bytes] = []
        self._is_broken = False
        """The network has lost bytes of this end: nothing that follows them arrives."""
        self._has_eof = False
        """The other end has closed, which is noticed when reading continues."""

    def begin(self, protocol: Any) -> None:
        """Hand the transport to its protocol."""
        self._protocol = protocol
        protocol.connection_made(self)

    # -- what protocols call

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what the kernel would say about the connection."""
        known = {"peername": ("192.0.2.1", 1), "sockname": ("192.0.2.2", 80), "socket": _NoSocket()}
        return known.get(name, default)

    def get_protocol(self) -> Any:
        """Return the protocol."""
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        """Replace the protocol."""
        self._protocol = protocol

    def is_closing(self) -> bool:
        """Return whether no more can be written."""
        return self._closing

    def pause_reading(self) -> None:
        """Hold back what arrives."""
        self._paused = True

    def resume_reading(self) -> None:
        """Deliver what was held back."""
        self._paused = False
        if self._held or self._has_eof:
            self.loop.call_soon(self._deliver_held)

    def is_reading(self) -> bool:
        """Return whether arriving bytes are delivered."""
        return not self._paused

    def get_write_buffer_size(self) -> int:
        """Return 0: the network takes everything."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: there is no buffer."""

    def can_write_eof(self) -> bool:
        """Return False: connections are closed as a whole."""
        return False

    def writelines(self, list_of_data: Any) -> None:
        """Send several pieces at once."""
        self.write(b"".join(list_of_data))

    def write(self, data: Any) -> None:
        """Send bytes."""
        if self._closing or self.loop.is_dead:
            return
        data = bytes(data)
        match self._chance.draw(WRITE_FAULTS):
            case "reset":
                self._network.break_pair(self)
            case "cut":
                self._send(data[: len(data) // 2], 0.0)
                self._network.break_pair(self)
            case "stall":
                self._send(data, self._chance.uniform(*STALL_SECONDS))
            case "drip":
                for start in range(0, len(data), 97):
                    self._send(data[start : start + 97], 0.01)
            case _:
                self._send(data, 0.0)

    def close(self) -> None:
        """Close after everything sent so far."""
        if not self._closing:
            self._closing = True
            if not self._is_broken:
                self._after(self._next_arrival(0.0), self.peer, self.peer.finish)
            self.loop.call_soon(self.lose, None)

    def abort(self) -> None:
        """Close at once; what is under way may be lost."""
        if not self._closing:
            self._closing = True
            self._after(self.loop.time() + LATENCY_SECONDS, self.peer, self.peer.lose, ConnectionResetError("reset"))
            self.loop.call_soon(self.lose, None)

    # -- what the network calls

    def finish(self) -> None:
        """End the connection after the other end has closed it. Nobody notices while reading is paused."""
        self._has_eof = True
        if not self._paused and not self._lost:
            self._protocol.eof_received()
            self.lose(None)

    def lose(self, error: Exception | None) -> None:
        """End the connection for this end's protocol."""
        self._closing = True
        if not self._lost:
            self._lost = True
            self._protocol.connection_lost(error)

    def _send(self, data: bytes, extra: float) -> None:
        if self._is_broken:
            return
        self._after(self._next_arrival(extra), self.peer, self.peer.arrive, data)

    def _next_arrival(self, extra: float) -> float:
        """Return the moment at which the next piece arrives, which never overtakes an earlier one."""
        soonest = self.loop.time() + LATENCY_SECONDS * (0.5 + self._chance.random())
        self._arrives_at = max(self._arrives_at, soonest) + extra
        return self._arrives_at

    def _after(self, when: float, end: "VirtualTransport", callback: Callable[..., None], *args: Any) -> None:
        end.loop.call_at(when, callback, *args)

    def arrive(self, data: bytes) -> None:
        """Deliver bytes that came through the network."""
        if self._lost or not data:
            return
        if self._paused or self._held:
            self._held.append(data)
        else:
            self._protocol.data_received(data)

    def _deliver_held(self) -> None:
        while self._held and not self._paused and not self._lost:
            self._protocol.data_received(self._held.pop(0))
        if self._has_eof and not self._held:
            self.finish()


class Network:
    """Knows who listens where, and connects loops."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._listeners: dict[tuple[str, int], tuple[VirtualLoop, Factory]] = {}
        self._open: dict[VirtualLoop, dict[VirtualTransport, None]] = {}
        """Open ends by loop. They are dicts, as the order of a set of objects differs from run to run."""

    def listen(self, host: str, port: int, loop: VirtualLoop, factory: Factory) -> None:
        """Accept connections for a process."""
        self._listeners[host, port] = loop, factory

    def close(self, loop: VirtualLoop) -> None:
        """Accept no more connections for a process that stops."""
        for address in [address for address, (listener, _) in self._listeners.items() if listener is loop]:
            del self._listeners[address]

    async def connect(self, loop: VirtualLoop, factory: Factory, host: str, port: int) -> tuple[Any, Any]:
        """Connect to a listener."""
        chance = self._world.chance(f"connect {host}:{port}")
        fault = chance.draw(CONNECT_FAULTS)
        await asyncio.sleep(LATENCY_SECONDS * (0.5 + chance.random()))
        listener, accept = self._listeners.get((host, port), (None, None))
        if fault == "no answer" or (listener is not None and listener.frozen_until > self._world.now + 30):
            await asyncio.sleep(3600)
        if fault == "refuse" or listener is None or accept is None or listener.is_dead:
            raise ConnectionRefusedError(f"nobody listens at {host}:{port}")
        near = VirtualTransport(self, loop, self._world.chance(f"to {host}"))
        far = VirtualTransport(self, listener, self._world.chance(f"from {host}"))
        near.peer, far.peer = far, near
        self._open.setdefault(loop, {})[near] = None
        self._open.setdefault(listener, {})[far] = None
        listener.call_soon(self._accept, far, accept)
        protocol = factory()
        near.begin(protocol)
        return near, protocol

    def _accept(self, far: VirtualTransport, accept: Factory) -> None:
        far.begin(accept())

    def break_pair(self, end: VirtualTransport) -> None:
        """Reset a connection at both ends."""
        end._is_broken = True
        for each in (end, end.peer):
            each.loop.call_later(LATENCY_SECONDS, each.lose, ConnectionResetError("reset by the network"))

    def bury(self, loop: VirtualLoop, *, silently: bool) -> None:
        """End the connections of a dead process: its kernel resets them, unless the whole machine is gone."""
        for end in self._open.pop(loop, ()):
            if not end._lost:
                seconds = 60.0 if silently else LATENCY_SECONDS
                end.peer.loop.call_later(seconds, end.peer.lose, ConnectionResetError("reset by peer"))
