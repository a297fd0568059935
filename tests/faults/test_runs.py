"""The campaign against run directories in its short form; ``benchmarks/faults.py`` has the long."""

import pytest
import runs_attacks

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SHORT = {
    "flipped_bits": {"per_file": 3},
    "cut_files": {"per_file": 1},
    "crafted_columns": {"limit": 16},
    "crafted_arrays": {"limit": 20},
    "crafted_manifests": {"limit": 24},
    "special_files": {"limit": 20},
    "stolen_paths": {"limit": 6},
    "clean_exits": {"n_processes": 2},
}


@pytest.mark.parametrize("kind", SHORT)
def test_attacks_on_runs(kind, tmp_path):
    tally = getattr(runs_attacks, kind)(tmp_path, **SHORT[kind])
    assert tally.tried > 1
    assert tally.harm == []
