"""One module for each workload, with a ``definition(name)``; `names.BUILT_IN` lists them."""
