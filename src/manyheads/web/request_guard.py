"""The outermost layer: who may ask, how large and how slow a request may be, and safe headers."""

import asyncio
import hmac
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manyheads.web.body_fields import read_fields
from manyheads.web.metrics import Metrics
from manyheads.web.problem_json import ProblemError, problem, refusal
from manyheads.web.settings import Settings, is_loopback

LOG = logging.getLogger("manyheads.web")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
OPEN = ("/static/", "/health/")  # without a token: they tell nothing of anybody
# Whose clients send the token as a field, `api_key`.
KEYED = ("/translate", "/detect", "/languages")


class Guard:
    """Wraps an application."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self._held = 0  # bytes of the bodies in memory, also of those that are being read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, read its body, and pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = time.monotonic(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        size = 0

        def hold(more: int) -> None:
            nonlocal size
            self._check_room(more)
            size += more
            self._held += more

        try:
            self._check_origin(scope)
            keyed = scope["path"] in KEYED
            if not keyed:
                await self._check_token(scope, b"")
            body = await self._body(scope, receive, hold)
            if body is None:  # the client has left
                return
            if keyed:
                await self._check_token(scope, body)
            await self.app(scope, _replay(body, receive), sent)
        except ProblemError as error:
            await problem(error, scope["path"][:200])(scope, receive, sent)
        finally:
            self._held -= size
            # The path as it is declared: one that a client made up may hold anything.
            path = getattr(scope.get("route"), "path", "-")
            seconds = time.monotonic() - begun
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(seconds)
            LOG.info("%s %s %s %.0f ms", scope["method"], path, status, 1000 * seconds)

    def _check_origin(self, scope: Scope) -> None:
        """Refuse other hosts and other origins."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.settings.loopback and not is_loopback(_name(host)):
            # A page elsewhere whose name was made to point here (DNS rebinding).
            raise refusal("wrong_host")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise refusal("another_origin")

    async def _check_token(self, scope: Scope, body: bytes) -> None:
        path = scope["path"]
        if self.settings.token is None or path == "/" or path.startswith(OPEN):
            return
        sent = [each async for each in _tokens(scope, body)]
        right = self.settings.token.encode()
        if not any(hmac.compare_digest(each.encode("utf-8", "replace"), right) for each in sent):
            raise refusal("no_key" if path.startswith("/v2/") else "no_access")

    def _check_room(self, more: int) -> None:
        if self._held + more > self.settings.limits.bodies:
            raise refusal("busy")

    async def _body(
        self, scope: Scope, receive: Receive, hold: Callable[[int], None]
    ) -> bytes | None:
        """Read the whole body, if it is neither too large nor too slow; None: its client left.

        `hold` counts the bytes of each part, or refuses it.
        """
        limits = self.settings.limits
        too_large = refusal("bytes", most=limits.body)
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > limits.body:
            raise too_large
        self._check_room(int(length))
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(limits.receive):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    size += len(part)
                    if size > limits.body:
                        raise too_large
                    hold(len(part))
                    parts.append(part)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise refusal("slow_body", seconds=limits.receive) from None


def _name(host: str) -> str:
    """Return a Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


async def _tokens(scope: Scope, body: bytes) -> AsyncIterator[str]:
    """Return the tokens that a client sent, as programs for other servers send them too."""
    headers = Headers(scope=scope)
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "deepl-auth-key"):
        yield given.strip()
    if scope["path"] in KEYED:
        with suppress(ProblemError):
            sent = await read_fields(body, headers.get("content-type", ""))
            yield str(sent.get("api_key", ""))


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read already, and then what follows."""
    replayed_body = False

    async def replayed() -> Message:
        nonlocal replayed_body
        if replayed_body:
            return await receive()
        replayed_body = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
