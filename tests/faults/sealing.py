"""Give a run that was changed the checksums of its files, as a stranger could."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nouncut.runs.checksums import file_checksum
from nouncut.runs.manifest import encode_manifest


def seal(directory: Path, **changes: Any) -> None:
    """Change fields of the manifest, and write all checksums anew."""
    path = directory / "manifest.json"
    manifest = json.loads(path.read_bytes()) | changes
    if isinstance(manifest.get("files"), dict):
        for name in manifest["files"]:
            if (directory / name).is_file():
                with (directory / name).open("rb") as file:
                    manifest["files"][name] = file_checksum(file)
    content = encode_manifest(manifest)
    path.unlink()
    path.write_bytes(content)
