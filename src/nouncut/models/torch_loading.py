"""Loading models and tokenizers with transformers; code in their folders is never run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nouncut.errors import ModelError, describe_error

# Without one of these files transformers would create an empty vocabulary.
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
_PACKAGES = ("torch", "transformers")


def has_torch() -> bool:
    """Tell whether torch and transformers are installed, without importing them."""
    return all(find_spec(package) for package in _PACKAGES)


def require_torch(model: str) -> None:
    """Raise unless torch and transformers are installed."""
    for package in _PACKAGES:
        if not find_spec(package):
            raise ModelError(
                f"The model {model!r} has no ONNX export that nouncut knows, and without one it "
                f'needs {package}: pip install "nouncut[torch]".'
            )


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


def load_dual_encoder(folder: Path) -> Any:
    """Load a model that encodes images and texts, in float32."""
    model, missing = _load_model(folder)
    if not (hasattr(model, "get_text_features") and hasattr(model, "get_image_features")):
        raise ModelError(
            f"{str(folder)!r} holds a {type(model).__name__}, which does not encode both images "
            "and texts: choose as `model` one of the CLIP or SigLIP family."
        )
    _check_complete(folder, missing)
    return model


def load_image_model(folder: Path) -> tuple[Any, bool]:
    """Load a model that encodes images, and tell whether its pooling layer has weights."""
    model, missing = _load_model(folder)
    # Checkpoints often lack the pooling layer, which transformers would then fill at random.
    pooling = [name for name in missing if name.split(".")[0] == "pooler"]
    _check_complete(folder, [name for name in missing if name not in pooling])
    return model, not pooling


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a model."""
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


def _load_model(folder: Path) -> tuple[Any, list[str]]:
    """Load a model in float32, with the names of weights that are missing or do not fit."""
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
    missing = sorted(map(str, (*report["missing_keys"], *report["mismatched_keys"])))
    return model.float().eval().requires_grad_(False), missing


def _check_complete(folder: Path, missing: list[str]) -> None:
    if missing:
        raise ModelError(
            f"The weights in {str(folder)!r} do not match its configuration: {len(missing)} are "
            f"missing or have another shape, such as {missing[0]}. Save or download the model "
            "again."
        )
