"""The same photographs as a folder, as tars, as parquet and on an S3 server."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def tar_bytes(members: dict[str, bytes], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def write_tars(files: list[Path], folder: Path, n_tars: int = 3) -> None:
    folder.mkdir()
    size = -(-len(files) // n_tars)
    for number in range(n_tars):
        members = {}
        for path in files[number * size : (number + 1) * size]:
            members[f"{path.stem}{path.suffix}"] = path.read_bytes()
            members[f"{path.stem}.json"] = b"{}"
        (folder / f"photos-{number:04d}.tar").write_bytes(tar_bytes(members))


def write_parquet(files: list[Path], path: Path, rows_per_group: int = 5) -> None:
    rows = [{"image": {"bytes": f.read_bytes(), "path": f.name}, "label": 1} for f in files]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=rows_per_group)
