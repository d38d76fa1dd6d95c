"""Sends the same order over and over, from a process of its own and with little effort; prints what it saw as JSON.

python -m bench.machines.load PORT KEY CONNECTIONS SECONDS RATE LATENCY [COUNT]
"""

import asyncio
import json
import random
import sys
import time

import uvloop


class Load:
    """So many connections, each with one request at a time; `rate` 0: as fast as they are answered."""

    def __init__(self, port: int, key: str, rate: float, latency: float, count: int) -> None:
        self._port = port
        self._rate = rate
        self._left = count
        params = {"script": {"latency": latency}, "texture": False, "face_limit": 48}
        body = json.dumps({"model": "sim_image_to_model", "input": [{"params": params}]}).encode()
        self._request = (
            b"POST /model/v1/generation HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer %b\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
        ) % (key.encode(), len(body), body)
        self.latencies: list[float] = []
        self.refused = 0

    async def connect(self, until: float, connections: int) -> None:
        """One connection until its time is over, or all is sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        pause = connections / self._rate if self._rate else 0.0
        await asyncio.sleep(random.uniform(0, pause))  # noqa: S311  spread
        while time.perf_counter() < until and self._left > 0:
            self._left -= 1
            begun = time.perf_counter()
            writer.write(self._request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            took = time.perf_counter() - begun
            if head.startswith(b"HTTP/1.1 202"):
                self.latencies.append(took)
            else:
                self.refused += 1
            if pause:
                await asyncio.sleep(max(0.0, pause - took))
        writer.close()


async def run(port: int, key: str, connections: int, seconds: float, rate: float, latency: float, count: int) -> None:
    load = Load(port, key, rate, latency, count)
    begun = time.perf_counter()
    await asyncio.gather(*(load.connect(begun + seconds, connections) for _ in range(connections)))
    took, found = time.perf_counter() - begun, sorted(load.latencies)
    result = {"accepted": len(found), "refused": load.refused, "seconds": took, "per_second": len(found) / took}
    if found:
        result |= {"p50_ms": found[len(found) // 2] * 1e3, "p99_ms": found[len(found) * 99 // 100] * 1e3}
    print(json.dumps(result))


if __name__ == "__main__":
    port, key, connections, seconds, rate, latency, *count = sys.argv[1:]
    most = int(count[0]) if count else 1 << 60
    uvloop.run(run(int(port), key, int(connections), float(seconds), float(rate), float(latency), most))
