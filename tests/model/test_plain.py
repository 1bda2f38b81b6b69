from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from llmedic.model import plain


def test_what_steers_is_gone_and_the_rest_stays() -> None:
    assert plain.plain("a\x1b[31mb\x07\x9bc\u202ed\u2066\te\n你é") == "a[31mbcd\te\n你é"


@given(st.text())
def test_a_json_document_says_the_same_and_steers_nothing(text: str) -> None:
    document = plain.escaped(json.dumps([text], ensure_ascii=False))

    assert json.loads(document) == [text]
    assert document == plain.plain(document)
