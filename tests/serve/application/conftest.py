"""The application over the model of a file of tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tokentrie import Model

if TYPE_CHECKING:
    from serve.application.in_process import InProcess


@pytest.fixture
def app(model: Model) -> Iterator[InProcess]:
    # The server is an extra of the package: files of tests are passed over without it.
    from serve.application.in_process import InProcess
    from tokentrie.serve import Settings, create_app
    from tokentrie.serve.models import ServedModel

    app = InProcess(create_app([ServedModel("m", model, 60.0)], Settings()))
    yield app
    app.close()
