"""The tests of fidm-studies; a package, so that files here may be called as others elsewhere."""
