"""The plain page that a browser gets when a sign-in gives no session."""

import secrets
from html import escape
from typing import Final

from starlette.responses import HTMLResponse

POLICY: Final = (
    "default-src 'none'; style-src 'nonce-{nonce}'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
}
STYLE: Final = """
:root { color-scheme: light dark; --ink: #12232b; --dim: #4a5b63; --paper: #f6f7f5; --line: #d5dbd8; --link: #0b6160 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8edeb; --dim: #a3b1b0; --paper: #0f1a20; --line: #2b3a41; --link: #6cc5c0 }
}
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 16px/1.6 system-ui, sans-serif }
main { max-width: 30rem; width: 100% }
header { display: flex; gap: .6rem; align-items: center; font-weight: 600; margin-bottom: 2rem }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem }
p { margin: 0 0 .75rem; overflow-wrap: anywhere }
.dim { color: var(--dim) }
a { color: var(--link) }
.again { display: inline-block; margin-top: .75rem; padding: .6rem 1.1rem; border: 1px solid var(--line);
  border-radius: 8px; text-decoration: none }
"""


def answer_page(title: str, *sentences: str, status: int) -> HTMLResponse:
    """Answer with a page of plain sentences. It runs no script and loads nothing but the mark."""
    nonce = secrets.token_urlsafe(18)
    paragraphs = "\n".join(f"<p>{escape(each)}</p>" for each in sentences if each)
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="/console/mark.svg" type="image/svg+xml">
<title>{escape(title)} - Penstock</title>
<style nonce="{nonce}">{STYLE}</style>
</head>
<body>
<main>
<header><img src="/console/mark.svg" width="28" height="28" alt=""> Penstock</header>
<h1>{escape(title)}</h1>
{paragraphs}
<a class="again" href="/console">Back to the sign-in</a>
</main>
</body>
</html>
"""
    return HTMLResponse(page, status, headers={**HEADERS, "content-security-policy": POLICY.format(nonce=nonce)})
