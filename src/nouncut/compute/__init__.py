"""What the machine offers: threads, memory and compiled sparse products.

Nothing here knows about images, nouns or clusters.
"""

from nouncut.compute.functions import apply_functions
from nouncut.compute.memory import available_memory
from nouncut.compute.products import sparse_product
from nouncut.compute.threads import blas_threads, count_threads, run_tasks

__all__ = [
    "apply_functions",
    "available_memory",
    "blas_threads",
    "count_threads",
    "run_tasks",
    "sparse_product",
]
