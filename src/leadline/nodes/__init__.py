"""The eight nodes of the graph, one function a file."""
