"""Blocks of vectors in files: the tasks of one partition that read, filter and rotate them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.dense import inner_products, tall_product
from nouncut.distributed.halo import State
from nouncut.distributed.stages import Result
from nouncut.distributed.storage import Storage


def compose_block(
    storage: Storage,
    partition: int,
    source: str,
    columns: list[int],
    n_random: int,
    more: str,
    target: str,
    seed: int,
    starts: list[int],
) -> Result:
    """Write a block of some columns of another, of random ones, and of all of a third."""
    n = starts[partition + 1] - starts[partition]
    parts = []
    if columns:
        parts.append(storage.read(f"{source}/{partition:05d}.npy")[:, columns])
    if n_random:
        # The same whatever worker draws it; different for every block.
        own = [seed, partition, *target.encode()]
        parts.append(np.random.default_rng(own).normal(size=(n, n_random)).astype(np.float32))
    if more:
        parts.append(storage.read(f"{more}/{partition:05d}.npy"))
    storage.write(f"{target}/{partition:05d}.npy", np.hstack(parts))
    return {}


def read_block(
    storage: Storage,
    partition: int,
    done: dict[str, Any],
    rest: dict[str, Any],
    a: int = 0,
    b: int | None = None,
) -> NDArray[np.float32]:
    """Read columns from `a` to `b` of a block, orthogonal to `done` if there is a transform."""
    columns = rest["columns"][a:b]
    if rest.get("panels"):
        found = [
            storage.read(f"{rest['folder']}/{partition:05d}-{first}.npy")
            for first, last in rest["panels"]
            if first < (len(rest["columns"]) if b is None else b) and last > a
        ]
        low = next(first for first, last in rest["panels"] if last > a)
        block = (found[0] if len(found) == 1 else np.hstack(found))[:, a - low :][:, : len(columns)]
    else:
        block = storage.read(f"{rest['folder']}/{partition:05d}.npy")[:, columns]
    block = np.array(block, dtype=np.float32, order="C")
    if rest["transform"] is not None:
        kept = storage.read_several(f"{rest['transform']}.npz")
        block *= kept["scale"][a:b].astype(np.float32)
        if done["columns"]:
            block -= tall_product(read_done(storage, partition, done), kept["shares"][:, a:b])
    return block


def read_done(storage: Storage, partition: int, done: dict[str, Any]) -> NDArray[np.float32]:
    """Read the columns that others are kept orthogonal to."""
    found = storage.read(f"{done['folder']}/{partition:05d}.npy")
    return np.ascontiguousarray(found[:, done["columns"]])


def _save_sums(
    storage: Storage,
    partition: int,
    folder: str,
    first: int,
    block: NDArray[Any],
    done: dict[str, Any],
) -> None:
    squares = np.einsum("ij,ij->j", block, block, dtype=np.float64)
    shares = np.empty((0, block.shape[1]))
    if done["columns"]:
        own = read_done(storage, partition, done)
        shares = inner_products(own, block, multiply_in=np.float32)
    storage.write_several(
        f"{folder}/sums-{partition:05d}-{first}.npz", squares=squares, shares=shares
    )


def save_filtered(
    storage: Storage,
    state: State,
    partition: int,
    rows: list[int],
    name: str,
    first: int,
    done: dict[str, Any],
) -> Result:
    """Write filtered columns, their squares, and their products with `done`."""
    filtered = state.now[slice(*rows)]
    storage.write(f"{name}/filtered/{partition:05d}-{first}.npy", filtered)
    _save_sums(storage, partition, f"{name}/filtered", first, filtered, done)
    return {}


def sum_products(
    storage: Storage, partition: int, done: dict[str, Any], rest: dict[str, Any], target: str
) -> Result:
    """Write the squares of columns, and their products with `done`."""
    block = read_block(storage, partition, done, rest)
    _save_sums(storage, partition, target, 0, block, done)
    return {}


def save_image(
    storage: Storage,
    images: NDArray[Any],
    partition: int,
    rows: list[int],
    name: str,
    first: int,
    last: int,
    done: dict[str, Any],
    rest: dict[str, Any],
) -> Result:
    """Write the image of some columns, and their products with all columns."""
    block, image = read_block(storage, partition, done, rest), images[slice(*rows)]
    storage.write(f"{name}/image/{partition:05d}-{first}.npy", image)
    storage.write_several(
        f"{name}/image/sums-{partition:05d}-{first}.npz",
        overlap=inner_products(block, block[:, first:last]),
        inner=inner_products(block, image, multiply_in=np.float32),
    )
    return {}


def rotate_block(
    storage: Storage,
    partition: int,
    name: str,
    done: dict[str, Any],
    known: dict[str, Any],
    rest: dict[str, Any],
    k: int,
    panels: list[tuple[int, int]],
) -> Result:
    """Write the Ritz vectors after the `done` columns; return the squares of their residuals."""
    kept = storage.read_several(f"{name}/rotation.npz")
    block = tall_product(read_block(storage, partition, known, rest), kept["rotation"])
    images = [storage.read(f"{name}/image/{partition:05d}-{a}.npy") for a, _ in panels]
    residual = tall_product(np.hstack(images), kept["rotation"][:, :k])
    residual -= block[:, :k] * kept["values"][:k].astype(block.dtype)
    squares = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
    if done["columns"]:
        block = np.hstack([read_done(storage, partition, done), block])
    storage.write(f"{name}/block/{partition:05d}.npy", block)
    return {"squares": squares.tolist()}
