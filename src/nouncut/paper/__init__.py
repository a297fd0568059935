"""The paper's laboratory: baselines, data sets, published values, tables and benchmarks."""
