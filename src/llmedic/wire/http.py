"""One HTTP exchange with a hard end, because the servers we ask are by definition unwell.

A sick server drips bytes, answers with a proxy's error page, hangs in DNS or breaks off its compression. `get` and
`post` answer within the deadline whatever the other side does: the exchange runs on a daemon thread, and when time is
up its socket is shut. Each exchange has a connection of its own, so that a pooled one closed by the server a moment
ago never looks like a fault of the server.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

import urllib3

from llmedic.errors import AnswerError, InputError, LLMedicError, UnreachableError, UsageError
from llmedic.wire import body, failures
from llmedic.wire.access import ANONYMOUS as ANONYMOUS
from llmedic.wire.access import Access as Access

MAX_BYTES = 64 * 2**20
"""Size cap of a decompressed answer: a page of 100,000 series is about 15 MiB."""

USER_AGENT = "llmedic"

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 3
_SECRET_WORDS = ("key", "token", "secret", "password", "passwd", "sig", "auth", "credential", "jwt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete HTTP answer of any status. Header names are in lower case, the body is decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    elapsed_s: float

    @property
    def content_type(self) -> str:
        """The media type without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def get(
    url: str, access: Access = ANONYMOUS, *, deadline_s: float = 10.0, max_bytes: int = MAX_BYTES, accept: str = "*/*"
) -> Answer:
    """Fetch `url`; any HTTP status is an answer.

    Raises UnreachableError (DNS, refused, TLS, time-out), AnswerError (not HTTP, cut short, too large, broken
    compression, redirect to another host), UsageError or InputError (bad URL, header or certificate file).
    """
    return _bounded("GET", url, access, deadline_s, max_bytes, {"accept": accept}, None)


def post(
    url: str, access: Access = ANONYMOUS, *, content: bytes, deadline_s: float = 10.0, max_bytes: int = MAX_BYTES
) -> Answer:
    """Send `content` as JSON. Raises as `get` does; redirects are not followed."""
    return _bounded("POST", url, access, deadline_s, max_bytes, {"content-type": "application/json"}, content)


def shown(url: str) -> str:
    """The URL as it may be printed: no user, no password, no secret-looking value in the query."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:  # it is no URL, and may hold a password all the same
        scheme, _, rest = url.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"
    pairs = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
    secret = {name for name, _ in pairs if any(word in name.lower() for word in _SECRET_WORDS)}
    query = parts.query
    if secret:
        query = urllib.parse.urlencode([(name, "REDACTED" if name in secret else value) for name, value in pairs])
    netloc = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, netloc, parts.path, query, ""))


def check(url: str, access: Access) -> None:
    """Raise UsageError or InputError now for what could never work, whatever the server does."""
    target = _checked(url)
    _headers(target, access, {})
    _manager(target, access)


class _Exchange:
    """The state that the waiting thread and the working thread share."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.socket: socket.socket | None = None
        self.answer: Answer | None = None
        self.error: Exception | None = None

    def abandon(self) -> None:
        """Wake the worker out of whatever read it hangs in."""
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)


_current = threading.local()


def _note_socket(sock: socket.socket | None) -> None:
    exchange = getattr(_current, "exchange", None)
    if isinstance(exchange, _Exchange):
        exchange.socket = sock


class _PlainConnection(urllib3.connection.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _note_socket(self.sock)


class _TLSConnection(urllib3.connection.HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _note_socket(self.sock)


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _TLSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TLSConnection


def _bounded(
    method: str,
    url: str,
    access: Access,
    deadline_s: float,
    max_bytes: int,
    headers: Mapping[str, str],
    content: bytes | None,
) -> Answer:
    target = _checked(url)
    exchange = _Exchange()
    started = time.monotonic()
    ends = started + deadline_s

    def work() -> None:
        _current.exchange = exchange
        try:
            exchange.answer = _follow(method, target, access, ends, max_bytes, headers, content)
        except Exception as error:  # handed to the caller's thread below
            exchange.error = error
        exchange.done.set()

    threading.Thread(target=work, name="llmedic-http", daemon=True).start()
    if not exchange.done.wait(deadline_s):
        exchange.abandon()
        raise failures.timed_out(shown(url), deadline_s)
    if exchange.answer is not None:
        return exchange.answer
    error = exchange.error
    if isinstance(error, TimeoutError):
        raise failures.timed_out(shown(url), deadline_s) from error
    if error is None or isinstance(error, LLMedicError):
        raise error or UnreachableError(f"{shown(url)}: no answer")
    raise failures.explained(error, shown(url), deadline_s) from error


def _checked(url: str) -> urllib3.util.Url:
    try:
        target = urllib3.util.parse_url(url)
    except urllib3.exceptions.LocationParseError as error:
        raise UsageError(f"{shown(url)!r} is not a URL", hint="write it as http://host:port") from error
    if target.scheme not in ("http", "https") or not target.host:
        raise UsageError(f"{shown(url)!r} is not an http or https URL", hint="write it as http://host:port")
    return target


def _follow(
    method: str,
    target: urllib3.util.Url,
    access: Access,
    ends: float,
    max_bytes: int,
    headers: Mapping[str, str],
    content: bytes | None,
) -> Answer:
    started = time.monotonic()
    sent = _headers(target, access, headers)
    for _ in range(_MOST_REDIRECTS + 1):
        status, answered, text = _exchange(method, target, access, sent, content, ends, max_bytes)
        location = answered.get("location", "")
        if method != "GET" or status not in _REDIRECTS or not location:
            return Answer(status=status, headers=answered, body=text, elapsed_s=time.monotonic() - started)
        target = _next(target, location, status)
    raise AnswerError(f"{shown(target.url)}: redirects in a circle", hint="give the URL that finally answers")


def _next(target: urllib3.util.Url, location: str, status: int) -> urllib3.util.Url:
    """Where a redirect leads, within the same host only: the token must not travel to another one."""
    try:
        there = _checked(urllib.parse.urljoin(target.url, location))
    except (UsageError, ValueError) as error:
        raise AnswerError(
            f"{shown(target.url)}: redirects to something that is no URL",
            hint="give the URL that finally answers",
            status=status,
        ) from error
    downgraded = target.scheme == "https" and there.scheme == "http"
    if there.host != target.host or downgraded:
        raise AnswerError(
            f"{shown(target.url)}: redirects to {shown(there.url)}, not followed",
            hint=f"give {shown(there.url)} as the target if it is the engine",
            status=status,
        )
    return there


def _headers(target: urllib3.util.Url, access: Access, extra: Mapping[str, str]) -> dict[str, str]:
    # No compression is asked for: an overloaded server should not spend a core on packing its metrics for us.
    sent = {"user-agent": USER_AGENT, "accept-encoding": "identity", "connection": "close", **extra}
    if target.auth:
        plain = urllib.parse.unquote(target.auth).encode()
        sent["authorization"] = "Basic " + base64.b64encode(plain).decode("ascii")
    if access.bearer:
        sent["authorization"] = f"Bearer {access.bearer}"
    sent.update({name.lower(): value for name, value in access.headers.items()})
    for name, value in sent.items():
        if any(mark in name + value for mark in "\r\n\0") or not value.isascii():
            hint = "write the header in ASCII, on one line; a binary value is sent as base64"
            raise UsageError(f"header {name!r} holds a line break or a non-ASCII character", hint=hint)
    return sent


def _exchange(
    method: str,
    target: urllib3.util.Url,
    access: Access,
    headers: Mapping[str, str],
    content: bytes | None,
    ends: float,
    max_bytes: int,
) -> tuple[int, dict[str, str], bytes]:
    left_s = ends - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    manager = _manager(target, access)
    try:
        response = manager.request(
            method,
            target._replace(auth=None, fragment=None).url,
            body=content,
            headers=headers,
            timeout=urllib3.Timeout(connect=left_s, read=left_s),
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        with contextlib.closing(response):
            answered = {name.lower(): value for name, value in response.headers.items()}
            text = body.read(response, shown(target.url), ends, max_bytes)
            return response.status, answered, text
    finally:
        manager.clear()


def _proxy(target: urllib3.util.Url) -> str:
    host = target.host or ""
    bare = host.strip("[]")
    if bare in ("localhost", "::1") or bare.startswith("127."):
        return ""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(target.scheme or "http") or proxies.get("all", "")
    if not proxy or urllib.request.proxy_bypass(host if target.port is None else f"{host}:{target.port}"):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _manager(target: urllib3.util.Url, access: Access) -> urllib3.PoolManager:
    proxy = _proxy(target)
    context = None
    if target.scheme == "https" or proxy.startswith("https") or access.cacert or access.cert or access.key:
        context = _tls(access.cacert, access.cert, access.key)
    # Made anew for every exchange: a pooled connection may be closed by the server just when it is used again.
    manager: urllib3.PoolManager
    if not proxy:
        manager = urllib3.PoolManager(num_pools=1, ssl_context=context)
    else:
        address = _proxy_address(proxy)
        proxy_headers = urllib3.make_headers(proxy_basic_auth=urllib.parse.unquote(address.auth or "") or None)
        manager = urllib3.ProxyManager(
            address._replace(auth=None).url, num_pools=1, ssl_context=context, proxy_headers=proxy_headers
        )
    manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TLSPool}
    return manager


def _proxy_address(proxy: str) -> urllib3.util.Url:
    hint = "correct HTTP_PROXY and HTTPS_PROXY, or set NO_PROXY for this host"
    try:
        address = urllib3.util.parse_url(proxy)
    except urllib3.exceptions.LocationParseError as error:
        raise UsageError(f"proxy {shown(proxy)} is not a URL", hint=hint) from error
    if address.scheme not in ("http", "https") or not address.host:
        raise UsageError(f"proxy {shown(proxy)} is not an http proxy", hint=hint)
    return address


@functools.lru_cache(maxsize=64)
def _tls(cacert: str, cert: str, key: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=cacert or None)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{cacert}: not a readable CA file: {error}", hint="give a PEM file to --cacert") from error
    if cert:
        try:
            # Without the callback, OpenSSL would ask for the password of an encrypted key on the terminal.
            context.load_cert_chain(cert, key or None, password=lambda: "")
        except (OSError, ssl.SSLError, ValueError) as error:
            reason = str(error) or "unreadable"
            raise InputError(
                f"{cert}: not a usable client certificate: {reason}",
                hint="give PEM files to --cert and --key; the key must not be encrypted",
            ) from error
    elif key:
        raise UsageError("--key needs --cert")
    return context
