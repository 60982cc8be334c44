"""One module per workload, with a ``definition(name)``; `names.BUILT_IN` lists them."""
