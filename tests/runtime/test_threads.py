"""Torch's number of threads is restored after the work."""

from __future__ import annotations

import threading

import torch

from ramify.runtime.threads import available, torch_on_one_core


def test_overlapping_contexts_of_two_threads_leave_torch_as_it_was(on_cores):
    on_cores(3)
    inside, leave = threading.Event(), threading.Event()
    seen = []

    def work() -> None:
        with torch_on_one_core():
            seen.append((torch.get_num_threads(), available()))
            inside.set()
            leave.wait(60)
        seen.append(torch.get_num_threads())

    with torch_on_one_core():
        other = threading.Thread(target=work)
        other.start()
        assert inside.wait(60)
    leave.set()
    other.join()
    assert torch.get_num_threads() == 3
    assert seen == [(1, 3), 3]
    started_later = []
    thread = threading.Thread(target=lambda: started_later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert started_later == [3]


def test_a_nested_context_changes_nothing(on_cores):
    on_cores(2)
    with torch_on_one_core():
        with torch_on_one_core():
            assert available() == 2
        assert (torch.get_num_threads(), available()) == (1, 2)
    assert torch.get_num_threads() == 2
