"""What a ledger is asked with: words that name nothing, logs whose settings are no settings, names with secrets."""

from __future__ import annotations

import pytest

from llmedic.app import ledger
from llmedic.app.request import LedgerRequest
from llmedic.errors import UsageError


@pytest.mark.parametrize("word", ["./" + "a" * 5000, "~nobody-of-this-name/x", "a\0b"])
def test_a_word_that_no_file_can_have_as_its_name_is_no_model(word: str) -> None:
    with pytest.raises(UsageError, match="not in the catalogue"):
        ledger.run(LedgerRequest(model=word, gpu="H100"))
