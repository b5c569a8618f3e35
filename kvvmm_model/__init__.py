"""The model: what a virtual-memory manager for KV caches must do, as an executable spec."""
