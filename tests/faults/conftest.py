"""The campaigns are modules in this folder, which ``benchmarks/faults.py`` imports as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
