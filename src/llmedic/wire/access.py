"""How to get in: a value of its own, so that whoever only passes it on does not pay for TLS and connection pools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a user gives by --header, --bearer-env, --cacert, --cert and --key.

    TLS certificates are always verified. Proxies come from HTTP_PROXY, HTTPS_PROXY and NO_PROXY; loopback
    addresses never go through one. Nothing here is ever written to a bundle, a log or a report.

    headers  sent with every request to a target
    bearer   the token itself, already read from the environment; empty: none
    cacert   path of the certificates to trust instead of the system's; empty: the system's
    cert     path of our client certificate, and key that of its key when it is a file of its own
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    bearer: str = field(default="", repr=False)
    cacert: str = ""
    cert: str = ""
    key: str = ""


ANONYMOUS = Access()
