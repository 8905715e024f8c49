"""From files to source drafts: loaders, chunking, and the pipeline into the knowledge base."""
