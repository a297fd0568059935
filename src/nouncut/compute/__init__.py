"""What the machine offers: threads, memory and compiled sparse products.

Nothing here knows about images, nouns or clusters.
"""

from nouncut.compute.dense import inner_products, tall_product
from nouncut.compute.exponentials import softmax_rows
from nouncut.compute.functions import apply_functions
from nouncut.compute.memory import available_memory
from nouncut.compute.packing import PackedRows, empty_rows, pack_rows
from nouncut.compute.patterns import cache_order, entries_in, reorder, with_entries
from nouncut.compute.products import apply_series, pair_products, sparse_product
from nouncut.compute.threads import all_threads, blas_threads, count_threads, run_tasks

__all__ = [
    "PackedRows",
    "all_threads",
    "apply_functions",
    "apply_series",
    "available_memory",
    "blas_threads",
    "cache_order",
    "count_threads",
    "empty_rows",
    "entries_in",
    "inner_products",
    "pack_rows",
    "pair_products",
    "reorder",
    "run_tasks",
    "softmax_rows",
    "sparse_product",
    "tall_product",
    "with_entries",
]
