"""The server over a cluster, with Ray Serve: replicas that each have a model and an engine behind one address.

Its answers are those of `tokentrie serve`, from the same application.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import tokentrie
from tokentrie.cli.serving.serve import TINY
from tokentrie.integrations._shared.require import require
from tokentrie.integrations.ray import assigned_cpus

ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
"""Ray 2.60 and later."""


def application(
    models: Mapping[str, str | PathLike[str] | None] | str | PathLike[str] | None = None,
    *,
    slots: int = 8,
    max_queue: int = 64,
    n_ctx: int | None = None,
    n_threads: int | None = None,
    n_gpu_layers: int = 0,
    precise: bool = False,
    timeout: float | None = 600.0,
    keys: Sequence[str] = (),
    cors: str | None = None,
    sets: str | PathLike[str] | None = None,
    receipt_key: bytes | None = None,
    max_body: int = 16 << 20,
    sticky: bool = False,
    **options: Any,
) -> Any:
    """A Ray Serve application: `serve.run(application("/models/model.gguf", num_replicas=4))`.

    Every replica opens the models once and runs up to `slots` calls in common forward passes. Replicas of a node map
    the same files, models and sets, so their pages are in memory once. A replica that dies is replaced by Ray; a
    request that it had gets 500 from Ray's proxy, and clients that try again (OpenAI's do) lose nothing.

    Args:
        models: a GGUF file that every node has, or files by the names that requests call them by. None: the tiny model
            inside the package.
        slots: calls that run at once in a replica.
        max_queue: calls that may wait in a replica beside them; one more gets 429.
        n_ctx, n_gpu_layers, precise: as for `Model`.
        n_threads: threads of a forward pass. None: the CPUs that Ray gives the replica (`ray_actor_options`).
        timeout: the seconds that a call may take; None: any.
        keys: the keys of clients; a request brings one of them, as `Authorization: Bearer KEY`.
        cors: an origin whose pages may ask.
        sets: a folder of constraints by name, there on every node: `NAME.ttrie`, `NAME.json`, `NAME.wasm`. Replicas
            read what it has when they begin, and none changes it: PUT, PATCH and DELETE get 403.
        receipt_key: the key that seals receipts.
        max_body: the most bytes of a request.
        sticky: send requests with the same `x-session-id` header to the same replica, which has decoded what they begin
            with, by Ray's router of consistent hashes. Ray looks at no body before it routes.
        options: those of `ray.serve.deployment`, such as `num_replicas`, `ray_actor_options`, `autoscaling_config`. Ray
            gives a replica `slots + max_queue // 2` requests at once, unless `max_ongoing_requests` says otherwise:
            the others wait where every replica can take them. `autoscaling_config` aims at `slots` of them.

    Returns:
        ray.serve.Application.

    Raises:
        ImportError: `pip install 'tokentrie[ray-serve]'`.
        OptionError: a number is out of range.

    Example:
        >>> import ray.serve
        >>> from tokentrie.integrations.ray_serve import application
        >>> app = application(num_replicas=2)  # for ray.serve.run(app)
        >>> type(app).__name__
        'Application'
    """
    serve = require("ray.serve", "ray-serve")
    for name, number, least in (("slots", slots, 1), ("max_queue", max_queue, 0)):
        if number < least:
            raise tokentrie.errors.OptionError(f"{name} is {number}: it must be at least {least}")
    files = models if isinstance(models, Mapping) else {Path(models).stem if models else TINY: models}
    if not files:
        raise tokentrie.errors.OptionError("models is empty: give a file, or files by name")

    def build() -> Any:
        from tokentrie.serve import Settings, create_app
        from tokentrie.serve.models import Calls, ServedModel

        calls = Calls(slots, max_queue, precise)
        # In the replica: here Ray knows how many CPUs it has.
        cpus = assigned_cpus() if n_threads is None else n_threads
        paths = [(name, None if path is None else Path(path)) for name, path in files.items()]
        opened = [(name, calls.open(path, n_ctx, n_gpu_layers, cpus)) for name, path in paths]
        served = [ServedModel(name, model, timeout, receipt_key=receipt_key) for name, model in opened]
        folder = None if sets is None else Path(sets)
        return create_app(served, Settings(keys, max_body, cors, calls.threads(len(served)), folder, fixed_sets=True))

    if sticky:
        require(ROUTER.rpartition(".")[0], "ray-serve")
        options.setdefault("request_router_config", {"request_router_class": ROUTER})
    options.setdefault("name", "tokentrie")
    options.setdefault("max_ongoing_requests", slots + max_queue // 2)
    if "autoscaling_config" in options:
        options["autoscaling_config"] = {"target_ongoing_requests": slots, **options["autoscaling_config"]}
    elif "num_replicas" not in options:
        options["num_replicas"] = 1
    return serve.deployment(**options)(serve.ingress(build)()).bind()
