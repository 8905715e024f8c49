"""A Chroma server, spoken to through Chroma's own asynchronous HTTP client.

That client as it comes keeps one pool of connections for all servers of an event loop, headers included, verifies no
certificate and waits for ever. So it is given a pool of its own, which verifies, and gives up after a time.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult

import httpx
from chromadb.api.async_fastapi import AsyncFastAPI
from chromadb.api.models.AsyncCollection import AsyncCollection
from chromadb.config import Settings, System
from chromadb.errors import ChromaError, NotFoundError, error_types

from leadline.errors import StoreError
from leadline.stores.chroma_client import Vanished, no_database

TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 10.0


class ChromaServer:
    """A ChromaClient over the server at `url`."""

    def __init__(self, url: SplitResult, headers: Mapping[str, str], tenant: str, database: str) -> None:
        self._url = url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="")
        self._login = (url.username, url.password or "") if url.username else None
        self._headers = headers
        self._tenant = tenant
        self._database = database
        self._http: httpx.AsyncClient | None = None
        self._api: Any = None

    @property
    def place(self) -> str:
        """The address, without the user's name and password."""
        return self._url.geturl()

    async def open(self) -> None:
        """Connects and finds the database."""
        self._http = httpx.AsyncClient(
            headers={**self._headers, "Content-Type": "application/json"},
            auth=self._login,
            timeout=httpx.Timeout(TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            event_hooks={"response": [self._refuse_what_is_not_chroma]},
        )
        self._api = await asyncio.to_thread(self._client)
        self._api._clients = {asyncio.get_running_loop().__hash__(): self._http}
        try:
            await self.call(self._api.get_tenant, name=self._tenant)
            await self.call(self._api.get_database, name=self._database, tenant=self._tenant)
        except Vanished:
            await self.close()
            raise no_database(self.place, self._tenant, self._database) from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Closes the connections."""
        if self._http is not None:
            await self._http.aclose()

    async def batch_limit(self) -> int:
        """What the server says it takes at once."""
        return int(await self.call(self._api.get_max_batch_size))

    async def find(self, name: str) -> Any | None:
        """The collection, or None."""
        try:
            model = await self.call(self._api.get_collection, name=name, tenant=self._tenant, database=self._database)
        except Vanished:
            return None
        return self._collection(model)

    async def create(self, name: str, configuration: Mapping[str, Any], metadata: Mapping[str, Any]) -> Any:
        """Makes the collection, or gives the one that another process has just made."""
        try:
            model = await self.call(
                self._api.create_collection,
                name=name,
                configuration=dict(configuration),
                metadata=dict(metadata),
                tenant=self._tenant,
                database=self._database,
            )
        except StoreError:
            found = await self.find(name)
            if found is None:
                raise
            return found
        return self._collection(model)

    async def drop(self, name: str) -> None:
        """Removes the collection."""
        try:
            await self.call(self._api.delete_collection, name=name, tenant=self._tenant, database=self._database)
        except Vanished:
            return

    async def call(self, method: Callable[..., Any], **arguments: Any) -> Any:
        """Makes a request."""
        with self._errors_named():
            return await method(**arguments)

    def check_room(self, size: int) -> None:
        """The server's disk is the server's business."""

    def _client(self) -> AsyncFastAPI:
        return System(
            Settings(
                anonymized_telemetry=False,
                chroma_api_impl="chromadb.api.async_fastapi.AsyncFastAPI",
                chroma_server_host=self.place,
                chroma_server_http_port=self._url.port or 80,  # asked for, though the address has it
                chroma_server_ssl_enabled=self._url.scheme == "https",
                chroma_server_ssl_verify=True,
            )
        ).instance(AsyncFastAPI)

    def _collection(self, model: Any) -> AsyncCollection:
        return AsyncCollection(client=self._api, model=model, embedding_function=None)

    async def _refuse_what_is_not_chroma(self, response: httpx.Response) -> None:
        """Chroma's client raises a bare Exception for an error that isn't Chroma's own: a proxy's, or a login's."""
        if response.is_success:
            return
        await response.aread()
        try:
            body = response.json()
        except ValueError:
            body = None
        if not isinstance(body, dict) or body.get("error") not in error_types:
            login = response.status_code in (401, 403)
            raise StoreError(
                f"The Chroma server at {self.place} answered {response.status_code} {response.reason_phrase}.",
                hint="Check `headers`: it asks for a login." if login else "Check `url`, and the server's own log.",
            )

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except NotFoundError as error:
            raise Vanished(f"The Chroma server at {self.place} has it no more: {error}.") from error
        except ChromaError as error:
            raise StoreError(f"The Chroma server at {self.place} refused: {error}.") from error
        except httpx.HTTPError as error:
            raise StoreError(
                f"The Chroma server at {self.place} can't be reached, or broke off: {str(error) or repr(error)}.",
                hint="Check `url` and start the server: `chroma run --path FOLDER --host HOST --port PORT`.",
            ) from error
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise StoreError(
                f"What answers at {self.place} isn't a Chroma server of a version we know.", hint="Check `url`."
            ) from error
