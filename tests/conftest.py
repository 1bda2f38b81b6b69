"""Settings for every test."""

from __future__ import annotations

import hypothesis

# No deadline: a test that fails because the machine was busy tells nothing about the code.
hypothesis.settings.register_profile("llmedic", deadline=None, print_blob=True)
hypothesis.settings.load_profile("llmedic")
