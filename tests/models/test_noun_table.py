"""Noun vectors from a file: what is read, what is refused, and what they do to a clustering."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from nouncut import cluster_images, predict_images
from nouncut.errors import InputError, ParameterError
from nouncut.models.choose import load_encoder
from nouncut.models.noun_table import NounTable
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like
from nouncut.store.store import FeatureStore


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3, 4, 6)).astype(np.float32)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_rows_are_found_by_noun_and_prompt(tmp_path, vectors):
    path = tmp_path / "nouns.npz"
    np.savez(path, nouns=["cat", "polar_bear", "Owl", "fox"], features=vectors)
    table, _ = load_encoder(str(path))
    assert table.nouns == ("cat", "polar bear", "Owl", "fox")
    for one, template in zip(vectors, table.prompts, strict=True):
        found = table.encode_nouns(["owl", "polar bear"], template)
        np.testing.assert_allclose(found, unit(one)[[2, 1]], rtol=1e-5)
    mean = unit(unit(vectors)[:, 3].mean(axis=0))
    np.testing.assert_allclose(table.encode_texts(["fox"])[0], mean, rtol=1e-5)
    assert table.unknown_texts(["FOX", "dog"]) == ["dog"]


def test_fingerprint_follows_nouns_and_vectors(tmp_path, vectors):
    def fingerprint(nouns: list[str], features: np.ndarray) -> str:
        np.savez(tmp_path / "nouns.npz", nouns=nouns, features=features)
        return NounTable(tmp_path / "nouns.npz").fingerprint

    names = ["a", "b", "c", "d"]
    assert fingerprint(names, vectors) == fingerprint(names, vectors)
    others = {fingerprint(names[::-1], vectors), fingerprint(names, vectors + 1)}
    assert fingerprint(names, vectors) not in others


def test_parquet_is_read(tmp_path, vectors):
    columns = {"word": ["a", "b", "c", "d"], "embedding": vectors[0].tolist()}
    parquet.write_table(pa.table(columns), tmp_path / "nouns.parquet")
    table = NounTable(tmp_path / "nouns.parquet")
    np.testing.assert_allclose(table.encode_texts(["c"])[0], unit(vectors[0])[2], rtol=1e-5)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"features": np.ones((2, 3))}, r"which of \['features'\] are the nouns"),
        ({"nouns": ["a", "b"]}, r"which of \['nouns'\] are the vectors"),
        ({"nouns": ["a", "b"], "features": np.ones((3, 3))}, "for 2 nouns"),
        ({"nouns": ["a", "A"], "features": np.ones((2, 3))}, "more than once"),
        ({"nouns": ["a", "_"], "features": np.ones((2, 3))}, "empty nouns"),
        ({"nouns": ["a", "b"], "features": np.full((2, 3), np.nan)}, "not finite"),
    ],
)
def test_bad_files_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "nouns.npz", **arrays)
    with pytest.raises(InputError, match=message) as caught:
        NounTable(tmp_path / "nouns.npz")
    assert "nouns.npz" in str(caught.value)


def test_noun_vectors_mend_features_that_looks_cannot_separate(tmp_path):
    data = make_clip_like(n_images=400, n_clusters=8, separation=0.2, random_state=0)
    np.savez(tmp_path / "images.npz", features=data.features)
    nouns = [f"noun {number}" for number in range(len(data.noun_features[0]))]
    np.savez(tmp_path / "nouns.npz", nouns=nouns, features=np.stack(data.noun_features))
    store, found = FeatureStore(tmp_path / "store"), {}
    for model in ("auto", str(tmp_path / "nouns.npz")):
        run = cluster_images(
            tmp_path / "images.npz", 8, model=model, output=tmp_path / f"{len(found)}", store=store
        )
        found[model] = clustering_scores(data.labels, run.labels).acc
    alone, with_nouns = found.values()
    assert with_nouns > alone + 0.1
    assert set(run.clusters["name"].to_pylist()) <= set(nouns)
    again = predict_images(run, tmp_path / "images.npz", store=store).table["cluster"].to_numpy()
    assert np.mean(again == run.labels) > 0.9
    assert run.search(nouns[0], n=1).num_rows == 1


def test_noun_vectors_cannot_encode_images(tmp_path, vectors):
    np.savez(tmp_path / "nouns.npz", nouns=["a", "b", "c", "d"], features=vectors)
    np.save(tmp_path / "images.npy", np.eye(6))
    model = str(tmp_path / "nouns.npz")
    with pytest.raises(ParameterError, match="cannot encode images"):
        cluster_images(tmp_path, model=model, output=tmp_path / "run")
    with pytest.raises(ParameterError, match="leave `vocabulary` and `prompts` out"):
        cluster_images(tmp_path / "images.npy", model=model, vocabulary=["x"])
