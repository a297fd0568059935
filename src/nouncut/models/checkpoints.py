"""Finding a model: by a short name, on the hub, in the hub's cache, or in a folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nouncut.compute.progress import Progress
from nouncut.errors import ModelError, ParameterError, describe_error
from nouncut.models.hub import cached_snapshot, download, list_repository
from nouncut.models.onnx_graphs import read_graph
from nouncut.models.onnx_layouts import (
    OnnxFiles,
    OnnxSide,
    find_onnx,
    image_side,
    list_files,
    text_side,
    tower_names,
)
from nouncut.models.torch_loading import has_torch, require_torch


class Repositories(NamedTuple):
    """Where the hub has a model, for each runtime, and how large its ONNX export is."""

    onnx: str
    torch: str
    megabytes: int
    about: str


SHORT_NAMES = {
    "ViT-B/32": Repositories(
        "Xenova/clip-vit-base-patch32",
        "openai/clip-vit-base-patch32",
        608,
        "OpenAI's CLIP; the default if it can be had",
    ),
    "ViT-B/16": Repositories(
        "Xenova/clip-vit-base-patch16",
        "openai/clip-vit-base-patch16",
        601,
        "OpenAI's CLIP, smaller patches",
    ),
    "ViT-L/14": Repositories(
        "Xenova/clip-vit-large-patch14",
        "openai/clip-vit-large-patch14",
        1717,
        "OpenAI's largest CLIP",
    ),
    "OpenCLIP-ViT-B/32": Repositories(
        "onnx-community/CLIP-ViT-B-32-laion2B-s34B-b79K-ONNX",
        "laion/CLIP-ViT-B-32-laion2B-s34B-b79K",
        608,
        "LAION's CLIP, trained on LAION-2B",
    ),
    # The hub has these weights as an ONNX export, but not in transformers' format.
    "OpenCLIP-ViT-B/32-400M": Repositories(
        "immich-app/ViT-B-32__laion400m_e32",
        "immich-app/ViT-B-32__laion400m_e32",
        606,
        "LAION's CLIP, trained on LAION-400M; the paper's table of OpenCLIP",
    ),
    "SigLIP2-B/16": Repositories(
        "onnx-community/siglip2-base-patch16-224-ONNX",
        "google/siglip2-base-patch16-224",
        1536,
        "Google's SigLIP 2, many languages",
    ),
}
RUNTIMES = ("onnx", "torch")
# Preferred format first: repositories often hold the same weights in several formats.
_TORCH_WEIGHTS = (
    r"model\.safetensors|model-\d+-of-\d+\.safetensors",
    r"pytorch_model\.bin|pytorch_model-\d+-of-\d+\.bin",
)
# Configuration, tokenizer and preprocessing.
_TORCH_SETTINGS = r".*\.(json|txt|model)"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class TorchFiles:
    """The folder of a checkpoint of transformers on this machine."""

    folder: Path


def find_checkpoint(
    model: str | Path,
    *,
    runtimes: Sequence[str] = RUNTIMES,
    images_only: bool = False,
    progress: Progress | None = None,
) -> OnnxFiles | TorchFiles:
    """Return the files of a model for the first runtime that has them; download them if needed."""
    folder = Path(model).expanduser()
    try:
        if folder.is_dir():
            return _find_in_folder(folder, runtimes, images_only)
    except OSError as error:
        raise ModelError(
            f"The folder {str(folder)!r} cannot be read ({describe_error(error)}). Check its "
            "rights."
        ) from error
    if isinstance(model, Path) or not (
        model in SHORT_NAMES or re.fullmatch(r"[\w.-]+/[\w.-]+", str(model))
    ):
        known = ", ".join(repr(short) for short in SHORT_NAMES)
        raise ParameterError(
            f"`model` must be 'auto', 'mini', a folder, a hub id such as 'owner/name', or one of "
            f"{known}; got {str(model)!r}."
        )
    found = find_on_this_machine(model, runtimes=runtimes, images_only=images_only)
    return found or _download(model, runtimes, images_only, progress)


def find_on_this_machine(
    model: str, *, runtimes: Sequence[str] = RUNTIMES, images_only: bool = False
) -> OnnxFiles | TorchFiles | None:
    """Return the files of a model that was downloaded before, if a runtime here can use them."""
    for runtime in runtimes:
        name = _repository(model, runtime)
        if runtime == "onnx" and (onnx := _cached_onnx(name, images_only)):
            return onnx
        if runtime == "torch" and has_torch() and (torch := _cached_torch(name)):
            return torch
    return None


def torch_files(folder: Path) -> list[Path]:
    """Return the files of a checkpoint of transformers: settings, then weights."""
    names = [path.name for path in folder.iterdir() if path.is_file()]
    return [folder / name for name in _torch_names(names)]


def hash_files(paths: Iterable[Path]) -> str:
    """Return a hash of the names and contents of files."""
    total = hashlib.sha256()
    for path in paths:
        total.update(f"{path.name} {_hash_file(path)}\n".encode())
    return total.hexdigest()


def fingerprint(*parts: object) -> str:
    """Return a hash of all that the vectors of a model depend on."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _repository(model: str, runtime: str) -> str:
    known = SHORT_NAMES.get(model)
    return model if known is None else known.onnx if runtime == "onnx" else known.torch


def _find_in_folder(
    folder: Path, runtimes: Sequence[str], images_only: bool
) -> OnnxFiles | TorchFiles:
    for runtime in runtimes:
        if runtime == "onnx" and (found := find_onnx(folder, images_only=images_only)):
            return found
        if runtime == "torch" and _has_torch_weights(folder):
            return TorchFiles(folder)
    if "onnx" not in runtimes and find_onnx(folder, images_only=images_only):
        raise ModelError(
            f"The folder {str(folder)!r} holds an ONNX export only, which runs on the CPU: use "
            "'auto' or 'cpu' as `device`, or a checkpoint that transformers has saved."
        )
    raise ModelError(
        f"The folder {str(folder)!r} holds no model: it needs an ONNX export "
        "(onnx/vision_model.onnx, onnx/text_model.onnx, tokenizer.json and "
        "preprocessor_config.json), or config.json and model.safetensors, which save_pretrained of "
        "transformers writes."
    )


def _has_torch_weights(folder: Path) -> bool:
    return (folder / "config.json").is_file() and bool(
        _torch_weights(path.name for path in folder.iterdir())
    )


def _torch_weights(names: Iterable[str]) -> list[str]:
    """Return the names of a model's weights, preferably safetensors."""
    names = list(names)
    found = ([name for name in names if re.fullmatch(part, name)] for part in _TORCH_WEIGHTS)
    return sorted(next(filter(None, found), []))


def _torch_names(names: Iterable[str]) -> list[str]:
    names = [name for name in names if "/" not in name]
    settings = sorted(name for name in names if re.fullmatch(_TORCH_SETTINGS, name))
    return [*settings, *_torch_weights(names)]


def _cached_torch(name: str) -> TorchFiles | None:
    folder = cached_snapshot(name)
    return TorchFiles(folder) if folder and _has_torch_weights(folder) else None


def _cached_onnx(name: str, images_only: bool) -> OnnxFiles | None:
    folders = {part: cached_snapshot(part) for part in (name, *(tower_names(name) or ()))}
    files = {part: list_files(folder) for part, folder in folders.items() if folder}
    plan = _plan_onnx(name, lambda part: files.get(part, ()), images_only=False)
    if plan is None and images_only:
        plan = _plan_onnx(name, lambda part: files.get(part, ()), images_only=True)
    if plan is None:
        return None
    found = _placed(plan, {part: folder for part, folder in folders.items() if folder})
    return found if _is_complete(found) else None


class _Plan(NamedTuple):
    """The repositories and names of an ONNX export's files."""

    image_repository: str
    image: OnnxSide
    text_repository: str | None
    text: OnnxSide | None


def _plan_onnx(
    name: str, list_names: Callable[[str], Iterable[str]], images_only: bool
) -> _Plan | None:
    """Return which files to take from a repository, or from two with a tower each."""
    names = set(list_names(name))
    image, text = image_side(names), text_side(names)
    if image and images_only:
        return _Plan(name, image, None, None)
    if image and text:
        return _Plan(name, image, name, text)
    towers = tower_names(name)
    if towers is None or not (image or text):
        return None
    image, text = image_side(set(list_names(towers[0]))), text_side(set(list_names(towers[1])))
    return _Plan(towers[0], image, towers[1], text) if image and text else None


def _placed(plan: _Plan, folders: dict[str, Path]) -> OnnxFiles:
    text_folder = folders[plan.text_repository] if plan.text_repository else None
    return OnnxFiles(folders[plan.image_repository], plan.image, text_folder, plan.text)


def _is_complete(files: OnnxFiles) -> bool:
    """Tell whether no external weights are missing, as after an interrupted download."""
    graphs = [files.image_folder / files.image.graph]
    if files.text_folder and files.text:
        graphs.append(files.text_folder / files.text.graph)
    try:
        return all(path.is_file() for graph in graphs for path in read_graph(graph).files)
    except ModelError:
        # A damaged file is not downloaded again: the model that uses it says so.
        return True


def _download(
    model: str, runtimes: Sequence[str], images_only: bool, progress: Progress | None
) -> OnnxFiles | TorchFiles:
    sizes: dict[str, dict[str, int]] = {}

    def listed(name: str) -> dict[str, int]:
        if name not in sizes:
            sizes[name] = list_repository(name)
        return sizes[name]

    def fetch(name: str, files: Iterable[str]) -> Path:
        wanted = sorted(set(files))
        return download(name, wanted, sum(listed(name)[file] for file in wanted), progress)

    for runtime in runtimes:
        name = _repository(model, runtime)
        if runtime == "onnx":
            if plan := _plan_onnx(name, listed, images_only):
                return _fetch_onnx(plan, fetch)
        elif _torch_weights(names := listed(name)) and "config.json" in names:
            require_torch(model)
            return TorchFiles(fetch(name, _torch_names(names)))
    raise ModelError(
        f"The model {model!r} has neither an ONNX export that nouncut knows nor weights that "
        "transformers can read: choose another `model`, or 'mini', which needs no download."
    )


def _fetch_onnx(plan: _Plan, fetch: Callable[[str, Iterable[str]], Path]) -> OnnxFiles:
    wanted: dict[str, list[str]] = {plan.image_repository: list(plan.image.names)}
    if plan.text and plan.text_repository:
        wanted.setdefault(plan.text_repository, []).extend(plan.text.names)
    return _placed(plan, {name: fetch(name, files) for name, files in wanted.items()})


def _hash_file(path: Path) -> str:
    # Large files in the hub's cache are named by their hash and need not be read.
    stored = path.resolve().name
    if path.is_symlink() and _SHA256.fullmatch(stored):
        return stored
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
