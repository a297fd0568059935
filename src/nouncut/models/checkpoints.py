"""Finding and loading the files of a model: in a folder, in the hub's cache, or on the hub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nouncut.errors import ModelError, ParameterError, describe_error

# The paper's checkpoints under its names.
SHORT_NAMES = {
    "ViT-B/32": "openai/clip-vit-base-patch32",
    "ViT-B/16": "openai/clip-vit-base-patch16",
    "ViT-L/14": "openai/clip-vit-large-patch14",
    "OpenCLIP-ViT-B/32": "laion/CLIP-ViT-B-32-laion2B-s34B-b79K",
}
# Preferred format first: repositories often hold the same weights in several formats.
_WEIGHTS = (
    ("model.safetensors", "model-*-of-*.safetensors"),
    ("pytorch_model.bin", "pytorch_model-*-of-*.bin"),
)
# Configuration, tokenizer and preprocessing.
_SETTINGS = ("*.json", "*.txt", "*.model")
# Without one of these files transformers would create an empty vocabulary.
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REMEDY = (
    "choose as `model` a folder that transformers has saved, or the embedded model 'mini', which "
    "needs no download"
)


def find_checkpoint(model: str | Path, revision: str | None = None) -> Path:
    """Return the folder of a model; download it if it is not on this machine."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return _check_folder(folder)
    name = SHORT_NAMES.get(str(model), str(model))
    if isinstance(model, Path) or not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        known = ", ".join(repr(short) for short in SHORT_NAMES)
        raise ParameterError(
            f"`model` must be 'auto', 'mini', a folder, a hub id such as 'owner/name', or one of "
            f"{known}; got {str(model)!r}."
        )
    return _cached(name, revision) or _download(name, revision)


def is_on_this_machine(model: str) -> bool:
    """Tell whether a model can be used without a download."""
    has_client = find_spec("huggingface_hub") is not None
    return has_client and _cached(SHORT_NAMES.get(model, model), None) is not None


def weight_files(folder: Path) -> list[Path]:
    """Return the files of a model's weights, preferably safetensors."""
    for patterns in _WEIGHTS:
        found = sorted(path for pattern in patterns for path in folder.glob(pattern))
        if found:
            return found
    return []


def hash_checkpoint(folder: Path) -> str:
    """Return a hash of all files that influence a model's vectors."""
    settings = sorted({path for pattern in _SETTINGS for path in folder.glob(pattern)})
    total = hashlib.sha256()
    for path in (*settings, *weight_files(folder)):
        total.update(f"{path.name} {_hash_file(path)}\n".encode())
    return total.hexdigest()


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence the progress bars and notices of transformers while a model loads."""
    from transformers.utils import logging as untyped_logging

    logging: Any = untyped_logging
    verbosity, shows_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shows_bars:
            logging.enable_progress_bar()


def load_model(folder: Path) -> Any:
    """Load a dual encoder in float32; code in its folder is not run."""
    from transformers import AutoModel

    try:
        with quiet_transformers():
            model, report = AutoModel.from_pretrained(
                folder,
                local_files_only=True,
                trust_remote_code=False,
                weights_only=True,
                output_loading_info=True,
            )
    except Exception as error:  # configuration and weights have errors of several libraries
        raise ModelError(
            f"transformers cannot load the model in {str(folder)!r} ({describe_error(error)}). "
            "Save or download it again."
        ) from error
    if not (hasattr(model, "get_text_features") and hasattr(model, "get_image_features")):
        raise ModelError(
            f"{str(folder)!r} holds a {type(model).__name__}, which does not encode both images "
            "and texts: choose as `model` one of the CLIP or SigLIP family."
        )
    absent = sorted(map(str, (*report["missing_keys"], *report["mismatched_keys"])))
    if absent:
        raise ModelError(
            f"The weights in {str(folder)!r} do not match its configuration: {len(absent)} are "
            f"missing or have another shape, such as {absent[0]}. Save or download the model again."
        )
    return model.float().eval().requires_grad_(False)


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a model; code in its folder is not run."""
    from transformers import AutoTokenizer

    no_tokenizer = (
        f"{str(folder)!r} has no tokenizer that transformers can read: save it there with "
        "save_pretrained of transformers."
    )
    if not any(True for pattern in _VOCABULARIES for _ in folder.glob(pattern)):
        raise ModelError(no_tokenizer)
    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
    except ImportError as error:
        raise ModelError(
            f"The tokenizer of {str(folder)!r} needs another package: "
            "pip install sentencepiece protobuf"
        ) from error
    except (OSError, ValueError) as error:
        raise ModelError(no_tokenizer) from error


def _check_folder(folder: Path) -> Path:
    if not (folder / "config.json").is_file() or not weight_files(folder):
        raise ModelError(
            f"The folder {str(folder)!r} holds no model: it needs config.json and "
            "model.safetensors, which save_pretrained of transformers writes."
        )
    return folder


def _cached(name: str, revision: str | None) -> Path | None:
    """Return the folder of a model that was downloaded before; uses no network."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
    except OSError:
        return None
    return folder if weight_files(folder) and (folder / "config.json").is_file() else None


def _download(name: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download

    try:
        for weights in _WEIGHTS:
            patterns = [*_SETTINGS, *weights]
            folder = Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
            if weight_files(folder):
                return folder
    except Exception as error:  # the hub's client raises errors of several libraries
        raise ModelError(
            f"The model {name!r} is not on this machine and could not be downloaded from the hub "
            f"({type(error).__name__}). Check the name and the connection, or {_REMEDY}."
        ) from error
    raise ModelError(f"The model {name!r} has no weights that transformers can read: {_REMEDY}.")


def _hash_file(path: Path) -> str:
    # Large files in the hub's cache are named by their hash and need not be read.
    stored = path.resolve().name
    if path.is_symlink() and _SHA256.fullmatch(stored):
        return stored
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
