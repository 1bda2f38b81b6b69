"""The machine-readable ledger keeps its promise: the documented schema, whole bytes, intervals."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Literal

from tests import schema
from tests.report.ledger.conftest import DOES_NOT, FITS, GIB, PRINTED, UNKNOWN

from llmedic.model.geometry import CacheLayer
from llmedic.model.ledger import LedgerReport
from llmedic.report.ledger import json as renderer

SCHEMA = schema.load("ledger-1")


def problems(document: dict[str, Any]) -> list[str]:
    return schema.problems(document, SCHEMA, SCHEMA)


def test_every_ledger_fits_the_schema(report: LedgerReport, lang: Literal["en", "zh"]) -> None:
    assert problems(json.loads(renderer.render(report, lang=lang))) == []


def test_the_check_itself_finds_what_is_wrong() -> None:
    document = renderer.document(FITS)
    document["starts"] = "probably"
    document["terms"][0]["bytes"]["likely"] = 61.03
    del document["cache"]["concurrency"]["low"]

    found = "\n".join(problems(document))

    for part in ("$.starts: probably", "$.terms[0].bytes.likely: not of type integer", "$.cache: fits 0"):
        assert part in found


def test_keys_stand_in_the_documented_order() -> None:
    document = json.loads(renderer.render(PRINTED))

    assert list(document) == SCHEMA["required"]
    assert list(document["cache"]) == SCHEMA["$defs"]["cache"]["required"]
    assert list(document["solutions"][0]) == SCHEMA["properties"]["solutions"]["items"]["required"]


def test_an_interval_has_three_numbers_and_an_exact_size_three_equal_ones() -> None:
    document = renderer.document(FITS)

    assert document["pool"]["bytes"] == {
        "low": round(4.1 * GIB),
        "likely": round(5.3 * GIB),
        "high": round(6.1 * GIB),
    }
    assert len(set(document["terms"][0]["bytes"].values())) == 1


def test_a_missing_pool_is_negative() -> None:
    assert renderer.document(DOES_NOT)["pool"]["bytes"]["likely"] == round(-65.2 * GIB)


def test_what_is_unknown_is_null() -> None:
    document = renderer.document(UNKNOWN)

    assert [document[key] for key in ("total", "requested", "pool", "cache", "geometry", "planned")] == [None] * 6


def test_printed_numbers_keep_their_unit() -> None:
    printed = {item["id"]: item for item in renderer.document(PRINTED)["printed"]}

    assert printed["weights"]["unit"] == "bytes"
    assert printed["weights"]["residual"] == round((3.4244 - 3.40) * GIB)
    assert (printed["cuda_graphs"]["computed"], printed["cuda_graphs"]["residual"]) == (None, None)
    assert printed["concurrency"]["computed"] == {"low": 3.533, "likely": 3.533, "high": 3.533}


def test_equal_layers_are_counted() -> None:
    assert FITS.ledger.geometry is not None
    sliding = CacheLayer(kind="sliding", kv_heads=8, head_dim=64, window_tokens=128)
    geometry = dataclasses.replace(FITS.ledger.geometry, layers=(*FITS.ledger.geometry.layers[:2], sliding, None))
    report = dataclasses.replace(FITS, ledger=dataclasses.replace(FITS.ledger, geometry=geometry))

    layers = renderer.document(report)["geometry"]["layers"]

    assert [(layer["kind"], layer["count"]) for layer in layers] == [("full", 2), ("sliding", 1), ("none", 1)]
    assert problems(renderer.document(report)) == []


def test_ids_and_settings_are_the_same_in_every_language() -> None:
    english, chinese = renderer.document(PRINTED, "en"), renderer.document(PRINTED, "zh")

    for key in ("starts", "era", "printed", "settings", "cache", "planned"):
        assert english[key] == chinese[key]


def test_no_name_steers_the_terminal() -> None:
    text = renderer.render(dataclasses.replace(FITS, model_name="\x1b[2J\u202e<b>"))

    assert not set(text) & {"\x1b", "\u202e"}
    assert json.loads(text)["model"] == "\x1b[2J\u202e<b>"
