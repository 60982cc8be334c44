"""One module per command; `dispatch.py` names them."""
