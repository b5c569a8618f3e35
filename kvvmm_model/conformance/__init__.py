"""The comparison: any manager and the model, side by side, over the same driver answers."""
