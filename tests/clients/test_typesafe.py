"""The SDK of System One."""

from __future__ import annotations

import pytest

sdk = pytest.importorskip("typesafe_sdk", reason="typesafe-sdk is not installed: ./dev clients")

from clients.questions import LEVELS, STATE, TEAMS


def test_decision(base: str, key: str) -> None:
    client = sdk.TypeSafeClient(base_url=base, api_key=key)
    questions = {
        "team": sdk.Choice(instructions="Who must answer?", criteria=dict.fromkeys(TEAMS)),
        "urgent": sdk.Noul(instructions="Is it urgent?"),
        "mood": sdk.Score(criteria=[*LEVELS]),
    }
    # The longer one is compressed where the SDK can.
    for state in (STATE, {"text": STATE * 40, "since": [3, None]}):
        done = client.system_one(state, questions)
        team = done.answers["team"]
        assert team.choice in TEAMS
        assert sum(team.probabilities.values()) == pytest.approx(1)
        assert 0 <= done.answers["urgent"].noul <= 1
        assert 0 <= done.answers["mood"].score <= 2
        assert done.usage is not None


def test_models_and_wrong_requests(base: str, key: str) -> None:
    client = sdk.TypeSafeClient(base_url=base, api_key=key)
    assert client.models.list() is not None
    with pytest.raises(sdk.TypeSafeUnprocessableEntityError):
        client.system_one(STATE, {"a": sdk.Noul(instructions="b")}, extra_body={"permute": 0})
    with pytest.raises(sdk.TypeSafeAuthenticationError):
        sdk.TypeSafeClient(base_url=base, api_key="another").system_one(STATE, {"a": sdk.Noul(instructions="b")})
