"""Says in one line what went wrong on the wire, and what to try: the texts of urllib3 are for its own developers."""

from __future__ import annotations

import http.client
import socket
import ssl

import urllib3

from llmedic.errors import AnswerError, TargetError, UnreachableError


def timed_out(url: str, deadline_s: float) -> UnreachableError:
    """Nothing, or not everything, came in time."""
    return UnreachableError(
        f"{url}: no complete answer within {deadline_s:.3g} s",
        hint="the server hangs or a firewall drops packets; compare with curl -m 30 from the server's own host",
    )


def explained(error: Exception, url: str, deadline_s: float) -> TargetError:
    """The exception of our tree for what urllib3, ssl or the socket raised."""
    chain = _chain(error)
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate(cause, url)
        if isinstance(cause, socket.gaierror):
            return UnreachableError(f"{url}: host name does not resolve", hint="check the name, or give an address")
    for cause in chain:
        found = _known(cause, url, deadline_s)
        if found is not None:
            return found
    last = chain[-1]
    return UnreachableError(f"{url}: {_line(last) or type(last).__name__}")


def _known(cause: BaseException, url: str, deadline_s: float) -> TargetError | None:
    match cause:
        case urllib3.exceptions.ProxyError():
            return UnreachableError(
                f"{url}: the proxy failed: {_line(cause.original_error)}",
                hint="check HTTP_PROXY and HTTPS_PROXY, or add the host to NO_PROXY",
            )
        case urllib3.exceptions.NewConnectionError():
            return None  # a kind of time-out to urllib3; what it came from tells more
        case TimeoutError() | urllib3.exceptions.TimeoutError():
            return timed_out(url, deadline_s)
        case ssl.SSLError():
            return _tls(cause, url)
        case ConnectionRefusedError():
            return UnreachableError(f"{url}: connection refused", hint="is the server running, and is this its port?")
        case urllib3.exceptions.IncompleteRead() | http.client.IncompleteRead():
            return AnswerError(f"{url}: answer was cut short", hint="the server or a proxy closed the connection")
        case urllib3.exceptions.InvalidChunkLength() | http.client.BadStatusLine() if not isinstance(
            cause, http.client.RemoteDisconnected
        ):
            return AnswerError(f"{url}: the answer is not HTTP", hint="is it https://, or another program's port?")
        case ConnectionResetError() | BrokenPipeError() | http.client.RemoteDisconnected():
            return UnreachableError(
                f"{url}: connection closed without an answer", hint="is it https://, or is the server going down?"
            )
        case http.client.HTTPException():
            return AnswerError(f"{url}: the answer is not HTTP: {_line(cause)}")
    return None


def _certificate(error: ssl.SSLCertVerificationError, url: str) -> UnreachableError:
    reason = error.verify_message or _line(error)
    if "ostname mismatch" in reason or "address mismatch" in reason:
        hint = "use the name that the certificate is made out to"
    elif "expired" in reason:
        hint = "renew the certificate, or check this machine's clock"
    else:
        hint = "give the authority's certificate with --cacert FILE"
    return UnreachableError(f"{url}: TLS certificate not accepted: {reason}", hint=hint)


def _tls(error: ssl.SSLError, url: str) -> UnreachableError:
    reason = (error.reason or _line(error)).replace("_", " ").lower()
    if "wrong version" in reason or "record layer" in reason or "packet length" in reason:
        return UnreachableError(f"{url}: the port does not speak TLS", hint="write http:// instead of https://")
    if "certificate required" in reason or "handshake failure" in reason or "alert" in reason:
        return UnreachableError(
            f"{url}: TLS refused by the server: {reason}", hint="give a client certificate with --cert and --key"
        )
    return UnreachableError(f"{url}: TLS failed: {reason}")


def _chain(error: BaseException) -> list[BaseException]:
    """The exception, what it wraps and what it came from, outermost first."""
    found: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            waiting += [getattr(one, "reason", None), getattr(one, "original_error", None), *one.args, one.__cause__]
            waiting.append(one.__context__)
    return found


def _line(error: BaseException) -> str:
    """The text of an exception in one line of sane length."""
    return " ".join(str(error).split())[:160]
