"""One module for each workload, with a function ``definition(name)``; `names.BUILT_IN` lists them."""
