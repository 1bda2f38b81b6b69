"""How the engine source lays out its raw answers: what `capture` and `read_saved` write and `read` understands."""

from __future__ import annotations

SOURCE = "engine"

METRICS = "metrics"
"""A whole metrics page. meta: end "first" or "last", begun (Unix seconds), window_s ("" when unknown)."""

GAUGES = "gauges"
"""The gauge lines of a page between the two."""

HEALTH, MODELS, VERSION = "health", "models", "version"
SERVER_INFO, PROPS, SLOTS, INFO = "server_info", "props", "slots", "info"
API_VERSION, PS, TAGS = "api_version", "ps", "tags"
PROBE, PROBE_CHAT = "probe", "probe_chat"
"""One short completion and, where it worked, one short chat."""

PATHS = {
    HEALTH: ("/health",),
    MODELS: ("/v1/models",),
    VERSION: ("/version",),
    SERVER_INFO: ("/server_info?config_format=json", "/get_server_info"),
    PROPS: ("/props",),
    SLOTS: ("/slots",),
    INFO: ("/info",),
    API_VERSION: ("/api/version",),
    PS: ("/api/ps",),
    TAGS: ("/api/tags",),
}
"""Where each answer is found, the newest path first."""

COMMON = (HEALTH, MODELS, VERSION)

OF_ENGINE = {
    "vllm": (SERVER_INFO,),
    "sglang": (SERVER_INFO,),
    "llama.cpp": (PROPS, SLOTS),
    "tgi": (INFO,),
    "ollama": (API_VERSION, PS, TAGS),
    "": (SERVER_INFO, PROPS, SLOTS, INFO, API_VERSION, PS, TAGS),
}
"""What only one engine answers; with an unknown engine, everything is asked."""
