"""MCP: tools for agents, over streamable HTTP without sessions."""
