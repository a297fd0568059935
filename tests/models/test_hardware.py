from __future__ import annotations

from importlib import metadata
from importlib.metadata import PackageNotFoundError

import pytest

from nouncut.models import hardware


@pytest.mark.parametrize(
    ("system", "processor", "tool", "torch", "expected"),
    [
        ("linux", "x86_64", "/usr/bin/nvidia-smi", "2.13.0", "cuda"),
        ("linux", "x86_64", "/usr/bin/nvidia-smi", "2.13.0+cu130", "cuda"),
        ("linux", "x86_64", "/usr/bin/nvidia-smi", "2.13.0+cpu", None),
        ("linux", "x86_64", None, "2.13.0", None),
        ("linux", "x86_64", "/usr/bin/nvidia-smi", None, None),
        ("win32", "AMD64", "C:/nvidia-smi.exe", "2.13.0+cu130", "cuda"),
        ("darwin", "arm64", None, "2.13.0", "mps"),
        ("darwin", "x86_64", None, "2.2.0", None),
    ],
)
def test_a_graphics_processor_counts_if_torch_can_use_it(
    monkeypatch, system, processor, tool, torch, expected
):
    def version(package):
        assert package == "torch"
        if torch is None:
            raise PackageNotFoundError(package)
        return torch

    monkeypatch.setattr(hardware.sys, "platform", system)
    monkeypatch.setattr(hardware.platform, "machine", lambda: processor)
    monkeypatch.setattr(hardware.shutil, "which", lambda name: tool)
    monkeypatch.setattr(metadata, "version", version)
    assert hardware.gpu_kind() == expected
