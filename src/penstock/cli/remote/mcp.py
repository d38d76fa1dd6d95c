"""`penstock mcp`: serve the tools of a running server over stdin and stdout, for agents that start a command."""

import asyncio
import sys

from penstock.cli.options import ConfigFile, DataFolder
from penstock.cli.printing import fail, release_stdout
from penstock.cli.remote.connection import BaseUrl, settled_address


def mcp(*, base_url: BaseUrl = None, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Serve MCP over stdin and stdout, for agents that start a command.

    The server of --base-url or PENSTOCK_BASE_URL does the work, with the key in PENSTOCK_API_KEY.
    """
    from penstock.cli.remote.mcp_bridge import serve
    from penstock.client.config import find_address
    from penstock.client.errors import BadInput

    try:
        address = find_address(base_url or settled_address(data, config), None, timeout=60, connections=100)
    except BadInput as error:
        fail(str(error))
    try:
        asyncio.run(serve(address, sys.stdin.buffer, sys.stdout.buffer))
    except* KeyboardInterrupt:
        pass
    except* BrokenPipeError:  # the agent has gone
        release_stdout()
