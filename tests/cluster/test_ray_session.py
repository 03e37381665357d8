"""Errors for a Ray that cannot be used, without starting Ray."""

from __future__ import annotations

import pytest

from ramify.cluster import ray_session
from ramify.errors import RamifyError

NOT_FOUND = ConnectionError(
    "Could not find any running Ray instance. Please specify the one to connect to by `--address`"
)


class Failing:
    """Replaces the library."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def is_initialized(self) -> bool:
        return False

    def init(self, *_: object, **__: object) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("address", "in_environment", "error", "message"),
    [
        ("auto", None, NOT_FOUND, "^This machine does not belong to .* ray start --head, or leave out --ray-address"),
        (None, "auto", NOT_FOUND, "^This machine does not belong to .* or unset RAY_ADDRESS to use the cores"),
        (
            "a:b",
            None,
            ValueError("No port. Use --address\nor"),
            r"^Ray at 'a:b' .* \(No port\); give auto .* HOST:PORT",
        ),
        (None, None, RuntimeError("No space"), r"^Ray cannot be started .* \(No space\); use --engine local"),
        (None, None, Exception("Too slow"), r"^Ray cannot be started .* \(Too slow\); use --engine local"),
    ],
)
def test_errors_of_ray_have_matching_advice(monkeypatch, address, in_environment, error, message):
    monkeypatch.setattr(ray_session, "import_ray", lambda: Failing(error))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if in_environment:
        monkeypatch.setenv("RAY_ADDRESS", in_environment)
    with pytest.raises(RamifyError, match=message), ray_session.ray_session(address):
        pass
