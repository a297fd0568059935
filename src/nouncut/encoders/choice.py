"""Which model to use."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from nouncut.encoders._base import Encoder
from nouncut.encoders.checkpoints import ModelUnavailableError

PREFERRED_CLIP = "ViT-B/32"


class ChosenEncoder(NamedTuple):
    """An encoder, and why it was taken.

    Parameters
    ----------
    encoder : Encoder
        The encoder.
    reason : str
        A sentence for the user.
    """

    encoder: Encoder
    reason: str


def load_encoder(model: str | Path = "auto", *, device: str = "auto") -> ChosenEncoder:
    """Load a model by name.

    Parameters
    ----------
    model : str or Path, default="auto"
        "mini" for the embedded model; a short name such as "ViT-B/32", a hub id or a folder for
        a model of the CLIP family; "auto" for CLIP where its weights are at hand or can be
        fetched, and the embedded model otherwise. Only models of the CLIP family that are not on
        this machine use the network.
    device : str, default="auto"
        Where to run.

    Returns
    -------
    ChosenEncoder
        The encoder and the reason for the choice.

    Raises
    ------
    nouncut.encoders.ModelUnavailableError
        If a model was asked for by name and cannot be had.

    Examples
    --------
    >>> from nouncut.encoders import load_encoder
    >>> load_encoder("mini", device="cpu").encoder.name
    'mini'
    """
    from nouncut.encoders.clip import ClipEncoder
    from nouncut.encoders.mini import MiniEncoder

    if model == "mini":
        return ChosenEncoder(MiniEncoder(device=device), "The embedded model was asked for.")
    if model != "auto":
        return ChosenEncoder(ClipEncoder(model, device=device), f"{model} was asked for.")
    try:
        encoder = ClipEncoder(PREFERRED_CLIP, device=device)
    except ModelUnavailableError:
        return ChosenEncoder(
            MiniEncoder(device=device),
            f"The embedded model, which is not CLIP and less accurate: CLIP {PREFERRED_CLIP} is "
            "not on this machine and could not be fetched.",
        )
    return ChosenEncoder(encoder, f"CLIP {PREFERRED_CLIP}: its weights are at hand.")
