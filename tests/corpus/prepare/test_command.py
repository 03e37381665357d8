"""`ramify prepare`."""

from __future__ import annotations

from tests.command import ramify
from tests.corpus.prepare.common import write


def test_the_command_reports_decisions_skipped_trees_and_counts(tmp_path):
    lines = [*["(S (N a)"] * 22, *(f"(S (N w{i}) (V b) (PONCT .) (PONCT «))" for i in range(48))]
    write(tmp_path / "some.trees", "\n".join(lines))
    result = ramify("prepare", "brackets", tmp_path / "some.trees", "--out", tmp_path / "out", "--split", "8/1/1")
    assert result.returncode == 0, result.stderr
    assert "PONCT (. «)" in result.stderr
    assert "skipped: some.trees, line 1: " in result.stderr
    assert "line 20" in result.stderr
    assert "line 21" not in result.stderr
    assert "2 more" in result.stderr
    assert "PONCT" in result.stderr
    assert not result.stdout
    again = ramify("prepare", "brackets", tmp_path / "some.trees", "--out", tmp_path / "strict", "--strict")
    assert again.returncode == 2
    assert again.stderr.startswith("error: some.trees, line 1: ")
    assert len(again.stderr.splitlines()) == 1
    scored = ramify("evaluate", "--baseline", "right", tmp_path / "out" / "test.trees")
    assert "PONCT" in scored.stdout
