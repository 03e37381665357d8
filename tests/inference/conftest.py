from collections.abc import Callable, Iterator

import pytest
import torch


@pytest.fixture
def on_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Call it to have work of any size shared out to so many threads, whatever the machine has, until the test ends."""
    before = torch.get_num_threads()

    def use(count: int) -> None:
        monkeypatch.setattr("ramify.inference.threads.SMALLEST_WORK", -1)
        monkeypatch.setattr("ramify.inference.threads.os.cpu_count", lambda: count)
        torch.set_num_threads(count)

    yield use
    torch.set_num_threads(before)
