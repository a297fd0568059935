"""The method on a Dask cluster: coarse tasks over shards and partitions, files between them."""
