"""Files: the model file, and writing that leaves a whole file or none."""
