"""Constraints that clients put under a name: what is read of an upload, where it is kept, and who gets what.

| file | what it holds |
| --- | --- |
| `uploads.py` | a body of any kind as a constraint |
| `contents.py` | what is kept of it: the constraint, its bytes and their digest; whether a model can follow it |
| `references.py` | names inside a spec, and limits that a stranger may not raise |
| `folder.py` | files that appear whole or not at all |
| `named.py` | `Store`: what each name stands for, versions, quotas |
| `changes.py` | values that come to a set and go from it |
| `routes.py` | `PUT`, `PATCH`, `GET` and `DELETE` of `/v1/constraints` |
"""

from __future__ import annotations

from tokentrie.serve.store.contents import Constraint
from tokentrie.serve.store.named import Quota, Store, forget_specs
from tokentrie.serve.store.routes import router

__all__ = ["Constraint", "Quota", "Store", "forget_specs", "router"]
