"""Says what an unusable answer of a server means and what to do about it."""

from __future__ import annotations

from llmedic.wire.http import Answer

METRICS_PAGE = "metrics page"


def explained(answer: Answer, what: str) -> tuple[str, str]:
    """Why this answer is not `what` ("metrics page"), and a hint; two empty strings when it may be."""
    is_page = answer.body[:256].lstrip().startswith(b"<") or answer.content_type == "text/html"
    if answer.status == 200:
        return _good(answer, what, is_page=is_page)
    code = f"HTTP {answer.status}"
    if answer.status in (401, 403):
        return f"{code}: not allowed", "give the token with --bearer-env VAR, or a header with --header"
    if answer.status in (502, 503, 504) and is_page:
        return f"{code}: a proxy's error page", "ask the engine's own address, behind the proxy"
    if answer.status == 503:
        return (
            f"{code}: the server is not ready",
            "it is loading its model, or shutting down: read its log (--log FILE)",
        )
    if what != METRICS_PAGE:
        return f"{code}: no {what}", ""
    match answer.status:
        case 404:
            return f"{code}: no {what} here", (
                "is it the engine's own port? SGLang needs --enable-metrics; Ollama has no metrics page"
            )
        case 501:
            return f"{code}: the {what} is switched off", "start llama-server with --metrics"
    return f"{code} instead of the {what}", "read the server's log (--log FILE)"


def _good(answer: Answer, what: str, *, is_page: bool) -> tuple[str, str]:
    if is_page:
        return "got a web page", f"this looks like a web page, not the {what}: is it the engine's port?"
    if not answer.body.strip():
        return f"the {what} is empty", "is the engine still starting?"
    return "", ""
