"""What the machine offers: threads, memory and compiled sparse products.

Nothing here knows about images, nouns or clusters.
"""

from nouncut.compute.dense import inner_products, tall_product
from nouncut.compute.exponentials import half_floats, softmax_rows
from nouncut.compute.functions import apply_functions
from nouncut.compute.memory import available_memory
from nouncut.compute.products import (
    apply_series,
    pair_products,
    sparse_product,
)
from nouncut.compute.threads import blas_threads, count_threads, run_tasks

__all__ = [
    "apply_functions",
    "apply_series",
    "available_memory",
    "blas_threads",
    "count_threads",
    "half_floats",
    "inner_products",
    "pair_products",
    "run_tasks",
    "softmax_rows",
    "sparse_product",
    "tall_product",
]
