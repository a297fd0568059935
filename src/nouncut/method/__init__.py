"""The paper's method on arrays: kernel, graphs, diffusion, cut, labels."""
