"""The routes, and the handling of errors."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import tokentrie
from tokentrie.serve.errors import REFUSALS, WireError, of_library, of_validation
from tokentrie.serve.front import show_page
from tokentrie.serve.guards import Guards
from tokentrie.serve.memory import MEMORY_GROWTH, Keeper
from tokentrie.serve.metrics import Metrics
from tokentrie.serve.models import Models, ServedModel
from tokentrie.serve.store import Quota, Store, forget_specs, router
from tokentrie.serve.wire import (
    chatting,
    choosing,
    completing,
    decisions,
    embedding,
    messages,
    probabilities,
    reranking,
    responding,
    slots,
    systemone,
    templating,
    tokens,
)


@dataclass(frozen=True)
class Settings:
    """Settings of a server beside its models."""

    keys: Sequence[str] = ()
    max_body: int = 16 << 20
    cors: str | None = None
    threads: int = 64
    """Calls that may run or wait at once: each has a thread."""
    sets: pathlib.Path | None = None
    """The folder of constraints that are put; None: in memory."""
    max_upload: int = 256 << 20
    quota: Quota = field(default_factory=Quota)
    log: bool = False
    """True if each answer is logged on standard error."""
    fixed_sets: bool = False
    """True if several servers read that folder, and none writes."""
    memory_growth: int = MEMORY_GROWTH
    """The bytes that the process may grow by before it forgets what it has worked out for requests."""
    slot_files: pathlib.Path | None = None
    """The folder of beginnings of prompts that are saved and restored; None: none are."""


def create_app(served: list[ServedModel], settings: Settings) -> FastAPI:
    """An ASGI application over some models, which it closes when it ends."""
    metrics = Metrics()
    models = Models([replace(one, observe=metrics.observe) for one in served])
    metrics.watch(models)
    store = Store(settings.sets, [one.model for one in served], settings.quota, is_fixed=settings.fixed_sets)
    slot_files = slots.SlotFiles(settings.slot_files)
    started = int(time.time())

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with ThreadPoolExecutor(settings.threads, thread_name_prefix="tokentrie-call") as pool:
            asyncio.get_running_loop().set_default_executor(pool)
            keeper = Keeper(
                [one.model for one in models.list_models()], [chatting.forget, forget_specs], settings.memory_growth
            )
            with keeper.watching():
                yield
            models.close()

    app = FastAPI(
        title="tokentrie",
        version=tokentrie.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )

    app.state.models = models

    @app.exception_handler(WireError)
    async def wrong(request: Request, error: WireError) -> Response:
        return error.response(request.url.path)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return of_validation(error.errors(), request.url.path)

    @app.exception_handler(HTTPException)
    async def answer_refusal(request: Request, error: HTTPException) -> Response:
        said = {
            404: f"unknown route {request.url.path}",
            405: f"{request.method} is not supported by {request.url.path}",
        }
        said[400] = "invalid body: expected JSON in UTF-8, not nested too deeply"
        headers = dict(error.headers or {})
        told = WireError(said.get(error.status_code, str(error.detail)), status=error.status_code, headers=headers)
        return told.response(request.url.path)

    chats = (chatting.ChatRequest, responding.ResponsesRequest, messages.MessagesRequest)
    calls = (completing.CompletionRequest, choosing.ChooseRequest, probabilities.ProbabilityRequest)
    bodies = (*chats, *calls, embedding.EmbeddingRequest)
    fields = frozenset(name for body in bodies for name in body.model_fields)

    async def answer_failure(request: Request, error: Exception) -> Response:
        return of_library(error, fields).response(request.url.path)

    for kind in REFUSALS:
        app.add_exception_handler(kind, answer_failure)

    @app.post("/v1/decisions", summary="Decisions")
    async def decide(request: Request, said: decisions.DecisionRequest) -> dict[str, Any]:
        """Typed questions about a state, with the probability of every option; OpenAI's format."""
        return await decisions.answer(request, models, said)

    @app.post("/v1/systemone", summary="Decisions, SystemOne")
    async def system_one(request: Request, said: systemone.SystemOneRequest) -> dict[str, Any]:
        """Answers questions in the format of SystemOne clients."""
        return await systemone.answer(request, models, said)

    @app.post("/v1/chat/completions", summary="Chat completions")
    async def chat(request: Request, said: chatting.ChatRequest) -> Response:
        """A reply to a conversation: text, reasoning, calls of tools; as JSON or as a stream of events."""
        return await chatting.answer(request, models, store, said)

    @app.post("/v1/completions", summary="Completions")
    async def complete(request: Request, said: completing.CompletionRequest) -> Response:
        """Completes one or several prompts, under a constraint if one is given."""
        return await completing.answer(request, models, store, said)

    @app.post("/v1/responses", summary="Responses")
    async def respond(request: Request, said: responding.ResponsesRequest) -> Response:
        """A reply in the format of the Responses API, as JSON or as a stream of events."""
        return await responding.answer(request, models, store, said)

    @app.post("/v1/messages", summary="Messages")
    async def write_message(request: Request, said: messages.MessagesRequest) -> Response:
        """A reply in the format of Anthropic's Messages API, as JSON or as a stream of events."""
        return await messages.answer(request, models, store, said)

    @app.post("/v1/messages/count_tokens", summary="Count tokens")
    async def count_tokens(said: messages.MessagesRequest) -> dict[str, int]:
        """The number of tokens of the prompt that a message would have."""
        return await messages.count(models, store, said)

    @app.post("/v1/choose", summary="Choose")
    async def choose(request: Request, said: choosing.ChooseRequest) -> dict[str, Any]:
        """The most probable of some values after a prompt, each with its exact probability as a whole."""
        return await choosing.answer(request, models, store, said)

    @app.post("/v1/probability", summary="Probability")
    async def find_probability(request: Request, said: probabilities.ProbabilityRequest) -> dict[str, Any]:
        """The probability that the model writes any text of a constraint after a prompt, and its bounds."""
        return await probabilities.answer(request, models, store, said)

    @app.post("/v1/rerank", summary="Rerank")
    async def rerank(request: Request, said: reranking.RerankRequest) -> dict[str, Any]:
        """Documents by the probability that they answer a query."""
        return await reranking.answer(request, models, said)

    @app.post("/v1/embeddings", summary="Embeddings")
    async def embed(request: Request, said: embedding.EmbeddingRequest) -> dict[str, Any]:
        """Vectors of texts, in OpenAI's format."""
        return await embedding.answer(request, models, said)

    @app.post("/slots/{slot}", summary="Save or restore a beginning")
    async def slot(
        slot: Annotated[int, Path(ge=0)], said: slots.SlotRequest, action: str | None = None
    ) -> dict[str, Any]:
        """`?action=save` writes what the model makes of the beginning of prompts to a file, `restore` reads it."""
        return await asyncio.to_thread(slot_files.act, models, slot, action, said)

    @app.post("/tokenize", summary="Tokenize")
    async def tokenize(said: tokens.TokenizeRequest) -> dict[str, Any]:
        """The tokens of a text."""
        return await asyncio.to_thread(tokens.tokenize, models, said)

    @app.post("/apply-template", summary="Apply the template")
    async def apply_template(said: templating.TemplateRequest) -> dict[str, Any]:
        """The prompt of a conversation as text."""
        return await asyncio.to_thread(templating.apply_template, models, said)

    @app.get("/props", summary="Properties")
    async def properties() -> dict[str, Any]:
        """The context, the slots and the chat template of the first model."""
        return await asyncio.to_thread(templating.properties, models.first)

    @app.post("/detokenize", summary="Detokenize")
    async def detokenize(said: tokens.DetokenizeRequest) -> dict[str, Any]:
        """The text of tokens."""
        return tokens.detokenize(models, said)

    def describe_model(one: ServedModel) -> dict[str, Any]:
        return {
            "id": one.name,
            "object": "model",
            "created": started,
            "owned_by": "tokentrie",
            "max_model_len": one.model.n_ctx,
            # As Anthropic's clients read it.
            "type": "model",
            "display_name": one.name,
            "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "max_input_tokens": one.model.n_ctx,
            "max_tokens": one.model.n_ctx,
        }

    @app.get("/v1/models", summary="Models")
    async def list_models() -> dict[str, Any]:
        """All models of this server."""
        date = time.strftime("%Y-%m-%d", time.gmtime(started))
        own = [
            {"name": one.name, "description": str(one.model.path.name), "release_date": date}
            for one in models.list_models()
        ]
        data = [describe_model(one) for one in models.list_models()]
        pages = {"has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
        return {"object": "list", "data": data, "models": own, **pages}

    @app.get("/v1/models/{name}", summary="A model")
    async def show_model(name: str) -> dict[str, Any]:
        """One model by its name."""
        if (known := models.get(name)) is not None:
            return describe_model(known)
        raise WireError(
            f"unknown model {name!r}: GET /v1/models lists them", status=404, param="model", code="model_not_found"
        )

    @app.get("/health", summary="Health")
    async def health() -> dict[str, str]:
        """Answers if the server runs; needs no key."""
        return {"status": "ok"}

    @app.get("/metrics", summary="Metrics")
    async def measure() -> Response:
        """Counters and times as Prometheus text."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    app.include_router(router(store, models))
    show_page(app)
    limits = {"max_body": settings.max_body, "max_upload": settings.max_upload}
    app.add_middleware(Guards, keys=settings.keys, metrics=metrics, log=settings.log, **limits)
    if settings.cors is not None:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[settings.cors],
            allow_methods=["*"],
            # Clients send headers of their own, and cookies mean nothing here.
            allow_headers=["*"],
            expose_headers=["etag", "retry-after", "x-request-id"],
        )
    return app
