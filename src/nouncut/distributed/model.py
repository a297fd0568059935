"""The model of a distributed run: all workers must have the same."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import NamedTuple

from nouncut.distributed.stages import Engine, Result
from nouncut.errors import ClusterError
from nouncut.models.choose import load_encoder
from nouncut.models.encoder import Encoder


class Model(NamedTuple):
    """The model of a run; plain, because tasks get it as an argument."""

    name: str
    fingerprint: str
    has_semantic: bool


def agree_on_model(engine: Engine, name: str) -> Model:
    """Return the model that all workers have; `name` is what `load_encoder` takes.

    The client may have another runtime, which makes nearly the same features of words.
    """

    def ask() -> Result:
        workers = engine.client.scheduler_info(n_workers=-1)["workers"]
        asked = [
            engine.client.submit(_describe_model, name, workers=[address], pure=False)
            for address in workers
        ]
        found = {tuple(answer) for answer in engine.client.gather(asked)}
        if len(found) > 1:
            raise _different_models(name)
        return Model(*found.pop())._asdict()

    return Model(**engine.once("model", ask))


def _describe_model(name: str) -> Model:
    encoder = load_encoder(name).encoder
    return Model(name, encoder.fingerprint, not encoder.shares_space)


def _different_models(name: str) -> ClusterError:
    return ClusterError(
        f"Workers have different weights or runtimes for the model {name}, so their features would "
        "not agree. Install the same packages on all of them, and use machines with graphics "
        "processors or without, not both."
    )


@lru_cache(maxsize=1)
def load_agreed(name: str, fingerprint: str) -> Encoder:
    """Load a model once per worker, and check that it is the one of the run."""
    # One thread per task is what is wanted.
    warnings.filterwarnings("ignore", "Inside a Dask worker", UserWarning)
    encoder = load_encoder(name).encoder
    if encoder.fingerprint != fingerprint:
        raise _different_models(name)
    return encoder
