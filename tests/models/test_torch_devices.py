from __future__ import annotations

import numpy as np
import pytest
import torch

from nouncut.errors import ModelError, ParameterError
from nouncut.models.torch_devices import (
    BatchSize,
    choose_device,
    choose_precision,
    run_in_batches,
    run_model,
)


def test_automatic_choices():
    assert choose_device("cpu").type == "cpu"
    assert choose_precision("auto", "cuda:1") == "float16"
    assert choose_precision("auto", "cpu") == "float32"
    assert choose_precision("bfloat16", "cuda") == "bfloat16"


def test_wrong_choices_are_refused():
    with pytest.raises(ParameterError, match="`device` must be"):
        choose_device("abacus")
    with pytest.raises(ParameterError, match="needs a CUDA device"):
        choose_precision("float16", "cpu")
    with pytest.raises(ParameterError, match="`precision` must be one of"):
        choose_precision("int8", "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_an_absent_device_is_explained():
    with pytest.raises(
        ParameterError, match="'cuda', which this machine or its torch does not have"
    ):
        choose_device("cuda")


def test_batches_become_smaller_for_good_when_memory_runs_out():
    size, tried = BatchSize(8), []

    def hungry(start, stop):
        tried.append(stop - start)
        if stop - start > 3:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return list(range(start, stop))

    parts = run_in_batches(hungry, 9, size)
    assert [number for part in parts for number in part] == list(range(9))
    assert tried == [8, 4, 2, 2, 2, 2, 1]
    assert size.limit == 2


def test_a_model_that_never_fits_is_explained():
    def hungry(start, stop):
        raise torch.OutOfMemoryError("out of memory")

    with pytest.raises(ModelError, match="smaller `model`, or 'cpu'"):
        run_in_batches(hungry, 9, BatchSize(8))


def test_other_errors_are_passed_on():
    def broken(start, stop):
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        run_in_batches(broken, 9, BatchSize(8))


def test_an_overflow_of_half_precision_is_computed_again():
    tries = iter([torch.tensor([[np.inf, 1.0]]), torch.tensor([[3.0, 4.0]])])
    rows = run_model(lambda: next(tries), torch.device("cpu"), "bfloat16")
    np.testing.assert_allclose(rows, [[0.6, 0.8]])
